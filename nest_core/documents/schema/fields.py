"""What tables of files share: bounds of figures, what people read of a field, strictness."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["LONGEST_NAME", "Count", "Name", "NotNegative", "Positive", "SchemaTable", "label"]

Count = Annotated[int, Field(ge=1, le=10_000_000)]
# Below these floors times overflow to infinity, and infinities become NaN.
Positive = Annotated[float, Field(ge=1e-9, le=1e18)]
NotNegative = Annotated[float, Field(ge=0, le=1e18)]
LONGEST_NAME = 200
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


def label(
    title: str, text: str = "", unit: str = "", usual: float | None = None, short: str = ""
) -> Any:
    """What people read of a field: its label and help, a unit that its key does not say, up to
    where a slider reaches, and a shorter name than its key's.
    """
    more: Any = {"unit": unit, "usual": usual, "short": short}
    return Field(title=title, description=text, json_schema_extra=more)


class SchemaTable(BaseModel):
    """One table of a file: its keys, their types and bounds, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)
