"""The drawing on the fabric page: the canvas, the tables beside it, and what edits do.

A preset is shown to be looked at; `OWN` is edited. Every edit, by mouse or in a table, is a new
document in `nest_studio.session.own_fabric`, so that undo knows them all. Forms beside the
canvas add parts to a drawing, and set the ratio of a drawn tier.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd
import streamlit as st

from nest_core.calibration.collectives.sweep import CollectiveSweep
from nest_core.documents import InputError, as_markdown, format_ratio, plural, require
from nest_core.fabric.drawing import (
    MAX_DRAWN,
    Drawing,
    duplicated,
    edited,
    empty_drawing,
    named,
    tabled,
)
from nest_core.fabric.tiers import (
    TEMPLATES,
    DrawnTier,
    TemplatePart,
    added,
    cut_off,
    oversubscribed,
    tiers_of,
    unlinked,
    with_spines,
)
from nest_core.report.picture import Drawn
from nest_core.scenario import Scenario
from nest_studio.components.drawing.canvas import CanvasResult, canvas, pending
from nest_studio.components.show import facts
from nest_studio.form import (
    Edits,
    Number,
    OneOf,
    Text,
    Widget,
    reset_fabric,
    settle,
    widget,
    widget_value,
)
from nest_studio.jobs.tasks.fabrics import CollectiveRequest, FabricAnswer, fabric_losses
from nest_studio.jobs.waiting import WorkerCrash, submitted
from nest_studio.session.own_fabric import (
    OWN,
    change,
    forget_places,
    is_drawing,
    own_document,
    own_fabric,
    redo,
    start,
    undo,
)
from nest_studio.session.stored import session_value

__all__ = [
    "DesignPage",
    "design_page",
    "drawing_forms",
    "drawing_section",
    "edit_button",
    "new_drawing",
    "own_from",
    "take_up_edits",
]

EVERY = "all"
_Standard = int | float | str
_FIELDS: dict[str, tuple[str, Widget, _Standard]] = {
    "copies": ("Copies, number", Number(1, 1024), 4),
    "word": ("Names", Text(), "rack"),
    "nodes": ("Servers in each, number", Number(1, 1024), 4),
    "devices": ("Devices of a server, number", Number(1, 256), 8),
    "nic_GBps": ("NIC of a device, GB/s", Number(0.001, 1e6), 50.0),
    "inside_GBps": ("Inside servers, GB/s per device", Number(0.001, 1e6), 450.0),
    "radix": ("Ports of a switch, number", Number(2, 65_536), 64),
}
_SPINES: dict[str, tuple[str, Widget, _Standard]] = {
    "switches": ("Spines, number", Number(1, 65_536), 4),
    "ratio": ("Oversubscription below them, down : up", Number(0.01, 1e3), 1.0),
    "link_GBps": ("Link, GB/s", Number(0.001, 1e6), 50.0),
    "word": ("Names", Text(), "spine"),
}
_TEMPLATE = OneOf(tuple(TEMPLATES))
_RATIO = Number(0.01, 1e4)


def drawing_forms(drawing: Drawing) -> None:
    """Draw templates, spines and ratios; what was refused or hangs loose stands below them."""
    with st.container(horizontal=True, gap="small"):
        with st.popover("Add racks, rails or pods"):
            widget(
                "template",
                _TEMPLATE,
                _TEMPLATE.options[0],
                label="Each is",
                bind=None,
                format_func=lambda name: f"{name}: {TEMPLATES[name][0]}",
                help="What is added as often as asked, beside what is drawn.",
            )
            _inputs("template", _FIELDS)
            st.button("Add to the drawing", on_click=_add, key="template.add")
        with st.popover("Add spines"):
            facts("Over every switch that nothing is above.", kind="nest-quiet")
            _inputs("spines", _SPINES)
            st.button("Add to the drawing", on_click=_add_spines, key="spines.add")
    try:
        tiers = tiers_of(named(drawing))
    except InputError as error:
        facts(str(error))
        return
    if tiers:
        _ratio(tiers)
    if problem := design_page().problems.pop("template", None):
        st.error(as_markdown(problem))
    if loose := unlinked(drawing):
        others = f" and {len(loose) - 1:,} more have" if len(loose) > 1 else " has"
        st.warning(as_markdown(f"{loose[0]}{others} no link: draw one, or delete it."))
    if lost := cut_off(named(drawing)):
        st.button(
            f"Take away the {plural(len(lost), 'element')} without a path to the others",
            on_click=_remove,
            args=(set(lost),),
            key="cut-off",
            help=as_markdown(f"{', '.join(lost[:3])}, … Undo brings them back."),
        )


def _inputs(form: str, fields: dict[str, tuple[str, Widget, _Standard]]) -> None:
    for name, (label, takes, standard) in fields.items():
        look: dict[str, Any] = {"max_chars": 40, "help": "Numbers are added."}
        if isinstance(takes, Number):
            look = {"help": f"{takes.low:g} to {takes.high:,.0f}."}
        widget(f"{form}.{name}", takes, standard, label=label, bind=None, **look)


def _answers(form: str, fields: dict[str, tuple[str, Widget, _Standard]]) -> dict[str, _Standard]:
    return {
        name: standard if (answer := widget_value(f"{form}.{name}", takes)) is None else answer
        for name, (_, takes, standard) in fields.items()
    }


def _put(make: Callable[[Drawing], Drawing]) -> None:
    """Change the drawing, or say why not; for callbacks."""
    document = own_document()
    if document is None:
        return
    with design_page().noting("template"):
        change(make(named(document)))
        reset_fabric()


def _add() -> None:
    template = widget_value("template", _TEMPLATE)
    answers = _answers("template", _FIELDS)
    _put(lambda drawing: added(drawing, TemplatePart(template or "rack", **answers)))  # type: ignore[arg-type]  # of the types of their standards


def _add_spines() -> None:
    answers = _answers("spines", _SPINES)
    _put(lambda drawing: with_spines(drawing, **answers))  # type: ignore[arg-type]  # as above


def _remove(lost: set[str]) -> None:
    def make(drawing: Drawing) -> Drawing:
        links = (link for link in drawing["link"] if not lost & {link["a"], link["b"]})
        rest = (entry for entry in drawing["element"] if entry["id"] not in lost)
        return edited(drawing, rest, links)

    _put(make)


def _ratio(tiers: tuple[DrawnTier, ...]) -> None:
    """Choose a tier, all of it or a group's, and say its ratio."""
    first, second, third = st.columns([2, 2, 2], vertical_alignment="bottom")
    # Without their number: a chosen tier whose number changes would stay as it was called before.
    names = tuple(
        tier.name
        if sum(other.name == tier.name for other in tiers) == 1
        else f"{tier.name}, tier {at}"
        for at, tier in enumerate(tiers, 1)
    )
    at = names.index(
        widget(
            "tier",
            OneOf(names),
            names[0],
            label="Drawn tier",
            place=first,
            bind=None,
            help="Switches with links up.",
        )
    )
    tier = tiers[at]
    group = widget(
        "tier.group",
        OneOf((EVERY, *tier.groups)),
        EVERY,
        label="Of it",
        place=second,
        bind=None,
        help="All, or those of a group.",
    )
    key = f"tier.ratio.{own_fabric().revision}.{at}.{group}"
    widget(
        key,
        _RATIO,
        round(tier.ratio, 3),
        label="Oversubscription, down : up",
        place=third,
        bind=None,
        on_change=_oversubscribe,
        args=(key, tier.name, at, group),
        help="0.01 to 10,000. Links up are added or removed whole; what it became stands below.",
    )
    low, high = tier.links_up
    links = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    facts(
        f"Realised {format_ratio(tier.ratio)} at most, {links} links up from each of "
        f"{len(tier.switches):,} {tier.name} switches.",
        kind="nest-quiet",
    )


