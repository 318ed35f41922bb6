"""The parts of the fabric page: its form, and the answer from the top down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from nest_core.calibration.sweep import Sweep
from nest_core.errors import InputError
from nest_core.figures.collectives import bandwidth_figure, size_label, time_figure
from nest_core.figures.levels import level_figure, level_rows
from nest_core.headlines import Headline
from nest_core.network import Network
from nest_core.network.algorithms import ALGORITHMS, OPS
from nest_core.network.bisection import full_bisection_Bps, knows_nodes
from nest_core.quoting import as_markdown
from nest_core.summary import share
from nest_core.titles import fabric_title
from nest_core.topology import Clos, Dragonfly, Fabric, GraphFabric, Hierarchical, Torus
from nest_core.units import humanise, humanise_rate
from nest_studio.fabric_state import (
    IDEAL_WIRES,
    MAP_BLOCKS,
    CollectiveRequest,
    FabricRequest,
    bisection_of,
    error_of,
    fabric_of,
    families,
    library_note,
    measured_of,
    network_of,
    sweep_of,
    waits_of,
    ways_of,
)
from nest_studio.fabric_widgets import (
    ADDRESS,
    fabric_document,
    fabric_group,
    fabric_standards,
)
from nest_studio.fields import Choice, said
from nest_studio.own_fabric import OWN
from nest_studio.show import HeadlineRow, PicturePlace, facts, table

__all__ = [
    "DEFAULT_FABRIC",
    "explorer",
    "fabric_form",
    "fabric_headlines",
    "heading",
    "levels",
    "no_heading",
]

DEFAULT_FABRIC = "h100-spine-leaf-1024"
LARGEST_GROUP = 1_048_576
# Options are what the address says, so they are words and not names of the code.
FASTEST, NCCL = "fastest", "NCCL"
OPERATIONS = {name.replace("_", "-"): name for name in OPS}
CONCURRENT = ("one", "all")
MAP_HEIGHT = 360
MEASURED_NONE = "There are no measured runs of this group."


def fabric_form(ratio_notes: list[Any], bring: Callable[[], None]) -> FabricRequest:
    """Draw the form and return the fabric that it asks for.

    Parameters
    ----------
    ratio_notes : list
        Receives one empty slot per oversubscription slider, for what the ratio becomes.
    bring : callable
        Draws the ways to bring a fabric of one's own.
    """
    chosen: dict[str, Any] = {}
    fabric_group(chosen, {"fabric": DEFAULT_FABRIC}, ratio_notes)
    bring()
    preset = chosen.pop("fabric")
    document = fabric_document(preset)
    standard = fabric_standards(document)
    overrides = {key: value for key, value in chosen.items() if value != standard[key]}
    return FabricRequest(preset, document, overrides)


def heading(request: FabricRequest, fabric: Fabric, lacking: str = "") -> None:
    """What fabric this is, and what it is made of; or why the figures are earlier ones."""
    changes = ", ".join(f"{key} = {value}" for key, value in request.overrides.items())
    facts(fabric_title(fabric), kind="nest-scenario")
    if lacking:
        line = f"The figures are those of the last whole fabric: {lacking}"
    elif changes:
        line = f"{_contents(fabric)} Changed: {changes}."
    else:
        line = f"{_contents(fabric)}{'' if request.preset == OWN else ' As in the preset.'}"
    facts(line, kind="nest-quiet")


def no_heading(lacking: str) -> None:
    """The same places while a drawing is not a fabric yet, so that the canvas stays put."""
    facts(OWN, kind="nest-scenario")
    facts(f"Not a fabric yet: {lacking}", kind="nest-quiet")
    names = ("Devices", "Levels", "Bisection", "Of full bisection", "Collapse error")
    HeadlineRow(tuple(Headline(name, "–", "once it is a fabric", ()) for name in names))


def fabric_headlines(text: str) -> tuple[Headline, ...]:
    """Devices, levels, bisection, its share of full bisection, collapse error, in this order."""
    fabric, network = fabric_of(text), network_of(text)
    return (
        Headline(
            "Devices", f"{network.devices:,}", _arranged(fabric), ("devices present, idle or not",)
        ),
        Headline("Levels", f"{len(network.levels):,}", _level_names(network), (
            "a level is a class of pairs of devices that communicate alike",
        )),
        *_bisection(text, network),
        _collapse_error(text),
    )  # fmt: skip


def levels(text: str) -> None:
    """The levels as a table, and as a map of who meets whom where."""
    network = network_of(text)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        finding = _level_finding(network)
        st.html(table(finding, "Levels; bandwidth is one way", level_rows(network)))
    with right:
        PicturePlace("fabric-levels").draw(
            level_figure(network, MAP_HEIGHT, ways_of(text), MAP_BLOCKS)
        )


def explorer(text: str) -> None:
    """What a collective costs: controls, time and bus bandwidth, what it waits for."""
    st.subheader("Collective explorer")
    asked = _controls()
    with st.container(key="charts"):
        if network_of(text).devices < 2:
            st.info("No times: a collective needs two devices, and this fabric has one.")
            return
        try:
            with st.spinner("Pricing every algorithm at every size …", show_time=True):
                found = sweep_of(text, asked)
        except InputError as error:
            group = "group " if error.field == "size" else ""
            st.info(as_markdown(f"No times for this choice: {group}{error}"))
            return
        measured = measured_of(text, found, asked.library)
        left, right = st.columns(2, gap="medium")
        with left:
            PicturePlace("collective-time").draw(time_figure(found, measured))
        with right:
            PicturePlace("collective-bandwidth").draw(bandwidth_figure(found, measured))
        source = f"Measured: {measured.source}." if measured else MEASURED_NONE
        facts(_waits(text, asked, found), f"{library_note(asked.library)} {source}")


def _controls() -> CollectiveRequest:
    places = st.columns([1.05, 1, 0.85, 0.85, 1.2, 1.15], gap="small")
    with places[0]:
        op = OPERATIONS[st.selectbox(
            "Operation", tuple(OPERATIONS), key="collective.op", bind=ADDRESS,
            on_change=_fit_algorithm,
            help="Message sizes count as in nccl-tests: what a device puts in, for all-gather "
            "what it gets out.",
        )]  # fmt: skip
    with places[1]:
        size = st.number_input(
            "Group size, devices", 2, LARGEST_GROUP, 8, 1, key="collective.devices", bind=ADDRESS,
            help="2 to the number of devices.",
        )  # fmt: skip
    with places[2]:
        stride = st.number_input(
            "Stride, devices", 1, LARGEST_GROUP, 1, 1, key="collective.stride", bind=ADDRESS,
            help="1 to the number of devices: a group has members 0, s, 2s, …",
        )  # fmt: skip
    with places[3]:
        concurrent = st.selectbox(
            "Groups", CONCURRENT, key="collective.groups", bind=ADDRESS,
            help="One group alone, or all groups that tile the fabric at once, on shared links.",
        )  # fmt: skip
    with places[4]:
        algorithm = st.selectbox(
            "Algorithm", tuple(_algorithms(op)), key="collective.algorithm", bind=ADDRESS,
            help="The fastest at every size, what NCCL's tuner takes, or one of all.",
        )  # fmt: skip
    with places[5]:
        library = st.selectbox(
            "Library", (IDEAL_WIRES, *families()), key="collective.library", bind=ADDRESS,
            on_change=_fit_library,
            help="What a library makes of the wires: curves fitted to measured runs.",
        )  # fmt: skip
    chosen = _algorithms(op)[algorithm]
    return CollectiveRequest(op, size, stride, concurrent, chosen, library)


def _algorithms(op: str) -> dict[str, str]:
    """Options to what the core calls them."""
    named = {name.replace("_", " "): name for name in ALGORITHMS[op]}
    return {FASTEST: "fastest", NCCL: "nccl"} | named


def _fit_algorithm() -> None:
    op = OPERATIONS.get(said("collective.op", Choice(tuple(OPERATIONS))))
    if op and st.session_state.get("collective.algorithm") not in _algorithms(op):
        st.session_state["collective.algorithm"] = FASTEST


def _fit_library() -> None:
    """A library brings its own choice of algorithms along."""
    ideal = st.session_state.get("collective.library") == IDEAL_WIRES
    if st.session_state.get("collective.algorithm") == (NCCL if ideal else FASTEST):
        st.session_state["collective.algorithm"] = FASTEST if ideal else NCCL


def _waits(text: str, asked: CollectiveRequest, found: Sweep) -> str:
    """What the smallest and the largest message wait for."""
    ends = []
    for end in (0, -1):
        name, size = found.algorithms[end], float(found.size_bytes[end])
        waits = waits_of(text, asked, size, name)
        ends.append(f"{size_label(size)} ({name.replace('_', ' ')}) wait for {waits}")
    return f"On the wires {'; '.join(ends)}."


def _bisection(text: str, network: Network) -> tuple[Headline, Headline]:
    cut = bisection_of(text)
    if cut is None:
        reason = "one device has no halves" if network.devices < 2 else "too many links to cut"
        return (
            Headline("Bisection", "–", reason, ()),
            Headline("Of full bisection", "–", reason, ()),
        )
    whole = Headline("Bisection", humanise_rate(cut), "between the halves, one way", (
        "bisection = minimum cut between the first and the last half of the devices",
        f"= {humanise_rate(cut)} one way",
    ))  # fmt: skip
    if not knows_nodes(network):
        unknown = "no NICs drawn: where nodes end is not known"
        return whole, Headline("Of full bisection", "–", unknown, ())
    full = full_bisection_Bps(network)
    return (
        whole,
        Headline("Of full bisection", share(cut / full), f"full: {humanise_rate(full)}", (
            "share = bisection / what one half could send if nothing above the nodes limited it",
            f"= {humanise_rate(cut)} / {humanise_rate(full)} = {share(cut / full)}",
        )),
    )  # fmt: skip


def _collapse_error(text: str) -> Headline:
    error = error_of(text)
    if error is None:
        return Headline("Collapse error", "–", "not computed for large drawings", (
            "nest-studio levels FILE computes it, in minutes",
        ))  # fmt: skip
    return Headline(
        "Collapse error",
        share(error) if error < 1 else f"{humanise(error)} ×",
        "levels are exact here" if error == 0 else "levels alone; times count links",
        (
            "collapse error = worst of |time by levels alone / time by links − 1| over sampled "
            "placements",
            "plans and collectives are priced on the links and do not carry it",
        ),
    )


def _arranged(fabric: Fabric) -> str:
    if isinstance(fabric, Clos):
        return f"{fabric.nodes:,} nodes of {fabric.devices_per_node}{_hosts(fabric)}"
    if isinstance(fabric, Torus):
        kind = "torus" if any(fabric.wrap) else "mesh"
        return f"{' × '.join(map(str, fabric.shape))} {kind}"
    if isinstance(fabric, Dragonfly):
        return f"{fabric.groups:,} groups of {fabric.routers_per_group} routers"
    if isinstance(fabric, Hierarchical):
        sizes = " × ".join(str(tier.group_size) for tier in reversed(fabric.tiers))
        return sizes if "None" not in sizes else "unequal groups"
    return f"{len(fabric.elements):,} elements, {len(fabric.links):,} links"


def _hosts(fabric: Clos) -> str:
    """Of a node that has several, how many, and what they hold."""
    each = fabric.devices_per_host
    several = 0 < each < fabric.devices_per_node
    return f" ({fabric.devices_per_node // each} hosts of {each})" if several else ""


def _contents(fabric: Fabric) -> str:
    """What it is made of, in one sentence."""
    if isinstance(fabric, Clos):
        switches = ", ".join(f"{count:,} {name}" for name, count in fabric.switch_counts().items())
        planes = f" in {fabric.planes} planes" if fabric.planes > 1 else ""
        return (
            f"{fabric.nodes:,} nodes of {fabric.devices_per_node} devices{_hosts(fabric)} with "
            f"{fabric.nics_per_node} NICs of {humanise_rate(fabric.nic_bandwidth_Bps)}; switches "
            f"of radix {fabric.radix}{planes}: {switches}."
        )
    if isinstance(fabric, Torus):
        wraps = "every dimension wraps" if all(fabric.wrap) else "not every dimension wraps"
        wraps = wraps if any(fabric.wrap) else "no dimension wraps"
        twisted = ", twisted" if fabric.twisted else ""
        rate = humanise_rate(fabric.link_bandwidth_Bps)
        return f"{_arranged(fabric)}{twisted}, {wraps}; links of {rate} one way."
    if isinstance(fabric, Dragonfly):
        return (
            f"{fabric.groups:,} groups of {fabric.routers_per_group} routers of radix "
            f"{fabric.radix}, {fabric.nodes_per_router} nodes each; local links of "
            f"{humanise_rate(fabric.local_bandwidth_Bps)}, global ones of "
            f"{humanise_rate(fabric.global_bandwidth_Bps)}."
        )
    if isinstance(fabric, GraphFabric):
        count = dict.fromkeys(("device", "NIC", "switch"), 0)
        for element in fabric.elements:
            count["NIC" if element.role == "nic" else element.role] += element.count
        count["link"] = len(fabric.links)
        plurals = {"switch": "switches"}
        parts = [
            f"{number:,} {name if number == 1 else plurals.get(name, f'{name}s')}"
            for name, number in count.items()
        ]
        return f"Drawn: {', '.join(parts)}."
    steps = [
        f"{humanise_rate(tier.link_bandwidth_Bps)} per "
        f"{'device' if tier.uplink_per == 'device' else 'uplink'} into the {tier.name}"
        for tier in fabric.tiers
    ]
    return f"{'; '.join(steps)}."


def _level_names(network: Network) -> str:
    names = [level.name for level in network.levels]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]}"


def _level_finding(network: Network) -> str:
    inner, outer = network.levels[0], network.levels[-1]
    first, last = (humanise_rate(level.bandwidth_Bps) for level in (inner, outer))
    if len(network.levels) == 1:
        return f"With all sending, a device has {first}"
    return f"With all sending, a device has {first} at level {inner.name}, {last} at {outer.name}"
