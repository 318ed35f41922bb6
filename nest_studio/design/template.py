"""Forms beside the canvas: parts to add to a drawing, and the ratio of a drawn tier."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown, format_ratio, plural, require
from nest_core.fabric.drawing import Drawing, edited, named
from nest_core.fabric.templates import TEMPLATES, TemplatePart, added, with_spines
from nest_core.fabric.tiers import DrawnTier, cut_off, oversubscribed, tiers_of, unlinked
from nest_studio.components.show import facts
from nest_studio.design.state import design_page
from nest_studio.form.fabric import reset_fabric
from nest_studio.form.fields import Number, OneOf, Text, Widget, widget, widget_value
from nest_studio.session.own_fabric import change, own_document, own_fabric

__all__ = ["drawing_forms"]

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
    answers = {}
    for name, (_, takes, standard) in fields.items():
        answer = widget_value(f"{form}.{name}", takes)
        answers[name] = standard if answer is None else answer
    return answers


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
