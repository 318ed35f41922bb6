"""What designs train per dollar of network and accelerators, and where the winner changes.

The sentence is a break-even (`nest_core.studies.whole_cost`): dollars of the network alone would
call the poorest network the best buy while accelerators that cost ten times as much wait for it.
"""

from __future__ import annotations

import math

from nest_core.figures.bill import dollars
from nest_core.figures.comparison_bars import Ends, Panel, bars
from nest_core.figures.style import Picture
from nest_core.studies.comparison import Candidate, Comparison
from nest_core.studies.whole_cost import Design, DevicePrice, Lead, break_even, lead
from nest_core.summary import NOTHING, share
from nest_core.units import humanise

__all__ = ["value_picture"]

_SAME = 0.005
_COSTS = "an accelerator with its share of the server costs"


def value_picture(comparison: Comparison) -> Picture:
    """Tokens/s per dollar of network and accelerators, and the network's part of the dollars."""
    every, device = comparison.candidates, comparison.device
    if device is None:
        return _network_alone(comparison)
    wholes = [one.bill.price_usd.typical + one.scenario.fabric.devices * device.usd
              for one in every]  # fmt: skip
    parts = [
        one.bill.price_usd.typical / whole if whole else None
        for one, whole in zip(every, wholes, strict=True)
    ]
    return Picture(
        _finding(every, device),
        f"Throughput over the price of network and accelerators, these at "
        f"{dollars(device.usd)} a piece{_ends_of_break_even(every, device)}",
        "Longer is better. The grey line takes the high and the low end of the network's price. "
        f"The accelerator with its share of the server is one figure for all: {device.basis}.",
        bars(
            every,
            [
                _per_dollar(every, device),
                Panel(
                    "network's part of the dollars, %",
                    tuple(part and 100 * part for part in parts),
                    tuple(NOTHING if part is None else share(part) for part in parts),
                    (None,) * len(every),
                ),
            ],
        ),
    )


def _per_dollar(every: tuple[Candidate, ...], device: DevicePrice) -> Panel:
    values = [one.design and one.design.per_usd(device.usd) for one in every]
    known = [value if value and math.isfinite(value) else None for value in values]
    return Panel(
        "tokens/s per $",
        tuple(known),
        tuple(NOTHING if value is None else humanise(value) for value in known),
        tuple(_ends(one, device) for one in every),
    )


def _ends(one: Candidate, device: DevicePrice) -> Ends:
    low, high = (_at(one, end) for end in ("high", "low"))
    if low is None or high is None or not math.isfinite(high.per_usd(device.usd)):
        return None
    return low.per_usd(device.usd), high.per_usd(device.usd)


def _at(one: Candidate, end: str) -> Design | None:
    """The design with its network at one end of its price."""
    if one.tokens_per_s is None:
        return None
    price: float = getattr(one.bill.price_usd, end)
    return Design(one.tokens_per_s, one.scenario.fabric.devices, price)


def _planned(every: tuple[Candidate, ...]) -> tuple[list[Candidate], list[Design]]:
    pairs = [(one, one.design) for one in every if one.design is not None]
    return [one for one, _ in pairs], [design for _, design in pairs]


def _finding(every: tuple[Candidate, ...], device: DevicePrice) -> str:
    planned, designs = _planned(every)
    if not planned:
        return "There is no throughput to divide by a price"
    if len(planned) == 1:
        return f"Only {planned[0].name} has a plan to pay for"
    found = lead(designs, device.usd)
    name = planned[found.design].name
    if found.low == 0 and math.isinf(found.high):
        values = [design.per_usd(device.usd) for design in designs]
        if min(values) > (1 - _SAME) * max(values):
            return "All train as much per dollar within 0.5 %"
        return f"{name} wins whatever an accelerator costs"
    return f"{name} wins while {_COSTS} {_range(found)} a piece"


def _range(found: Lead) -> str:
    if math.isinf(found.high):
        return f"more than {dollars(found.low)}"
    if found.low == 0:
        return f"less than {dollars(found.high)}"
    return f"between {dollars(found.low)} and {dollars(found.high)}"


def _ends_of_break_even(every: tuple[Candidate, ...], device: DevicePrice) -> str:
    """What the listed ends of the network's prices make of each break-even."""
    planned, designs = _planned(every)
    if len(planned) < 2:
        return ""
    found = lead(designs, device.usd)
    words = []
    for rival in (found.below, found.above):
        if rival is None:
            continue
        pairs = [(_at(planned[found.design], end), _at(planned[rival], end))
                 for end in ("low", "typical", "high")]  # fmt: skip
        edges = [break_even(mine, other) for mine, other in pairs if mine and other]
        known = [edge for edge in edges if edge is not None]
        low, high = min(known), max(known)
        words.append(f"level with {planned[rival].name} at {dollars(low)} to {dollars(high)} over "
                     "the ends of the network's prices")  # fmt: skip
    return "".join(f"; {word}" for word in words)


def _network_alone(comparison: Comparison) -> Picture:
    """Where accelerators differ or have no price, the part that is known, and that it is a part."""
    every = comparison.candidates
    names = dict.fromkeys(one.scenario.accelerator.name for one in every)
    if len(names) > 1:
        why = f"No one price of an accelerator holds for {' and '.join(names)}"
    else:
        why = f"No price of a {next(iter(names))} is known"
    values = [one.tokens_per_s_per_usd for one in every]
    return Picture(
        f"{why}: which trains most per dollar is not known",
        "Throughput over the price of the network, which is the smaller part of what is paid",
        "The accelerators are missing: a poor network is cheap and lets them wait.",
        bars(
            every,
            [
                Panel(
                    "tokens/s per $ of network",
                    tuple(values),
                    tuple(NOTHING if value is None else humanise(value) for value in values),
                    (None,) * len(every),
                )
            ],
        ),
    )
