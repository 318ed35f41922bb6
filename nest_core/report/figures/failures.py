"""What elements that fail or are slow take of plans: both losses, an element or a plan per row."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from nest_core.documents import Claim, capital, percent, truncated
from nest_core.report.figures.style import (
    ACCENT,
    Chart,
    bars,
    dots,
    plain,
    plot,
    pointed,
    rows_axis,
    value_axis,
    wrapped,
)
from nest_core.studies.failures import Failure

__all__ = ["failures_figure", "loss_of"]

_ROW = 34
_LONGEST = 34
_READING = (
    "Bar: the plan stays as it is, on what is left. Diamond: spare nodes of the bill stand in, "
    "then the rest is planned anew. Event by event; restarts are not counted."
)


def failures_figure(
    rows: Sequence[tuple[str, Failure | None]],
    title: str | Claim,
    colours: Sequence[str] = (),
) -> Chart:
    """Draw both losses of every row.

    Parameters
    ----------
    rows : sequence of (name, Failure or None)
        None is drawn as not known.
    colours : sequence of str
        Of the rows; one colour for all without.
    """
    hues = list(colours or [ACCENT] * len(rows))
    labels = [truncated(name, _LONGEST) for name, _ in rows]
    lost = [(number, failure) for number, (_, failure) in enumerate(rows) if failure]
    anew = [(number, failure) for number, failure in lost if failure.is_replanned]
    end = 160 * max([1e-4, *(loss for _, f in lost for loss in (f.loss, f.replanned_loss) if f)])
    texts = {
        number: f"{plain(rows[number][0])}: {plain(_sentence(failure))}" for number, failure in lost
    }
    data = [
        bars(
            [100 * failure.loss for _, failure in lost],
            [number for number, _ in lost],
            {"color": [hues[number] for number, _ in lost], "opacity": 0.45, "line": {"width": 0}},
            name="same plan",
            width=0.5,
            text=[_label(rows[number][0], failure) for number, failure in lost],
            textposition="outside",
            textfont={"size": 12},
            cliponaxis=False,
            **pointed(texts.values()),
        ),
        dots(
            [100 * failure.replanned_loss for _, failure in anew],
            [number for number, _ in anew],
            {"symbol": "diamond", "size": 10, "color": [hues[number] for number, _ in anew]},
            name="planned anew",
            cliponaxis=False,
            **pointed(texts[number] for number, _ in anew),
        ),
    ]
    margin = (20 + 7 * max(map(len, labels)), 24, 4, 46)
    return Chart(
        title,
        "Throughput lost, % of that of the whole fabric",
        _READING,
        plot(
            data,
            50 + _ROW * len(rows),
            margin,
            barmode="overlay",
            yaxis=rows_axis([f"{plain(label)} " for label in labels]),
            xaxis=value_axis("throughput lost, %", range=[-0.02 * end, end]),
        ),
        table=partial(_table, tuple(rows)),
    )


def _table(rows: Sequence[tuple[str, Failure | None]]) -> list[dict[str, Any]]:
    return [{"row": name, **failure.to_json()} for name, failure in rows if failure]


def loss_of(failure: Failure) -> str:
    """Return both losses in a few words.

    Examples
    --------
    >>> loss_of(Failure(("leaf 0",), 1.0, None, "too few", 1.25, is_replanned=True))
    'cannot run; planned anew 20 %'
    """
    same = "cannot run" if failure.same_plan_s is None else percent(failure.loss)
    if not failure.is_replanned:
        return same
    anew = "no plan" if failure.replanned_s is None else f"{percent(failure.replanned_loss)}"
    return same if anew == same else f"{same}; planned anew {anew}"


def _label(name: str, failure: Failure) -> str:
    element = "" if name in failure.elements else f"{truncated(failure.words, _LONGEST)}: "
    # A diamond may stand where the bar ends.
    return f"\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}{element}{loss_of(failure)}"


def _sentence(failure: Failure) -> str:
    alike = f", {failure.alike:,} alike" if failure.alike > 1 else ""
    note = f"; {failure.note}" if failure.note else ""
    return wrapped(capital(f"{failure.words}{alike}: {loss_of(failure)}{note}"))
