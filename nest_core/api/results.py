"""What results of the public API have in common: rows, pictures, and tables that print them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from nest_core.report.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from nest_core.report.figures import Chart

__all__ = ["Result"]


class Result(ABC):
    """A result that prints as text and as HTML, and comes as a frame and as pictures."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return a row each of text and figures, none rounded; units stand in the names."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """Return what Jupyter shows."""

    def pictures(self) -> tuple[Chart, ...]:
        """Return every picture, the one of `plot` first."""
        return ()

    def to_frame(self) -> pd.DataFrame:
        """Return the rows; units stand in the names of the columns."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def plot(self) -> go.Figure:
        """Return the picture that answers what was asked."""
        return self.pictures()[0].titled()

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())
