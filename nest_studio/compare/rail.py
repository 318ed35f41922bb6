"""What is compared, in Compare's rail: names, order, ways to take one out and to add another."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from nest_core.documents import as_markdown, preset_names
from nest_core.report.documents import DESIGN_COLOURS
from nest_core.studies.comparison import FEWEST, LONGEST_NAME, MOST
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
from nest_studio.form.fields import ADDRESS, OneOf, fold, parameter_field, widget
from nest_studio.session.open_plan import open_plan, unsaid

__all__ = ["compared_list", "more_to_find"]

_STYLE = """
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
    st.html(_STYLE)
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
            "One switch failed",
            True,
            key="compare.failures",
            bind=ADDRESS,
            help="Each Clos without its first leaf, and without its first spine: the same plan, "
            "and planned anew.",
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
