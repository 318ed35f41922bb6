"""What Compare shows: the decision as title, fabrics, four figures, and more of both below.

In the rail stands what is compared: names, order, ways to take one out and to add another.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import streamlit as st

from nest_core.api.studies import comparison_result
from nest_core.documents import InputError, as_markdown, at_most_percent, preset_names
from nest_core.report.documents import DESIGN_COLOURS
from nest_core.report.figures import Chart
from nest_core.report.figures.comparison import pictures
from nest_core.report.notebook import output_of
from nest_core.report.picture import Drawn, to_svg
from nest_core.report.sheet import decision_sheet
from nest_core.report.sheet.charts import bill_chart, curve_chart, throughput_chart
from nest_core.report.sheet.sheet import differences, differences_html, differences_title
from nest_core.report.sheet.words import title, why
from nest_core.studies.comparison import FEWEST, LONGEST_NAME, MOST, Comparison
from nest_core.studies.comparison_table import ComparisonLine
from nest_core.studies.decision import Decision
from nest_core.studies.whole_bill import WholeBill
from nest_studio.compare.state import (
    AS_ON_PLAN,
    BUDGET,
    BUDGETS,
    READY_MADE,
    SAME_SIZE,
    THOUSAND,
    CompareEntry,
    add,
    add_same_size,
    compare_page,
    described,
    entries,
    fabric_choices,
    move,
    remove,
    rename,
    same_size_words,
    start_over,
    undo,
    use_set,
)
from nest_studio.components.show import download, facts, show_picture, show_svg
from nest_studio.form import ADDRESS, OneOf, TypedPrices, fold, parameter_field, widget
from nest_studio.jobs.tasks.plans import design_pictures
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.notebook.pins import pin_button
from nest_studio.session.open_plan import open_plan, unsaid

__all__ = [
    "answer",
    "compared_list",
    "comparison_table",
    "figures",
    "more_to_find",
]

_RAIL_STYLE = """
<style>
.st-key-compare-rows { gap: 4px; }
.st-key-compare-rows .stButton button { padding: 0; min-height: 28px; min-width: 24px; }
.st-key-compare-rows [data-testid="stHorizontalBlock"] { gap: 4px; flex-wrap: nowrap; }
.st-key-compare-rows [data-testid="stColumn"] { min-width: 0; }
.nest-swatch { width: 12px; height: 12px; border-radius: 2px;
  border: 1px solid rgba(128, 132, 138, 0.5); }
