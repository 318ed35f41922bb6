"""What answers show of themselves in Jupyter: HTML with its own style, for light and dark."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from nest_core.costs.price import Report
from nest_core.explain.summary import fullest, quantity
from nest_core.network.levels import Network
from nest_core.units import humanise_bytes, humanise_rate, humanise_seconds, percent

__all__ = ["heading", "html_table", "line", "network_html", "report_html", "stages_table"]

_CELL = "padding: 2px 10px 2px 0; border-bottom: 1px solid rgba(128, 132, 138, 0.3);"
_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums;"
_QUIET = "opacity: 0.75; font-size: 90%;"

Cells = Sequence[Mapping[str, str]]


def report_html(report: Report) -> str:
    """A priced plan: its figures, why it does not fit if so, and its stages."""
    figures = [
        f"{humanise_seconds(report.iteration_s)} per iteration",
        quantity(report.samples_per_s, "sequences/s"),
        f"MFU {percent(report.mfu)}",
        f"bubble fraction {percent(report.bubble)}",
        f"fullest stage {humanise_bytes(fullest(report)[1].memory.total)} of "
        f"{humanise_bytes(report.memory_limit_bytes)}",
    ]
    fits = "" if report.feasible else line(f"Does not fit: {report.reason}.")
    return f"{heading(report.plan.words)}{line(', '.join(figures))}{fits}{stages_table(report)}"


def network_html(network: Network) -> str:
    """The levels of a network, innermost first."""
    rows = [
        {
            "level": level.name,
            "group size": f"{level.group_size:,}" if level.kind == "nested" else "–",
            "groups": f"{level.groups:,}",
            "links of a child's uplink": f"{level.links:,.4g}",
            "per link": humanise_rate(level.link_bandwidth_Bps),
            "per device, all sending": humanise_rate(level.bandwidth_Bps),
            "latency": humanise_seconds(level.latency_s),
        }
        for level in network.levels
    ]
    title = f"{network.devices:,} devices, {len(network.levels)} levels"
    return f"{heading(title)}{html_table(rows)}"


def html_table(rows: Cells, kind: str = "") -> str:
    """Rows with the same names as a table; everything is escaped, figures stand at the right.

    Parameters
    ----------
    rows : sequence of mapping
    kind : str
        A class of the document's own style; the table then brings none.
    """
    names = list(rows[0]) if rows else []
    right = {name for name in names if all(_figure(row[name]) for row in rows)}

    def cell(tag: str, name: str, text: str) -> str:
        align = "right" if name in right else "left"
        own = "" if kind else _CELL
        return f'<{tag} style="{own} text-align: {align};">{html.escape(text)}</{tag}>'

    head = "".join(cell("th", name, name) for name in names)
    body = "".join(
        "<tr>" + "".join(cell("td", name, row[name]) for name in names) + "</tr>" for row in rows
    )
    look = f'class="{html.escape(kind)}"' if kind else f'style="{_TABLE}"'
    return f"<table {look}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def stages_table(report: Report) -> str:
    """Layers, times and memory of every stage."""
    return html_table(
        [
            {
                "stage": str(number),
                "layers": stage.spans,
                "recomputation": stage.recompute,
                "compute": humanise_seconds(stage.compute_s),
                "communication": humanise_seconds(stage.communication_s),
                "idle": humanise_seconds(stage.idle_s),
                "memory": humanise_bytes(stage.memory.total),
            }
            for number, stage in enumerate(report.stages, start=1)
        ]
    )


def _figure(text: str) -> bool:
    return text[:1].isdigit() or text == "–"


def heading(text: str) -> str:
    """What a table is of."""
    return f"<strong>{html.escape(text)}</strong>"


def line(text: str, *, quiet: bool = False) -> str:
    """A sentence of its own."""
    style = f' style="{_QUIET}"' if quiet else ""
    return f"<div{style}>{html.escape(text)}</div>"
