"""The busiest links in words."""

from collections.abc import Sequence

from nest_core.costs.communication import CLASSES
from nest_core.documents import join_words, percent
from nest_core.documents.units import percent_column
from nest_core.network import BusyLink
from nest_core.report.tables import Table

__all__ = ["busiest_table", "busiest_text"]

_LEAST = 5e-4
"""Of the time; less is not worth a row."""
_USERS = 3


def busiest_text(links: Sequence[BusyLink]) -> str:
    """Return their table below an answer in a terminal; nothing where there are none."""
    return f"\n\n{busiest_table(links)}" if links else ""


def busiest_table(links: Sequence[BusyLink]) -> Table:
    """Return the busiest links of a plan or of a pattern."""
    listed = [entry for entry in links if entry.utilisation >= _LEAST]
    if not listed:
        return Table("No link is busy for long", "", ())
    share = percent_column(entry.utilisation for entry in listed)
    rows = [
        {
            "Busiest links": entry.link,
            "As busy": f"{entry.alike:,}",
            "Busy": share(entry.utilisation),
            "With": _with(entry),
        }
        for entry in listed
    ]
    first = listed[0]
    most = "The busiest link is" if first.alike == 1 else f"The busiest {first.alike:,} links are"
    return Table(
        f"{most} busy {percent(first.utilisation)} of the time, with {_with(first)}",
        "Share of the time that a link is busy at its full rate; links of a tier that are as busy "
        "as one another, to 0.1 %, are one row",
        rows,
    )


def _with(entry: BusyLink) -> str:
    """Return who uses a link, the most first."""
    users = {CLASSES.get(name, name): part for name, part in entry.users.items()}
    if len(users) == 1:
        return next(iter(users))
    parts = [f"{name} {percent(part)}" for name, part in users.items() if part >= _LEAST]
    more = [f"{len(parts) - _USERS} more"] if len(parts) > _USERS else []
    return join_words([*parts[:_USERS], *more])
