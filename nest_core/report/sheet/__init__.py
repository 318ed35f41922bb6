"""Decision sheets: designs weighed against each other, on one printed page."""

from nest_core.report.sheet.sheet import decision_sheet, question_of

__all__ = ["decision_sheet", "question_of"]