def _oversubscribe(key: str, name: str, at: int, group: str) -> None:
    ratio = widget_value(key, _RATIO)
    if ratio is None:
        return

    def make(drawing: Drawing) -> Drawing:
        tiers = tiers_of(drawing)
        require(
            at < len(tiers) and tiers[at].name == name,
            "ratio",
            "must be of a tier of the drawing",
            name,
            "choose again",
        )
        groups = {e["id"]: (e.get("group") or "").split("/")[0] for e in drawing["element"]}
        chosen = [name for name in tiers[at].switches if group in (EVERY, groups[name])]
        return oversubscribed(drawing, chosen, ratio)

    _put(make)


@dataclass
class DesignPage:
    """What Design keeps of a session.

    Parameters
    ----------
    answer : (Scenario, FabricAnswer) or None
        The last fabric that was one, and what it comes to.
    drawn : (Scenario, Drawn) or None
        The last picture, and of what.
    sweep : tuple or None
        The last collective: of what, what was asked, times, what it waits for.
    library_scenario : Scenario or None
        What the library's button saves.
    problems : dict of str to str
        What the last callbacks could not do, by the part of the page that says it.
    imported_revision : int or None
        Of the own fabric as it was read from a file.
    prices : dict
        What differs from the listed prices, by dotted key; widgets are gone on other pages.
    """

    answer: tuple[Scenario, FabricAnswer] | None = None
    drawn: tuple[Scenario, Drawn] | None = None
    sweep: tuple[Scenario, CollectiveRequest, CollectiveSweep, tuple[str, str]] | None = None
    library_scenario: Scenario | None = None
    problems: dict[str, str] = field(default_factory=dict)
    imported_revision: int | None = None
    prices: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def noting(self, part: str) -> Iterator[None]:
        """Note what is refused in this block, for the part of the page that says it."""
        self.problems.pop(part, None)
        try:
            yield
        except InputError as error:
            self.problems[part] = str(error)