</style>
"""
_ADD = "compare-add-as"


def compared_list(drawn: Sequence[CompareEntry]) -> None:
    """Draw the list, how to take a change back, and a click for another topology of its size.

    Parameters
    ----------
    drawn : sequence of CompareEntry
        Those that figures have, whose colours they are; the others have none.
    """
    st.html(_RAIL_STYLE)
    history = compare_page().history
    head, back, again = st.columns([1.6, 0.8, 1.2], vertical_alignment="center", gap="small")
    head.html('<div class="nest-title">Compared</div>')
    back.button(
        "Undo",
        on_click=undo,
        disabled=not (history and history.past),
        key="compare-undo",
        type="tertiary",
        help="Take the last change of the list back.",
    )
    again.button(
        "Start over",
        on_click=start_over,
        key="compare-start-over",
        type="tertiary",
        help="The Plan page's job at three ratios.",
    )
    listed = entries()
    colours = {entry.number: colour for entry, colour in zip(drawn, DESIGN_COLOURS, strict=False)}
    with st.container(key="compare-rows"):
        for place, entry in enumerate(listed):
            _row(place, entry, len(listed), colours.get(entry.number, "transparent"))
    with st.popover("Open in Plan", type="tertiary", key="compare-open"):
        for entry in listed:
            st.button(
                as_markdown(entry.name),
                key=f"compare-plan-{entry.number}",
                on_click=open_plan,
                args=(entry.scenario,),
                width="stretch",
                help=as_markdown(f"{described(entry)}. {unsaid(entry.scenario)}"),
            )
    widget(
        _ADD,
        OneOf(SAME_SIZE, empty=True),
        None,
        label=f"Add {as_markdown(same_size_words())} as …",
        bind=None,
        placeholder="topology or ratio",
        on_change=add_same_size,
        args=(_ADD,),
        disabled=len(listed) >= MOST,
        help="The first scenario's job, devices, NICs and rates in another topology at full "
        "bisection wherever it allows that, or at another ratio of its innermost tier.",
    )
    if compare_page().refused:
        st.error(as_markdown(compare_page().refused))


def _row(place: int, entry: CompareEntry, count: int, colour: str) -> None:
    swatch, name, up, down, out = st.columns(
        [12, 92, 24, 24, 24], vertical_alignment="center", gap="small"
    )
    number, key = entry.number, f"compare-name-{entry.number}"
    swatch.html(f'<div class="nest-swatch" style="background: {colour}"></div>')
    if st.session_state.get(key, entry.name) != entry.name:
        st.session_state[key] = entry.name  # told apart from another, or taken back
    name.text_input(
        f"Name of scenario {place + 1}",
        entry.name,
        max_chars=LONGEST_NAME,
        key=key,
        on_change=rename,
        args=(number, key),
        label_visibility="collapsed",
        help=as_markdown(described(entry)),
    )
    up.button(
        "↑",
        key=f"compare-up-{number}",
        on_click=move,
        args=(number, -1),
        disabled=place == 0,
        type="tertiary",
        help=as_markdown(f"Move {entry.name} up; others are read against the first."),
    )
    down.button(
        "↓",
        key=f"compare-down-{number}",
        on_click=move,
        args=(number, 1),
        disabled=place == count - 1,
        type="tertiary",
        help=as_markdown(f"Move {entry.name} down."),
    )
    out.button(
        "×",
        key=f"compare-remove-{number}",
        on_click=remove,
        args=(number,),
        type="tertiary",
        help=as_markdown(f"Take {entry.name} out."),
    )


def more_to_find() -> dict[str, Any]:
    """Draw other scenarios, then budget, failures and NEST's program; return what is asked."""
    with fold("Other scenarios", "fold-scenarios") as summary:
        summary("presets")
        st.selectbox(
            "Ready-made",
            tuple(READY_MADE),
            index=None,
            key="compare-set",
            placeholder="Choose a comparison",
            on_change=use_set,
            args=("compare-set",),
            help="Replaces what is compared; Undo brings it back.",
        )
        source = st.selectbox(
            "Scenario",
            (AS_ON_PLAN, *preset_names("scenarios")),
            key="compare-add-scenario",
            help="A preset, or what the Plan page last showed, with its changes.",
        )
        fabric = st.selectbox(
            "On the fabric",
            fabric_choices(),
            key="compare-add-fabric",
            help="Its own, or the same job on another fabric as that stands in its preset.",
        )
        st.button(
            "Add",
            on_click=add,
            args=(source, fabric),
            disabled=len(entries()) >= MOST,
            key="compare-add",
            width="stretch",
            help=f"{FEWEST} to {MOST} scenarios.",
        )
    with fold("Also find", "fold-find") as summary:
        picked = st.selectbox(
            "Equal budget",
            tuple(BUDGETS),
            key="compare.budget",
            bind=ADDRESS,
            help="How many nodes each design joins for the same network price or power, and what "
            "the job reaches on them.",
        )
        asks: dict[str, Any] = {"budget": None}
        if kind := BUDGETS[picked]:
            look: dict[str, Any] = {"step": 100, "placeholder": "as the first network"}
            value = parameter_field(BUDGET[kind], None, key="compare.budget_value", **look)
            asks["budget"] = {"kind": kind, "value": None if value is None else value * THOUSAND}
        asks["failures"] = st.toggle(
            "Worst single failure",
            True,
            key="compare.failures",
            bind=ADDRESS,
            help="Every device, node, NIC, link and switch fails, one at a time, those that are "
            "alike once: the same plan, and planned anew with the bill's spare nodes.",
        )
        asks["level_wise"] = st.toggle(
            "NEST's level-wise program",
            False,
            key="compare.level_wise",
            bind=ADDRESS,
            help="The paper's own program beside the exact search: what it promised, what it "
            "takes, and what the difference comes from. Some seconds for each scenario.",
        )
        summary("budget, failures")
    return asks


KEPT = 8

