"""The table of differences: what sets designs apart from the choice, ties said.

A difference stands before its figure; inside the paired interval it is a tie
(`nest_core.studies.ordering`). Failures are shares of a design's own throughput.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from nest_core.documents.units import NOTHING, humanise, percent, signed_percent, three_digits
from nest_core.report.sheet.weighing import Weighing, paired_difference
from nest_core.studies.ordering import ordered
from nest_core.studies.whole_bill import WholeBill, typical

__all__ = ["Difference", "differences", "differences_html", "differences_title"]

_MILLION = 1e6


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


def differences(
    found: Weighing, bills: Sequence[WholeBill], *, full: bool = False
) -> tuple[Difference, ...]:
    """Return the rows of a table of designs that have a plan, in the order of ``bills``.

    Parameters
    ----------
    found : Weighing
    bills : sequence of WholeBill
    full : bool
        Whether with throughput, dollars, energy and failures of a year too, as on a sheet.
    """
    tokens = found.choice.training.tokens if found.choice.training else 0.0
    row = partial(_row, found, bills)
    days = row(
        f"Days for {humanise(tokens)} tokens",
        lambda one: one.training.days if one.training else None,
        three_digits,
        lambda one, apart, _: f"{apart:+.2g}".replace("-", "−"),
        _ties(found, "days"),
    )
    money = [
        row(
            "$ per M tokens, all in",
            lambda one: typical(one.usd_per_million_tokens),
            three_digits,
            ties=_ties(found, "price"),
        ),
        row(
            "$ per GPU-hour, all in",
            lambda one: typical(one.owned.usd_per_device_hour),
            lambda value: f"{value:.2f}",
        ),
    ]
    tiers = dict.fromkeys(loss.tier for one in bills for loss in one.losses)
    lost = [row(f"One {tier} lost", _lost(tier), _loss, None) for tier in tiers]
    if full:
        speed = row(
            "Throughput, M tokens/s",
            lambda one: one.tokens_per_s and one.tokens_per_s / _MILLION,
            three_digits,
            lambda one, *_: _paired(found, one),
        )
        years = found.choice.owned.years
        spent = [
            row("Network, M$", lambda one: one.owned.network.price_usd.typical / _MILLION),
            row(
                f"Bill over {years:g} years, M$",
                lambda one: one.owned.total_usd.typical / _MILLION,
            ),
        ]
        yearly = [
            row(
                "Tokens per kWh, M",
                lambda one: one.tokens_per_kWh and one.tokens_per_kWh / _MILLION,
            ),
            row("Failures a year", lambda one: one.owned.failures_per_year.typical),
        ]
        return (speed, days, *spent, *money, *yearly, *lost)
    if tiers:
        worst = found.choice.worst_loss
        lost.append(
            row(
                f"Worst single failure{f': {worst[1]}' if worst else ''}",
                lambda one: one.worst_loss[0] if one.worst_loss else None,
                _loss,
                None,
                _ties(found, "failure"),
            )
        )
    return (days, *money, *lost)


def differences_html(
    found: Weighing, bills: Sequence[WholeBill], rows: Sequence[Difference]
) -> str:
    """Return the rows as a table in the classes of the page and of the sheet."""
    head = "".join(f'<th scope="col">{html.escape(one.name)}</th>' for one in bills)
    body = ""
    for row in rows:
        cells = ""
        for one, (beside, text) in zip(bills, row.cells, strict=True):
            kind = ' class="ours"' if one is found.choice else ""
            apart = f"<small>{html.escape(beside)}</small>" if beside else ""
            cells += f"<td{kind}>{apart}{html.escape(text)}</td>".replace(" %", "\u00a0%")
        body += f'<tr><th scope="row">{html.escape(row.figure)}</th>{cells}</tr>'
    return (
        f'<table class="nest-apart"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


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


def _relative(one: WholeBill, apart: float, first: float) -> str:
    del one
    return signed_percent(apart / first) if first else ""


def _row(
    found: Weighing,
    bills: Sequence[WholeBill],
    figure: str,
    read: Callable[[WholeBill], float | None],
    words: Callable[[float], str] = three_digits,
    apart: Callable[[WholeBill, float, float], str] | None = _relative,
    ties: Sequence[str] = (),
) -> Difference:
    first = read(found.choice)
    cells = []
    for one in bills:
        value = read(one)
        beside = ""
        if one is not found.choice and value is not None and first is not None:
            beside = (
                "tie" if one.name in ties else apart(one, value - first, first) if apart else ""
            )
        cells.append((beside, NOTHING if value is None else words(value)))
    return Difference(figure, tuple(cells))


def _paired(found: Weighing, one: WholeBill) -> str:
    ratio, low, high = paired_difference(found.choice, one)
    if low == high:
        return signed_percent(ratio)
    words = f"{signed_percent(low).removesuffix(' %')} to {signed_percent(high)}"
    return f"{words} tie" if low < 0 < high else words


def _ties(found: Weighing, by: str) -> tuple[str, ...]:
    rows = ordered(found.bills, by)
    return next(row.ties for row in rows if row.name == found.choice.name)


def _lost(tier: str) -> Callable[[WholeBill], float | None]:
    def read(one: WholeBill) -> float | None:
        loss = next((loss for loss in one.losses if loss.tier == tier), None)
        if loss is None:
            return None
        return 1.0 if loss.replanned is None else loss.replanned

    return read


def _loss(value: float) -> str:
    return signed_percent(-value)
