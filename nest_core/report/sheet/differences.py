"""The table of differences: what sets designs apart from the choice, ties said.

A difference stands before its figure; inside the paired interval it is a tie
(`nest_core.studies.break_evens`). Failures are shares of a design's own throughput.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nest_core.documents.units import NOTHING, humanise, percent, signed_percent, three_digits
from nest_core.report.sheet.weighing import Weighing, paired_difference
from nest_core.studies.break_evens import ordered
from nest_core.studies.whole_bill import WholeBill, typical

__all__ = ["DesignDifference", "differences", "differences_html", "differences_title"]

_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class DesignDifference:
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
    weighing: Weighing, bills: Sequence[WholeBill], *, full: bool = False
) -> tuple[DesignDifference, ...]:
    """Return the rows of a table of designs that have a plan, in the order of ``bills``.

    Parameters
    ----------
    weighing : Weighing
    bills : sequence of WholeBill
    full : bool
        Whether with throughput, dollars, energy and failures of a year too, as on a sheet.
    """
    choice = weighing.choice
    tokens = choice.training.tokens if choice.training else 0.0

    def row(
        figure: str,
        read: Callable[[WholeBill], float | None],
        words: Callable[[float], str] = three_digits,
        compared: Callable[[WholeBill, float, float], str] = _relative,
        ties: Sequence[str] = (),
    ) -> DesignDifference:
        first = read(choice)
        cells = []
        for bill in bills:
            value, difference = read(bill), ""
            if bill is not choice and value is not None and first is not None:
                is_tie = bill.name in ties
                difference = "tie" if is_tie else compared(bill, value - first, first)
            cells.append((difference, NOTHING if value is None else words(value)))
        return DesignDifference(figure, tuple(cells))

    days = row(
        f"Days for {humanise(tokens)} tokens",
        lambda bill: bill.training.days if bill.training else None,
        compared=lambda bill, more, _: f"{more:+.2g}".replace("-", "−"),
        ties=_ties(weighing, "days"),
    )
    money = [
        row(
            "$ per M tokens, all in",
            lambda bill: typical(bill.usd_per_million_tokens),
            ties=_ties(weighing, "price"),
        ),
        row(
            "$ per GPU-hour, all in",
            lambda bill: typical(bill.owned.usd_per_device_hour),
            lambda value: f"{value:.2f}",
        ),
    ]
    tiers = dict.fromkeys(loss.tier for bill in bills for loss in bill.losses)
    lost = [
        row(f"One {tier} lost", _lost(tier), lambda value: signed_percent(-value), lambda *_: "")
        for tier in tiers
    ]
    if full:
        return (
            row(
                "Throughput, M tokens/s",
                lambda bill: bill.tokens_per_s and bill.tokens_per_s / _MILLION,
                compared=lambda bill, *_: _paired(weighing, bill),
            ),
            days,
            row("Network, M$", lambda bill: bill.owned.network.price_usd.typical / _MILLION),
            row(
                f"Bill over {choice.owned.years:g} years, M$",
                lambda bill: bill.owned.total_usd.typical / _MILLION,
            ),
            *money,
            row(
                "Tokens per kWh, M",
                lambda bill: bill.tokens_per_kWh and bill.tokens_per_kWh / _MILLION,
            ),
            row("Failures a year", lambda bill: bill.owned.failures_per_year.typical),
            *lost,
        )
    if tiers:
        worst = choice.worst_loss
        lost.append(
            row(
                f"Worst single failure{f': {worst[1]}' if worst else ''}",
                lambda bill: bill.worst_loss[0] if bill.worst_loss else None,
                lambda value: signed_percent(-value),
                lambda *_: "",
                _ties(weighing, "failure"),
            )
        )
    return (days, *money, *lost)


def differences_html(
    weighing: Weighing, bills: Sequence[WholeBill], rows: Sequence[DesignDifference]
) -> str:
    """Return the rows as a table in the classes of the page and of the sheet."""
    head = "".join(f'<th scope="col">{html.escape(bill.name)}</th>' for bill in bills)
    body = ""
    for row in rows:
        cells = ""
        for bill, (difference, text) in zip(bills, row.cells, strict=True):
            kind = ' class="ours"' if bill is weighing.choice else ""
            small = f"<small>{html.escape(difference)}</small>" if difference else ""
            cells += f"<td{kind}>{small}{html.escape(text)}</td>".replace(" %", "\u00a0%")
        body += f'<tr><th scope="row">{html.escape(row.figure)}</th>{cells}</tr>'
    return (
        f'<table class="nest-apart"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def differences_title(weighing: Weighing, bills: Sequence[WholeBill]) -> str:
    """Return who takes longest, and who feels a failure most."""
    choice, ties = weighing.choice, _ties(weighing, "days")
    timed = [(bill.training.days, bill) for bill in bills if bill.training]
    parts = []
    if choice.training and len(timed) > 1:
        longest, slowest = max(timed, key=lambda pair: pair[0])
        shortest, fastest = min(timed, key=lambda pair: pair[0])
        if slowest is not choice and slowest.name not in ties:
            days = longest - choice.training.days
            parts.append(f"{slowest.name} takes {days:.2g} days longer")
        elif slowest is choice and fastest.name not in ties:
            parts.append(f"{fastest.name} takes {longest - shortest:.2g} days less")
        else:
            parts.append("All take as many days for all that is known")
    lost = [(bill.worst_loss[0], bill.name) for bill in bills if bill.worst_loss]
    if len(lost) > 1:
        worst, weakest = max(lost, key=lambda pair: pair[0])
        is_tie = len(_ties(weighing, "failure")) == len(lost) - 1
        parts.append(
            "a failure costs all alike" if is_tie else f"{weakest} loses {percent(worst)} to one"
        )
    return " and ".join(parts) or f"{choice.name} alone"


def _relative(bill: WholeBill, more: float, first: float) -> str:
    return signed_percent(more / first) if first else ""


def _paired(weighing: Weighing, bill: WholeBill) -> str:
    ratio, low, high = paired_difference(weighing.choice, bill)
    if low == high:
        return signed_percent(ratio)
    words = f"{signed_percent(low).removesuffix(' %')} to {signed_percent(high)}"
    return f"{words} tie" if low < 0 < high else words


def _ties(weighing: Weighing, by: str) -> tuple[str, ...]:
    rows = ordered(weighing.bills, by)
    return next(row.ties for row in rows if row.name == weighing.choice.name)


def _lost(tier: str) -> Callable[[WholeBill], float | None]:
    def read(bill: WholeBill) -> float | None:
        loss = next((loss for loss in bill.losses if loss.tier == tier), None)
        if loss is None:
            return None
        return 1.0 if loss.replanned is None else loss.replanned

    return read