_STYLE = """
<style>
.nest-differs { background: rgba(128, 132, 138, 0.2); font-weight: 600; }
.nest-compare { width: 100%; border-collapse: collapse; font-size: var(--small); line-height: 16px;
  font-variant-numeric: tabular-nums; table-layout: fixed; }
.nest-compare :is(th, td) { text-align: left; vertical-align: top; padding: 0.25rem 0.55rem;
  border-bottom: 1px solid rgba(128, 132, 138, 0.2); overflow-wrap: anywhere; font-weight: 400; }
.nest-compare td { border-left: 2px solid transparent; }
.nest-compare td.nest-differs { font-weight: 600; }
.nest-compare thead th { border-bottom: 1px solid rgba(128, 132, 138, 0.6); font-weight: 600; }
.nest-compare thead th i { display: inline-block; width: 0.8em; height: 0.8em;
  margin-right: 0.4em; }
.nest-compare tbody th { opacity: 0.85; }
.nest-compare .nest-part th { padding-top: 0.8rem; color: var(--ink3); font-weight: 600;
  opacity: 1; }
.nest-answer { font-size: 24px; line-height: 32px; font-weight: 600; letter-spacing: -0.2px; }
.nest-below { font-size: 14px; line-height: 20px; opacity: 0.85; }
.nest-figure-title { font-size: 14px; line-height: 20px; font-weight: 600; }
.nest-figure-sub { font-size: 12px; line-height: 16px; opacity: 0.8; }
.nest-design { font-size: 14px; line-height: 20px; }
.nest-design b { font-weight: 600; margin-right: 8px; }
.nest-plan-line { font-size: 12px; line-height: 16px; opacity: 0.85; min-height: 16px; }
.nest-silhouette svg { width: 100%; height: auto; max-height: 170px; }
.nest-by-width-narrow { display: block; } .nest-by-width-wide { display: none; }
@media (min-width: 1400px) {
  .nest-by-width-narrow { display: none; } .nest-by-width-wide { display: block; } }
@media (max-width: 1250px) {
  .st-key-compare-figures [data-testid="stHorizontalBlock"] { flex-wrap: wrap; }
  .st-key-compare-figures [data-testid="stColumn"] { flex: 1 1 484px; min-width: 484px; } }
.nest-apart { width: 100%; border-collapse: collapse; font-size: 14px; line-height: 20px;
  font-variant-numeric: tabular-nums; }
.nest-apart :is(th, td) { padding: 8px 0 8px 8px; text-align: right; font-weight: 400;
  border-bottom: 1px solid rgba(128, 132, 138, 0.3); vertical-align: baseline; }
.nest-apart :is(th, td):first-child { text-align: left; padding-left: 0; }
.nest-apart thead th, .nest-apart td.ours { font-weight: 600; }
.nest-apart small { font-size: 12px; opacity: 0.8; margin-right: 6px; white-space: nowrap; }
.st-key-compare-answer { gap: 12px; }
</style>
"""


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _drawn(key: str, _comparison: Comparison) -> tuple[Chart, ...]:
    """Return the pictures of a comparison, by the key of its job and its prices."""
    return pictures(_comparison)


