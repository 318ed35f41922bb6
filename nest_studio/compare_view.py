"""The parts of the Compare page, from the top down."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st

from nest_core.bill.prices import load_prices
from nest_core.figures import Picture
from nest_core.figures.comparison import SCENARIO_COLOURS, pictures
from nest_core.figures.comparison_words import formulae, unlike
from nest_core.presets import preset_names
from nest_core.quoting import as_markdown
from nest_core.studies.comparison import FEWEST, LONGEST_NAME, MOST, Comparison
from nest_core.studies.comparison_table import Line
from nest_core.studies.whole_cost import DEVICE_USD, device_price
from nest_studio.compare_state import (
    AS_ON_PLAN,
    BUDGET,
    BUDGETS,
    READY_MADE,
    THOUSAND,
    Entry,
    add,
    can_undo,
    described,
    entries,
    fabric_choices,
    move,
    remove,
    rename,
    start_over,
    undo,
    use_set,
)
from nest_studio.fields import ADDRESS, field_of, number_of, settle
from nest_studio.open_plan import open_plan, unsaid
from nest_studio.pins import pin_button
from nest_studio.show import PicturePlace, download, facts

__all__ = [
    "chosen_budget",
    "chosen_device",
    "chosen_failures",
    "chosen_level_wise",
    "comparison_table",
    "figures",
    "scenario_rows",
    "sidebar_controls",
]

KEPT = 8

_STYLE = """
<style>
.st-key-compare-rows { gap: 0.25rem; }
.st-key-compare-rows .stButton button { padding: 0 0.35rem; min-height: 2.2rem; }
.nest-swatch { width: 0.85rem; height: 0.85rem; border-radius: 2px;
  border: 1px solid rgba(128, 132, 138, 0.5); }
.nest-entry { font-size: 0.85rem; line-height: 1.3; opacity: 0.85; overflow-wrap: anywhere; }
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


def sidebar_controls() -> None:
    """Ready-made sets, and what to add."""
    st.subheader("Compare")
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
    st.subheader("Add a scenario")
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
    full = len(entries()) >= MOST
    st.button(
        "Add",
        on_click=add,
        args=(source, fabric),
        disabled=full,
        key="compare-add",
        width="stretch",
        help=f"{FEWEST} to {MOST} scenarios.",
    )
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Undo",
            on_click=undo,
            disabled=not can_undo(),
            key="compare-undo",
            type="tertiary",
            help="Take the last change of the list back.",
        )
        st.button(
            "Start over",
            on_click=start_over,
            key="compare-start-over",
            type="tertiary",
            help="The Plan page's job at three ratios.",
        )


def chosen_budget() -> dict[str, Any] | None:
    """The budget that is asked for, as `run` takes it."""
    st.subheader("Also find")
    picked = st.selectbox(
        "Equal budget",
        tuple(BUDGETS),
        key="compare.budget",
        bind=ADDRESS,
        help="How many nodes each design joins for the same network price or power, and what "
        "the job reaches on them.",
    )
    kind = BUDGETS[picked]
    if kind is None:
        return None
    of, key = BUDGET[kind], "compare.budget_value"
    settle(key, field_of(of, empty=True))
    value = number_of(of, None, 100.0, key=key, placeholder="as the first network")
    return {"kind": kind, "value": None if value is None else value * THOUSAND}


def chosen_device(accelerators: Collection[str]) -> float | None:
    """The price of an accelerator with its share of the server, US dollars; None as assumed."""
    listed = device_price(next(iter(accelerators)), load_prices()) if accelerators else None
    one = len(accelerators) == 1 and listed is not None
    placeholder = f"{listed.usd:,.0f}, assumed" if one and listed else "differs by accelerator"
    basis = f"Assumed: {listed.basis}." if one and listed else ""
    settle("compare.device_usd", field_of(DEVICE_USD, empty=True))
    found: float | None = number_of(
        DEVICE_USD,
        None,
        1000.0,
        key="compare.device_usd",
        placeholder=placeholder,
        format="%.0f",
        disabled=not one,
        help=f"{DEVICE_USD.allowed}. {DEVICE_USD.text} {as_markdown(basis)}",
    )
    return found if one else None


def chosen_failures() -> bool:
    """Whether the loss of a switch is asked for."""
    return bool(
        st.toggle(
            "One switch failed",
            True,
            key="compare.failures",
            bind=ADDRESS,
            help="Each Clos without its first leaf, and without its first spine: the same plan, "
            "and planned anew.",
        )
    )


def chosen_level_wise() -> bool:
    """Whether NEST's program is asked for."""
    return bool(
        st.toggle(
            "NEST's level-wise program",
            False,
            key="compare.level_wise",
            bind=ADDRESS,
            help="The paper's own program beside the exact search: what it promised, what it "
            "takes, and what the difference comes from. Some seconds for each scenario.",
        )
    )


