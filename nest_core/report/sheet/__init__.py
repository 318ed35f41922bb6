"""Decision sheets: designs weighed against each other, on one printed page."""

from nest_core.report.sheet.sheet import decision_sheet
from nest_core.report.sheet.weighing import Weighing, weigh

__all__ = ["Weighing", "decision_sheet", "weigh"]
