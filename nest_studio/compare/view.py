"""What the Compare page keeps below its answer: more figures, and all of them in a table."""

from __future__ import annotations

import html

import streamlit as st

from nest_core.report.figures import Picture
from nest_core.report.figures.comparison import SCENARIO_COLOURS, pictures
from nest_core.studies.comparison import Comparison
from nest_core.studies.comparison_table import ComparisonLine
from nest_studio.components.show import download, facts, show_picture
from nest_studio.form.fields import ADDRESS

__all__ = ["comparison_table", "figures"]

KEPT = 8

_STYLE = """
<style>
.nest-differs { background: rgba(128, 132, 138, 0.2); font-weight: 600; }
.nest-compare { width: 100%; border-collapse: collapse; font-size: 0.85rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; table-layout: fixed; }
.nest-compare :is(th, td) { text-align: left; vertical-align: top; padding: 0.25rem 0.55rem;
  border-bottom: 1px solid rgba(128, 132, 138, 0.2); overflow-wrap: anywhere; font-weight: 400; }
.nest-compare td { border-left: 2px solid transparent; }
.nest-compare td.nest-differs { font-weight: 600; }
.nest-compare thead th { border-bottom: 1px solid rgba(128, 132, 138, 0.6); font-weight: 600; }
.nest-compare thead th i { display: inline-block; width: 0.8em; height: 0.8em;
  margin-right: 0.4em; }
.nest-compare tbody th { opacity: 0.85; }
.nest-compare .nest-part th { padding-top: 0.8rem; font-size: 0.82rem; opacity: 0.75;
  text-transform: uppercase; letter-spacing: 0.05em; font-weight: 600; }
</style>
"""


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _drawn(key: str, _comparison: Comparison) -> tuple[Picture, ...]:
    """The pictures of a comparison, by the key of its job and its prices."""
    return pictures(_comparison)


def figures(key: str, comparison: Comparison, *, pending: bool) -> None:
    """Draw stages and levels, and last what takes longest; throughput stands in the answer.

    ``pending`` says that equal budget or failed switches are still to come.
    """
    _, *searched, balance, levels = _drawn(key, comparison)
    show_picture(balance, "compare-balance")
    show_picture(levels, "compare-levels")
    if pending:
        facts("What takes several more searches is being planned …", kind="nest-quiet")
    columns = st.columns(len(searched), gap="medium") if searched else ()
    for place, (column, picture) in enumerate(zip(columns, searched, strict=True)):
        show_picture(picture, f"compare-asked-{place}", column)


def comparison_table(comparison: Comparison) -> None:
    """All figures; what differs from the first is marked."""
    st.html(_STYLE)
    lines = comparison.lines()
    differing = [line for line in lines if any(line.differs)]
    words, controls = st.columns([5, 6], vertical_alignment="bottom")
    with words:
        facts("All figures side by side", kind="nest-title")
        facts(
            f"{len(differing)} of {len(lines)} differ from the first scenario; those are marked",
            kind="nest-subtitle",
        )
    with controls, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        only = st.toggle("Only what differs", True, key="compare.only", bind=ADDRESS)
        download(
            "↓ Table (CSV)",
            comparison.to_csv,
            "comparison.csv",
            "text/csv",
            help="Plain numbers with their units, all figures.",
        )
    visible = differing if only else list(lines)
    if not visible:
        facts("Nothing differs: these are the same scenario.", kind="nest-quiet")
        return
    st.html(_table([candidate.name for candidate in comparison.candidates], visible))


def _table(names: list[str], lines: list[ComparisonLine]) -> str:
    width = 100 / (len(names) + 1)
    head = "".join(
        f'<th scope="col"><i style="background: {colour}"></i>{html.escape(name)}</th>'
        for name, colour in zip(names, SCENARIO_COLOURS, strict=False)
    )
    body, part = "", ""
    for line in lines:
        if line.part != part:
            part = line.part
            body += (
                f'<tr class="nest-part"><th scope="rowgroup" colspan="{len(names) + 1}">'
                f"{html.escape(part)}</th></tr>"
            )
        cells = "".join(
            f"<td{_mark(differs)}>{html.escape(text)}</td>"
            for text, differs in zip(line.texts, line.differs, strict=True)
        )
        body += f'<tr><th scope="row">{html.escape(line.figure)}</th>{cells}</tr>'
    return (
        f'<table class="nest-compare"><colgroup><col style="width: {width:.1f}%"></colgroup>'
        f'<thead><tr><th scope="col">figure</th>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _mark(differs: bool) -> str:
    return ' class="nest-differs"' if differs else ""