def figures(key: str, comparison: Comparison, *, pending: bool) -> None:
    """Draw stages and levels, and last what takes longest; throughput stands in the answer.

    ``pending`` says that designs, equal budget or failed switches are still to come.
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
        for name, colour in zip(names, DESIGN_COLOURS, strict=False)
    )
    body, part = "", ""
    for line in lines:
        if line.part != part:
            part = line.part
            body += (
                f'<tr class="nest-part"><th scope="rowgroup" colspan="{len(names) + 1}">'
                f"{html.escape(part)}</th></tr>"
            )
        marks = (' class="nest-differs"' if differs else "" for differs in line.differs)
        cells = "".join(
            f"<td{mark}>{html.escape(text)}</td>"
            for text, mark in zip(line.texts, marks, strict=True)
        )
        body += f'<tr><th scope="row">{html.escape(line.figure)}</th>{cells}</tr>'
    return (
        f'<table class="nest-compare"><colgroup><col style="width: {width:.1f}%"></colgroup>'
        f'<thead><tr><th scope="col">figure</th>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


_SILHOUETTE_PX = 298.0
_NARROW_PX, _WIDE_PX = 484.0, 548.0
"""Of figures: half of the page at a window of 1280 and of 1440 pixels."""
_ABREAST = 3
_HEADS = 2


def answer(
    comparison: Comparison, inputs: dict[str, Any], typed: TypedPrices, *, pending: bool
) -> None:
    """Title, pictures and figures; a sentence in their place where nothing can be weighed.

    Parameters
    ----------
    comparison : Comparison
        Under the prices of the rail.
    inputs : mapping
        What it was asked, for a notebook.
    typed : TypedPrices
        What the rail changes of the price list, the share of hours, what a failure may cost.
    pending : bool
        Whether searches, such as of failed switches, may still change the answer.
    """
    st.html(_STYLE)
    try:
        decision = comparison.decision()
    except InputError as error:
        st.html('<h1 class="nest-answer">There is nothing to decide</h1>')
        st.error(as_markdown(error))
        _pictures(comparison.candidates)
        return
    words, buttons = st.columns([5, 2], vertical_alignment="top")
    below, rule = why(decision), [decision.rule]
    start = "So far: " if pending else ""
    words.html(f'<h1 class="nest-answer">{start}{html.escape(title(decision))}</h1>')
    question = {**inputs, "prices": dict(typed.changes), "assumed": dict(typed.assumed)}
    with buttons, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        pin_button(
            "comparison",
            " or ".join(bill.name for bill in decision.listed),
            question,
            key="compare",
            output=lambda: output_of(comparison_result(comparison)),
        )
        st.download_button(
            "Decision sheet",
            lambda: decision_sheet(decision, datetime.now(), question=question),
            "decision-sheet.html",
            "text/html",
            on_click="ignore",
            type="primary",
            key="compare-sheet",
            help="One page for a committee and one of sources, to print from the browser.",
        )
    for kind, lines in (("below", below), ("plan-line", rule)):
        st.html(f'<div class="nest-{kind}">{"<br>".join(map(html.escape, lines))}</div>')
    _pictures([*decision.bills, *decision.left_out])
    with st.container(key="compare-figures"):
        _figures(decision)


def _figures(decision: Decision) -> None:
    """Two by two, and one below another where the window is narrow."""
    charts: Mapping[str, Callable[[float], Drawn]] = {
        "curve": lambda px: curve_chart(decision, px, 224.0),
        "speed": lambda px: throughput_chart(decision, px),
        "bill": lambda px: bill_chart(decision, px),
    }
    *places, last = *st.columns(2, gap="medium"), *st.columns(2, gap="medium")
    for place, (key, chart) in zip(places, charts.items(), strict=True):
        with place:
            _figure(key, [chart(px) for px in (_NARROW_PX, _WIDE_PX)])
    with last:
        _head(
            differences_title(decision),
            f"Days with failures; differences to {decision.best.name} before each figure, ties "
            "with their paired interval",
        )
        st.html(differences_html(decision, differences(decision)))


def _pictures(bills: Sequence[WholeBill]) -> None:
    """Draw the fabrics abreast, each with its plan in a line."""
    planned = [bill for bill in bills if bill.scenario is not None]
    designs = tuple(
        (bill.scenario.fabric, bill.report.plan if bill.report else None)
        for bill in planned
        if bill.scenario is not None
    )
    pictures: tuple[Drawn, ...] | None = panel(
        submitted(design_pictures, designs, _SILHOUETTE_PX, place="designs"),
        "Drawing the fabrics",
        key="designs",
    )
    for start in range(0, len(planned), _ABREAST):
        columns = st.columns(_ABREAST, gap="medium")
        abreast = range(start, min(start + _ABREAST, len(planned)))
        for column, place in zip(columns, abreast, strict=False):
            with column:
                _picture(planned[place], pictures[place] if pictures else None, first=place == 0)


def _picture(bill: WholeBill, drawn: Drawn | None, *, first: bool) -> None:
    """Draw a fabric by its upper tiers and its ratio, over its plan in a line."""
    name = f"<b>{html.escape(bill.name)}{', the choice' * first}</b>"
    if drawn is None or bill.scenario is None:
        st.html(f'<div class="nest-design">{name}</div>')
    else:
        parts = [label.head for label in drawn.labels[:_HEADS] if label.head]
        ratio = bill.scenario.fabric.ratio_words().strip()
        words = ", ".join([*parts, f"{ratio} down : up"] if ratio else parts)
        st.html(f'<div class="nest-design">{name}{html.escape(words)}</div>')
        show_svg(f'<div class="nest-silhouette">{to_svg(drawn)}</div>', key=f"picture-{bill.name}")
    gap = (
        bill.gap and f"; a better one may be up to {at_most_percent(1 / (1 - bill.gap) - 1)} faster"
    )
    plan = (
        f"Best plan: {bill.report.plan.words}{gap or ''}"
        if bill.report
        else f"No plan: {bill.reason}"
    )
    st.html(f'<div class="nest-plan-line">{html.escape(plan)}</div>')


def _figure(key: str, drawn: Sequence[Drawn]) -> None:
    """Draw a chart for narrow windows and one for wide ones, so that words keep their size."""
    if not drawn[0].marks:
        return
    _head(drawn[0].title, drawn[0].subtitle)
    parts = zip(("narrow", "wide"), drawn, strict=True)
    show_svg(
        "".join(f'<div class="nest-by-width-{name}">{to_svg(bar)}</div>' for name, bar in parts),
        key=f"compare-{key}",
    )


def _head(title: str, subtitle: str) -> None:
    st.html(
        f'<div class="nest-figure-title">{html.escape(title)}</div>'
        f'<div class="nest-figure-sub">{html.escape(subtitle)}</div>'
    )