def design_page() -> DesignPage:
    """Return what this session's Design keeps."""
    return session_value(DesignPage)


CANVAS = "canvas"
HEIGHT = 560
ROLES = ("device", "nic", "switch")
COLUMNS = {
    "id": "string",
    "role": "string",
    "radix": "Int64",
    "group": "string",
    "a": "string",
    "b": "string",
    "bandwidth_GBps": "float64",
    "count": "Int64",
    "latency_us": "float64",
}

_ANY, _WHOLE = Number(-1e300, 1e300, empty=True), Number(-(2**53), 2**53, empty=True)
_CELLS: dict[str, Widget] = {"string": Text(), "Int64": _WHOLE, "float64": _ANY}

Table = Literal["element", "link"]


def take_up_edits() -> None:
    """Bring the person's own fabric up to date with what was done on the canvas."""
    if is_drawing(own_document()):
        with design_page().noting("drawing"):
            _take_up(pending(CANVAS))


def new_drawing() -> None:
    """Begin with an empty canvas; a button's callback."""
    own_from(empty_drawing(OWN))


def own_from(document: dict[str, Any], about: tuple[str, ...] = ()) -> None:
    """Make a document the person's own fabric and show it; for callbacks."""
    start(document, about)
    reset_fabric()


def drawing_section(answer: FabricAnswer | None, *, own: bool) -> None:
    """Draw the canvas with the chosen fabric, and its tables where it can be edited.

    Parameters
    ----------
    answer : FabricAnswer or None
        What the figures are about; None where there is none.
    own : bool
        Whether the form's fabric is a person's own.
    """
    document = own_document() if own else None
    problem = design_page().problems.pop("drawing", None)
    if problem:
        st.warning(as_markdown(problem))
    if document is not None and is_drawing(document):
        _show(
            document | {"name": ""}, own_fabric().revision, editable=True
        )  # edits leave its name behind
        drawing_forms(document)
        _tables(document)
        return
    if answer is None:
        return
    if not answer.drawing:
        facts(
            f"Element by element a fabric is drawn up to {MAX_DRAWN:,} devices: choose a smaller "
            "size to edit a copy of it. The picture above has all of this one, what is alike "
            "folded; levels, ports and the bill below are counted.",
            kind="nest-quiet",
        )
        return
    # A person's own drawing has revisions from 1; those of presets lie far above.
    _show(json.loads(answer.drawing), 2**31 + zlib.crc32(answer.drawing.encode()), editable=False)
    if answer.clos:
        facts(
            "Switches that reach the same places are drawn as one, their links added up, and the "
            "links inside a node as one switch; ports and bill count every switch.",
            kind="nest-quiet",
        )


def edit_button(scenario: Scenario, answer: FabricAnswer, *, own: bool) -> None:
    """Copy the shown fabric onto a canvas of one's own, where that can be drawn; or go back."""
    if own and not is_drawing(own_document()) and own_fabric().can_undo:
        st.button(
            "Undo import",
            on_click=_undo_import,
            help="Back to your fabric as it was before; a drawing has this on its canvas.",
        )
    if (own and is_drawing(own_document())) or not answer.drawing:
        return
    st.button(
        "Edit as my own drawing",
        on_click=_draw_preset,
        args=(scenario, answer),
        help="Copies this fabric, element by element, to be changed on the canvas and in tables. "
        "Switches of a tier that is used as one become one element with their number.",
    )


def _undo_import() -> None:
    undo()
    reset_fabric()


def _draw_preset(scenario: Scenario, answer: FabricAnswer) -> None:
    try:
        lost = " ".join(submitted(fabric_losses, scenario, place="losses").result())
    except WorkerCrash as error:
        design_page().problems["drawing"] = f"The fabric was not copied: {error}."
        return
    origin = f"{answer.title}, as a drawing"
    own_from(json.loads(answer.drawing), (origin, f"Left out: {lost}") if lost else (origin,))


