"""The table of differences: what sets designs apart from the choice, ties said.

A difference stands before its figure; inside the paired interval it is a tie
(`nest_core.studies.ordering`). Failures are shares of a design's own throughput.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nest_core.sheet.weighing import Weighing
from nest_core.studies.ordering import ordered
from nest_core.studies.whole_bill import WholeBill, typical
from nest_core.units import humanise, percent, signed_percent

__all__ = ["Difference", "differences", "differences_title"]

_UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Difference:
    """One row: a figure of every design.

    Parameters
    ----------
    figure : str
    cells : tuple of (str, str)
        What sets it apart (empty for the choice), and the figure.
    """

    figure: str
    cells: tuple[tuple[str, str], ...]


def differences(found: Weighing, bills: Sequence[WholeBill]) -> tuple[Difference, ...]:
    """Rows of designs that have a plan, in the order of ``bills``."""
    tokens = found.choice.training.tokens if found.choice.training else 0.0
    rows = [
        _row(
            f"Days to train {humanise(tokens)} tokens",
            found,
            bills,
            lambda one: one.training.days if one.training else None,
            lambda value: f"{value:.3g}",
            lambda apart, _: f"{apart:+.2g}".replace("-", "−"),
            _ties(found, "days"),
        ),
        _row(
            "Whole bill, $ per M tokens",
            found,
            bills,
            lambda one: typical(one.usd_per_million_tokens),
            lambda value: f"{value:.3g}",
            _relative,
            _ties(found, "price"),
        ),
        _row(
            "All-in, $ per GPU-hour",
            found,
            bills,
            lambda one: typical(one.owned.usd_per_device_hour),
            lambda value: f"{value:.2f}",
            _relative,
            (),
        ),
    ]
    tiers = dict.fromkeys(loss.tier for one in bills for loss in one.losses)
    ties = _ties(found, "failure")
    rows += [
        _row(f"One {tier} lost", found, bills, _lost(tier), _loss, _none, ()) for tier in tiers
    ]
    if tiers:
        rows.append(
            _row(
                f"Worst single failure{_worst_of(found)}",
                found,
                bills,
                lambda one: one.worst_loss[0] if one.worst_loss else None,
                _loss,
                _none,
                ties,
            )
        )
    return tuple(rows)


def differences_title(found: Weighing, bills: Sequence[WholeBill]) -> str:
    """Who takes longest, and who feels a failure most."""
    mine = found.choice
    timed = [(one.training.days, one) for one in bills if one.training]
    told = []
    if mine.training and len(timed) > 1:
        days, slowest = max(timed, key=lambda pair: pair[0])
        least, fastest = min(timed, key=lambda pair: pair[0])
        if slowest.name in _ties(found, "days") or slowest is mine:
            if slowest is mine and fastest.name not in _ties(found, "days"):
                told.append(f"{fastest.name} takes {days - least:.2g} days less")
            else:
                told.append("All take as many days for all that is known")
        else:
            told.append(f"{slowest.name} takes {days - mine.training.days:.2g} days longer")
    lost = [(one.worst_loss[0], one) for one in bills if one.worst_loss]
    if len(lost) > 1:
        worst, weakest = max(lost, key=lambda pair: pair[0])
        tie = len(_ties(found, "failure")) == len(lost) - 1
        told.append(
            "a failure costs all alike" if tie else f"{weakest.name} loses {percent(worst)} to one"
        )
    return " and ".join(told) or f"{mine.name} alone"


def _row(
    figure: str,
    found: Weighing,
    bills: Sequence[WholeBill],
    read: Callable[[WholeBill], float | None],
    words: Callable[[float], str],
    apart: Callable[[float, float], str],
    ties: Sequence[str],
) -> Difference:
    first = read(found.choice)
    cells = []
    for one in bills:
        value = read(one)
        beside = ""
        if one is not found.choice and value is not None and first is not None:
            beside = "tie" if one.name in ties else apart(value - first, first)
        cells.append((beside, _UNKNOWN if value is None else words(value)))
    return Difference(figure, tuple(cells))


def _ties(found: Weighing, by: str) -> tuple[str, ...]:
    rows = ordered(found.bills, by)
    return next(row.ties for row in rows if row.name == found.choice.name)


def _relative(apart: float, first: float) -> str:
    return signed_percent(apart / first) if first else ""


def _none(apart: float, first: float) -> str:
    del apart, first
    return ""


def _lost(tier: str) -> Callable[[WholeBill], float | None]:
    def read(one: WholeBill) -> float | None:
        loss = next((loss for loss in one.losses if loss.tier == tier), None)
        if loss is None:
            return None
        return 1.0 if loss.replanned is None else loss.replanned

    return read


def _loss(value: float) -> str:
    return signed_percent(-value)


def _worst_of(found: Weighing) -> str:
    worst = found.choice.worst_loss
    return f": {worst[1]}" if worst else ""
