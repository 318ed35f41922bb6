"""A fabric and what it collapses to in headline figures and sentences, ready to be shown."""

from __future__ import annotations

from nest_core.documents.units import GB, MICROSECOND, humanise, humanise_rate, percent
from nest_core.explain.summary import Headline
from nest_core.fabric import Fabric
from nest_core.network import Network
from nest_core.network.bisection import full_bisection_Bps, knows_nodes
from nest_core.report.tables import Table

__all__ = ["fabric_headlines", "levels_table"]


def fabric_headlines(
    fabric: Fabric, network: Network, bisection_Bps: float | None, error: float | None
) -> tuple[Headline, ...]:
    """Devices, levels, bisection, its share of full bisection, collapse error, in this order.

    Parameters
    ----------
    fabric : Fabric
    network : Network
        What it collapses to.
    bisection_Bps, error : float or None
        As `nest_core.network.bisection.bisection_Bps` and
        `nest_core.network.error.collapse_error` find them; None where it takes too long.
    """
    return (
        Headline(
            "Devices", f"{network.devices:,}", fabric.extent(), ("devices present, idle or not",)
        ),
        Headline(
            "Levels",
            f"{len(network.levels):,}",
            _level_names(network),
            ("a level is a class of pairs of devices that communicate alike",),
        ),
        *_bisection(bisection_Bps, network),
        _collapse_error(error),
    )


def _bisection(cut: float | None, network: Network) -> tuple[Headline, Headline]:
    if cut is None:
        reason = "one device has no halves" if network.devices < 2 else "too many links to cut"
        return (
            Headline("Bisection", "–", reason, ()),
            Headline("Of full bisection", "–", reason, ()),
        )
    bisection_card = Headline(
        "Bisection",
        humanise_rate(cut),
        "between the halves, one way",
        (
            "bisection = minimum cut between the first and the last half of the devices",
            f"= {humanise_rate(cut)} one way",
        ),
    )
    if not knows_nodes(network):
        unknown = "no NICs drawn: where nodes end is not known"
        return bisection_card, Headline("Of full bisection", "–", unknown, ())
    full = full_bisection_Bps(network)
    return (
        bisection_card,
        Headline(
            "Of full bisection",
            percent(cut / full),
            f"full: {humanise_rate(full)}",
            (
                "share = bisection / "
                "what one half could send if nothing above the nodes limited it",
                f"= {humanise_rate(cut)} / {humanise_rate(full)} = {percent(cut / full)}",
            ),
        ),
    )


def _collapse_error(error: float | None) -> Headline:
    if error is None:
        return Headline(
            "Collapse error",
            "–",
            "not computed for large drawings",
            ("nest-studio levels FILE computes it, in minutes",),
        )
    return Headline(
        "Collapse error",
        percent(error) if error < 1 else f"{humanise(error)} ×",
        "levels are exact here" if error == 0 else "levels alone; times count links",
        (
            "collapse error = worst of |time by levels alone / time by links − 1| over sampled "
            "placements",
            "plans and collectives are priced on the links and do not carry it",
        ),
    )


def _level_names(network: Network) -> str:
    names = [level.name for level in network.levels]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]}"


def _level_finding(network: Network) -> str:
    """What a device has at the innermost and at the outermost level."""
    inner, outer = network.levels[0], network.levels[-1]
    first, last = (humanise_rate(level.bandwidth_Bps) for level in (inner, outer))
    if len(network.levels) == 1:
        return f"With all sending, a device has {first}"
    return f"With all sending, a device has {first} at {inner.where}, {last} at {outer.name}"


def levels_table(network: Network) -> Table:
    """Return one row per level, innermost first; units stand in the column names.

    On a torus levels class pairs of devices by hops and have no groups.
    """
    rows = [
        {"level": level.name, "kind": level.kind}
        | (
            {}
            if network.torus is not None
            else {
                "group, devices": f"{level.group_size:,}" if level.group_size else "–",
                "groups": f"{level.groups:,}",
                "links per uplink": f"{level.links:,.4g}",
            }
        )
        | {
            "all sending, GB/s per device": humanise(level.bandwidth_Bps / GB),
            "one sending, GB/s": humanise(level.single_flow_Bps / GB),
            "latency, µs": f"{level.latency_s / MICROSECOND:.3g}",
        }
        for level in network.levels
    ]
    return Table(_level_finding(network), "Levels; bandwidth is one way", rows)
