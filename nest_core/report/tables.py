"""Tables: one value, as HTML for pages and documents and as text for terminals."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nest_core.documents.text import table

__all__ = ["Table", "html_table"]

_WIDTH = 100
_CELL = "padding: 2px 10px 2px 0; border-bottom: 1px solid rgba(128, 132, 138, 0.3);"
_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums;"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a finding.

    Parameters
    ----------
    title : str
        The finding, computed from the rows.
    subtitle : str
        What the rows hold, and their unit.
    rows : sequence of mapping
        Cells by column, all with the same columns.
    """

    title: str
    subtitle: str
    rows: Sequence[Mapping[str, str]]

    def to_html(self) -> str:
        """Return the finding and the rows, in the classes of the style sheets."""
        head = (
            f'<div class="nest-title">{html.escape(self.title)}</div>'
            f'<div class="nest-subtitle">{html.escape(self.subtitle)}</div>'
        )
        if not self.rows:  # a fabric of one device has no cables
            return head
        return (
            f'{head}<div class="nest-scroll" tabindex="0" role="group" '
            f'aria-label="A table that scrolls">{html_table(self.rows)}</div>'
        )

    def __str__(self) -> str:
        if not self.rows:
            return self.title
        rows = [list(row.values()) for row in self.rows]
        return f"{self.title}\n{table(list(self.rows[0]), rows, _WIDTH)}"

    def _repr_html_(self) -> str:
        head = f"<strong>{html.escape(self.title)}</strong><div>{html.escape(self.subtitle)}</div>"
        return head + (html_table(self.rows, inline=True) if self.rows else "")


def html_table(rows: Sequence[Mapping[str, str]], *, inline: bool = False) -> str:
    """Return rows as a table; names and values are escaped, figures stand at the right.

    Parameters
    ----------
    rows : sequence of mapping
        At least one.
    inline : bool
        Whether the table brings its own style, for documents that have none.
    """
    names = list(rows[0])
    words = {names[0]} | {
        name for name in names if not any(re.match(r"[–$]|[−+]*\d", row[name]) for row in rows)
    }

    def cell(tag: str, name: str, text: str) -> str:
        look = (
            f' style="{_CELL} text-align: {"left" if name in words else "right"};"'
            if inline
            else ' class="nest-words"'
            if name in words
            else ""
        )
        return f"<{tag}{look}>{html.escape(text)}</{tag}>"

    head = "".join(cell("th" if name else "td", name, name) for name in names)
    body = "".join(
        f"<tr>{''.join(cell('td', name, row[name]) for name in names)}</tr>" for row in rows
    )
    look = f'style="{_TABLE}"' if inline else 'class="nest-table"'
    return f"<table {look}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