def scenario_rows(drawn: Sequence[Entry]) -> None:
    """What is compared: names to edit, order, and ways to take one out.

    Parameters
    ----------
    drawn : sequence of Entry
        Those that figures have, whose colours they are; the others have none.
    """
    st.html(_STYLE)
    every = entries()
    colours = {one["id"]: colour for one, colour in zip(drawn, SCENARIO_COLOURS, strict=False)}
    with st.container(key="compare-rows"):
        for place, one in enumerate(every):
            _row(place, one, len(every), colours.get(one["id"], "transparent"))


def _row(place: int, one: Entry, count: int, colour: str) -> None:
    swatch, name, words, plan, up, down, out = st.columns(
        [0.25, 2.2, 6.1, 0.9, 0.45, 0.45, 0.9], vertical_alignment="center", gap="small"
    )
    swatch.html(f'<div class="nest-swatch" style="background: {colour}"></div>')
    number, key = one["id"], f"compare-name-{one['id']}"
    if st.session_state.get(key, one["name"]) != one["name"]:
        st.session_state[key] = one["name"]  # told apart from another, or taken back
    name.text_input(
        f"Name of scenario {place + 1}",
        one["name"],
        max_chars=LONGEST_NAME,
        key=key,
        on_change=rename,
        args=(number, key),
        label_visibility="collapsed",
    )
    words.html(f'<div class="nest-entry">{html.escape(described(one))}</div>')
    plan.button(
        "Plan",
        key=f"compare-plan-{number}",
        on_click=open_plan,
        args=(one["scenario"], one["overrides"]),
        width="stretch",
        help=as_markdown(f"Open {one['name']} in Plan. {unsaid(one['overrides'])}"),
    )
    up.button(
        "↑",
        key=f"compare-up-{number}",
        on_click=move,
        args=(number, -1),
        disabled=place == 0,
        help=as_markdown(f"Move {one['name']} up; others are read against the first."),
        width="stretch",
    )
    down.button(
        "↓",
        key=f"compare-down-{number}",
        on_click=move,
        args=(number, 1),
        disabled=place == count - 1,
        help=as_markdown(f"Move {one['name']} down."),
        width="stretch",
    )
    out.button(
        "Remove",
        key=f"compare-remove-{number}",
        on_click=remove,
        args=(number,),
        help=as_markdown(f"Take {one['name']} out."),
        width="stretch",
    )


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _drawn(key: str, _comparison: Comparison) -> tuple[Picture, ...]:
    """The pictures of a comparison; its job's key and the accelerator's price say which."""
    return pictures(_comparison)


def figures(key: str, comparison: Comparison, *, pending: bool) -> None:
    """Throughput, price and value, stages, levels; last what takes longest.

    ``pending`` says that equal budget or failed switches are still to come.
    """
    if told := unlike(comparison):
        st.info("  \n".join(map(as_markdown, told)))
    device = comparison.device and comparison.device.usd
    first, cost, value, *asked, balance, levels = _drawn(f"{key} {device}", comparison)
    PicturePlace("compare-throughput").draw(first)
    _abreast("cost", [cost, value])
    PicturePlace("compare-balance").draw(balance)
    PicturePlace("compare-levels").draw(levels)
    if pending:
        facts("What takes several more searches is being planned …", kind="nest-quiet")
    _abreast("asked", asked)


def _abreast(row: str, shown: list[Picture]) -> None:
    columns = st.columns(len(shown), gap="medium") if shown else ()
    for place, (column, picture) in enumerate(zip(columns, shown, strict=True)):
        PicturePlace(f"compare-{row}-{place}", column).draw(picture)


def comparison_table(comparison: Comparison, inputs: dict[str, Any]) -> None:
    """All figures; what differs from the first is marked. ``inputs`` go into a notebook."""
    lines = comparison.lines()
    apart = [line for line in lines if any(line.differs)]
    left, right = st.columns([5, 6], vertical_alignment="bottom")
    with left:
        facts("All figures side by side", kind="nest-title")
        facts(
            f"{len(apart)} of {len(lines)} differ from the first scenario; those are marked",
            kind="nest-subtitle",
        )
    with right, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        only = st.toggle("Only what differs", True, key="compare.only", bind=ADDRESS)
        download(
            "↓ Table (CSV)",
            comparison.to_csv,
            "comparison.csv",
            "text/csv",
            help="Plain numbers with their units, all figures.",
        )
        names = " or ".join(entry["name"] for entry in inputs["entries"])
        pin_button("comparison", names, inputs, key="compare", rows=comparison.rows)
        with st.popover("Formulae", type="tertiary"):
            for formula, numbers in formulae(comparison):
                facts(formula)
                facts(*numbers, kind="nest-quiet")
    shown = apart if only else list(lines)
    if not shown:
        facts("Nothing differs: these are the same scenario.", kind="nest-quiet")
        return
    st.html(_table([one.name for one in comparison.candidates], shown))


def _table(names: list[str], lines: list[Line]) -> str:
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
