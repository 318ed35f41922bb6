"""The bill of a fabric: what it costs by role and tier, as a figure and as table rows."""

from nest_core.bill.bill import Bill
from nest_core.bill.lines import NO_SOURCE, BillLine
from nest_core.bill.prices import PriceRange
from nest_core.documents.units import NOTHING, format_money, format_ratio, humanise_power, percent
from nest_core.fabric import Fabric
from nest_core.report.figures.style import (
    FAINT,
    SILENT,
    Chart,
    axis_unit,
    bars,
    dots,
    plot,
    pointed,
    rows_axis,
    value_axis,
)
from nest_core.report.tables import Table

__all__ = [
    "PART_COLOURS",
    "bill_figure",
    "bill_rows",
    "link_rows",
    "ports_table",
    "spread",
]

PART_COLOURS = {
    "switch": "#0072B2",
    "nic": "#009E73",
    "transceiver": "#CC79A7",
    "cable": "#56B4E9",
}
"""Okabe and Ito's; orange and vermilion are kept for communication and limits."""

_NAMES = {
    "switch": "switches",
    "nic": "NICs",
    "transceiver": "transceivers",
    "cable": "cables",
}
_BAR_HEIGHT = 40


def spread(value: PriceRange, write: str = "dollars") -> str:
    """Return a range in words: the typical figure, and its ends where they differ.

    Examples
    --------
    >>> spread(PriceRange(5.2e6, 6.5e6, 7.3e6)), spread(PriceRange(10, 10, 10))
    ('$6.50 M ($5.20 M to $7.30 M)', '$10.0')
    """
    words = format_money if write == "dollars" else humanise_power
    return (
        words(value.typical)
        if value.low == value.high
        else f"{words(value.typical)} ({words(value.low)} to {words(value.high)})"
    )


def bill_rows(bill: Bill) -> list[dict[str, str]]:
    """Return one row per line; units stand in the column names."""
    return [
        {
            "part": line.item,
            "for": line.place,
            "number": f"{line.count:,}",
            **_price_cells(line),
            "power, W": f"{line.power_W.typical:,.0f}" if line.powered else NO_SOURCE,
            "figures": "estimate" if line.estimate else "listed",
            "source of the price": line.source,
        }
        for line in bill.lines
    ]


def _price_cells(line: BillLine) -> dict[str, str]:
    if not line.priced:
        return dict.fromkeys(("each, $", "together, $", "low to high, $"), NO_SOURCE)
    return {
        "each, $": f"{line.unit_usd.typical:,.0f}",
        "together, $": f"{line.price_usd.typical:,.0f}",
        "low to high, $": f"{line.price_usd.low:,.0f} to {line.price_usd.high:,.0f}",
    }


def link_rows(bill: Bill) -> list[dict[str, str]]:
    """Return one row per tier and kind of cable."""
    return [
        {
            "links to": total.tier,
            "cable": run.item,
            "number": f"{run.count:,}",
            "rate, Gb/s": f"{total.rate_Gbps:.4g}",
            "longest, m": f"{run.longest_m}",
            "together, m": f"{run.metres:,}",
            "delay of the longest, ns": f"{run.latency_s * 1e9:.3g}",
        }
        for total in bill.links
        for run in total.runs
    ]


def ports_table(fabric: Fabric) -> Table | None:
    """Return whole ports down, up and free of every tier's switches, asked and realised ratio.

    None for kinds of fabric that do not say which switches they have.
    """
    tiers = fabric.switch_ports()
    if not tiers:
        return None
    rows = [
        {
            "switches": tier.name,
            "number": f"{tier.switches:,}",
            "ports": f"{tier.radix:,}",
            "down": f"{tier.down:,}",
            "up": f"{tier.up:,}",
            "free": f"{tier.free:,}",
            "asked, down : up": NOTHING if tier.stated is None else format_ratio(tier.stated),
            "realised": NOTHING if tier.realised is None else format_ratio(tier.realised),
        }
        for tier in tiers
    ]
    free = f", {tiers[0].free} free" if tiers[0].free else ""
    finding = f"A {tiers[0].name} has {tiers[0].down} ports down and {tiers[0].up} up{free}"
    return Table(finding, "Whole ports of the fullest switch", rows)


def bill_figure(bill: Bill) -> Chart:
    """Draw cost by role and tier, one bar each, stacked by part; whiskers from low to high."""
    places = list(dict.fromkeys(line.place for line in bill.lines))
    sums = [
        sum(
            (line.price_usd for line in bill.lines if line.place == place),
            PriceRange(0.0, 0.0, 0.0),
        )
        for place in places
    ]
    largest = max((total.high for total in sums), default=1.0)
    scale, unit = axis_unit(largest, "$")
    rows = list(range(len(places)))
    parts = {
        part: [
            [line for line in bill.lines if line.part == part and line.place == place]
            for place in places
        ]
        for part in PART_COLOURS
        if any(line.part == part for line in bill.lines)
    }
    stacked = [
        bars(
            [sum(line.price_usd.typical for line in here) / scale for here in lines],
            rows,
            {"color": PART_COLOURS[part], "line": {"width": 0}},
            name=_NAMES[part],
            width=0.6,
            **pointed(
                "<br>".join(
                    f"{line.count:,} {line.item}: {spread(line.price_usd)}, "
                    f"{humanise_power(line.power_W.typical)}"
                    for line in here
                )
                for here in lines
            ),
        )
        for part, lines in parts.items()
    ]
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": [(total.high - total.typical) / scale for total in sums],
        "arrayminus": [(total.typical - total.low) / scale for total in sums],
        "color": "rgba(128, 132, 138, 1)",
        "thickness": 1.5,
        "width": 4,
    }
    return Chart(
        _finding(bill),
        f"Price of the network by role and tier, {unit}; {percent(bill.estimated_share)} of it is "
        "estimated",
        "A bar is what one tier costs with the cables that lead to it; the grey line runs from "
        "the low to the high end of its figures.",
        plot(
            [
                *stacked,
                dots(
                    [total.typical / scale for total in sums],
                    rows,
                    {"size": 1, "color": FAINT},
                    error_x=whiskers,
                    **SILENT,
                ),
            ],
            60 + _BAR_HEIGHT * max(len(places), 1),
            (116, 24, 4, 46),
            barmode="stack",
            xaxis=value_axis(f"price, {unit}", range=[0, 1.12 * largest / scale or 1]),
            yaxis=rows_axis([f"{place} " for place in places]),
        ),
        tuple((_NAMES[part], PART_COLOURS[part]) for part in parts),
    )


def _finding(bill: Bill) -> str:
    total = bill.price_usd.typical
    if not total:
        return "There is no network to buy"
    by_part = {
        part: sum(line.price_usd.typical for line in bill.lines if line.part == part)
        for part in PART_COLOURS
    }
    part = max(by_part, key=by_part.__getitem__)
    return (
        f"The network costs {format_money(total)}, {percent(by_part[part] / total)} of it "
        f"{_NAMES[part]}, and draws {humanise_power(bill.power_W.typical)}"
    )
