"""Parts of a plan's page as HTML: the plan in pills, one iteration to scale."""

from __future__ import annotations

import html
from collections.abc import Sequence

from nest_core.costs import Report
from nest_core.costs.plan_words import plan_fields
from nest_core.documents.units import humanise_seconds
from nest_core.explain.traffic import IterationPart
from nest_core.report.figures.marks import bar, figure, words

__all__ = ["iteration_part", "plan_pills"]

_COLOURS = {"compute": "--compute", "bubble": "--idle"}
_UNDER = {"bubble": "fill, drain"}


def plan_pills(report: Report, devices: int) -> str:
    """The choices of a plan, one pill each."""
    point, used = report.plan.point, report.plan.devices_used
    pairs = plan_fields(report.plan.to_json())
    if point.dp > 1 and point.pp > 1:
        pairs["device order"] = ", ".join(a for a in point.order if getattr(point, a) > 1)
    pairs["devices"] = f"{used:,} of {devices:,}"
    pills = "".join(
        f'<span class="nest-pill"><i>{html.escape(name)}</i> {html.escape(value)}</span>'
        for name, value in pairs.items()
    )
    return f'<div class="nest-pills"><b>Best plan</b> {pills}</div>'


def iteration_part(parts: Sequence[IterationPart], iteration_s: float, hidden: str) -> str:
    """One iteration to scale, then what of it is not compute, enlarged.

    Parameters
    ----------
    parts : sequence of IterationPart
        Compute first; they add up to the iteration.
    hidden : str
        What is taken to hide behind compute, in a sentence.
    """
    compute, *others = parts
    tail = sum(part.seconds for part in others)
    title = f"{_percent(tail / iteration_s)} of an iteration is not compute"
    whole, left = [], 0.0
    for part in parts:
        share = part.seconds / iteration_s
        whole.append(bar(left, 0, share - (0.003 if part is not parts[-1] else 0), 24, _of(part)))
        left += share
    if compute.seconds > 0.35 * iteration_s:
        whole.append(words(0, 16, f"compute {humanise_seconds(compute.seconds)}", "w b", 8))
    rows, begun = [], 0.0
    for part in others:
        share = part.seconds / tail
        drawn = figure(
            20,
            f"{part.name} {humanise_seconds(part.seconds)}",
            [bar(begun, 0, share, 20, _of(part))],
        )
        begun += share
        under = part.level or _UNDER.get(part.name, "")
        rows.append(
            f'<div><b>{part.name}</b><br><span class="nest-dim">{html.escape(under)}</span></div>'
            f"<b>{humanise_seconds(part.seconds)}</b><div>{drawn}</div>"
        )
    start = 100 * compute.seconds / iteration_s
    shape = f"polygon({start:.2f}% 0, 100% 0, 100% 100%, 128px 100%, 128px 24px)"
    said = humanise_seconds(iteration_s)
    return (
        f'<div class="nest-title">{title}</div><div class="nest-subtitle">Slowest stage, {said}'
        + (f"; below, its last {humanise_seconds(tail)}" if rows else "")
        + f'</div><div class="nest-iteration">{figure(24, title, whole)}'
        + (
            f'<div class="nest-tail" style="--cone: {shape}">{"".join(rows)}<i></i><i></i>'
            f'<div class="nest-ends nest-dim"><span>{humanise_seconds(compute.seconds)}</span>'
            f"<span>{said}</span></div></div>"
            if rows
            else ""
        )
        + f'</div><div class="nest-subtitle">{html.escape(hidden)}</div>'
    )


def _of(part: IterationPart) -> str:
    return _COLOURS.get(part.name, "--comm")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