def _show(drawing: Drawing, revision: int, *, editable: bool) -> None:
    canvas(
        {
            "revision": revision,
            "name": drawing["name"],
            "elements": [
                {
                    "id": str(entry.get("id", "")),
                    "role": entry.get("role", "switch"),
                    "radix": entry.get("radix", 0),
                    "count": entry.get("count", 1),
                    "group": entry.get("group", ""),
                    "x": entry.get("x"),
                    "y": entry.get("y"),
                }
                for entry in drawing.get("element", ())
            ],
            "links": [
                {
                    "a": str(link.get("a", "")),
                    "b": str(link.get("b", "")),
                    "bandwidth_GBps": link.get("bandwidth_GBps", 0.0),
                    "count": link.get("count", 1),
                    "latency_us": link.get("latency_us", 0.0),
                }
                for link in drawing.get("link", ())
            ],
        },
        key=CANVAS,
        height=HEIGHT,
        editable=editable,
    )


def _take_up(sent: CanvasResult) -> None:
    if sent.drawing:
        change(edited(own_document() or {}, sent.drawing["elements"], sent.drawing["links"]))
    if not sent.action:
        return
    document = own_document() or {}
    ids = [element for element in sent.action["ids"] if isinstance(element, str)]
    match sent.action["name"]:
        case "undo" | "redo" as step:
            {"undo": undo, "redo": redo}[step]()
            reset_fabric()
        case "duplicate":
            change(duplicated(named(document), ids)[0])
        case "arrange":
            change(forget_places(document))


def _tables(drawing: Drawing) -> None:
    with st.expander("Elements and links as tables"):
        facts(
            "The same drawing by keyboard: type in a cell, add a row at the end, select rows and "
            "press Delete.",
            kind="nest-quiet",
        )
        first, second = st.columns(2, gap="medium")
        with first:
            _table(
                drawing,
                "element",
                {
                    "id": st.column_config.TextColumn("element", required=True),
                    "role": st.column_config.SelectboxColumn("role", options=ROLES, required=True),
                    "radix": st.column_config.NumberColumn("radix, ports", min_value=1, step=1),
                    "count": st.column_config.NumberColumn(
                        "alike",
                        min_value=1,
                        step=1,
                        help="Equal switches or NICs that are drawn as one; empty: 1.",
                    ),
                    "group": st.column_config.TextColumn("group", help="rack 0/node 3"),
                },
            )
        with second:
            _table(
                drawing,
                "link",
                {
                    "a": st.column_config.TextColumn("from", required=True),
                    "b": st.column_config.TextColumn("to", required=True),
                    "bandwidth_GBps": st.column_config.NumberColumn(
                        "GB/s of one link", help="One way.", format="%.4g"
                    ),
                    "count": st.column_config.NumberColumn("links", min_value=1, step=1),
                    "latency_us": st.column_config.NumberColumn("latency, µs", format="%.4g"),
                },
            )


def _table(drawing: Drawing, table: Table, columns: dict[str, Any]) -> None:
    """One table; it keeps its focus while it is the only one that changes the drawing."""
    memory = f"{table} table"
    state = st.session_state.get(memory)
    if state is None or state["revision"] != own_fabric().revision:
        state = {
            "revision": own_fabric().revision,
            "base": drawing,
            "serial": (state["serial"] + 1 if state else 0),
        }
        st.session_state[memory] = state
    key = f"{table}s {state['serial']}"
    rows = state["base"][table]
    settle(key, _edits(rows, columns))
    st.data_editor(
        # Typed columns, also where there are no rows yet.
        pd.DataFrame(
            {
                name: pd.Series([entry.get(name) for entry in rows], dtype=COLUMNS[name])
                for name in columns
            }
        ),
        column_config=columns,
        num_rows="dynamic",
        hide_index=True,
        height=320,
        key=key,
        on_change=_table_edited,
        args=(table, key, tuple(columns)),
    )


def _edits(rows: Sequence[Any], names: Iterable[str]) -> Edits:
    return Edits(len(rows), {name: _CELLS[COLUMNS[name]] for name in names}, grows=True)


def _table_edited(table: Table, key: str, names: Sequence[str]) -> None:
    memory = f"{table} table"
    state = st.session_state.get(memory)
    edits = widget_value(key, _edits(state["base"][table], names)) if state else None
    if state is None or edits is None:
        return
    with design_page().noting("drawing"):
        change(tabled(state["base"], table, edits))
    st.session_state[memory] = state | {"revision": own_fabric().revision}
