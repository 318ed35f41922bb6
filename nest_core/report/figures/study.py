"""Figures of studies: a metric over axes, and what every ratio of a tier costs a mix of models."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.costs.interval import span_in_words
from nest_core.documents.columns import COLUMNS
from nest_core.documents.schema import Parameter
from nest_core.documents.units import (
    NOTHING,
    and_others,
    capital,
    chance_percent,
    format_money,
    format_ratio,
    percent,
    percent_beside,
    signed_percent,
)
from nest_core.hardware.posterior import SHARE
from nest_core.report.explain import quantity
from nest_core.report.figures.style import (
    LIMIT,
    PAPER,
    Chart,
    Trace,
    axis_names,
    axis_title,
    bare_axis,
    curve,
    empty,
    hovered,
    note,
    plot,
    ruler,
    value_axis,
)
from nest_core.studies.parameters import Value
from nest_core.studies.study import Study
from nest_core.studies.sweeps import Ratios, RatioStep, TierRatios

__all__ = [
    "is_better_low",
    "ratio_rows",
    "ratios_finding",
    "ratios_picture",
    "study_picture",
]

_HEIGHT, _MARGIN = 380, (72, 16, 28, 58)
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_DASHES = ("solid", "dash", "dot")
_MAX_PANELS = 6
_GAP = 0.03
_TIERS = tuple(zip(_COLOURS, ("circle", "square", "diamond", "triangle-up", "cross"), strict=False))
"""Colour and symbol of a tier's line."""

Row = Mapping[str, Any]


def is_better_low(metric: str) -> bool:
    """Return whether less of a metric is better."""
    return "tokens_per_s" not in metric and metric != "mfu"


def study_picture(study: Study, rows: Sequence[Row], metric: str) -> Chart:
    """Draw rows of a study as lines, panels for a third axis; those beyond must be filtered before.

    Points carry the number of their point as ``customdata``.
    """
    valued = [row for row in rows if row.get(metric) is not None]
    words = COLUMNS[metric]
    if not valued:
        return empty("No point has a plan", capital(words), _HEIGHT, (62, 16, 14, 58))
    x, *others = study.axes
    lines, panels = ([*others[:2], None, None])[:2]
    every_panel, values = _present(panels, valued), _present(lines, valued)
    drawn = every_panel[:_MAX_PANELS]
    top = 1.08 * max(float(row[metric]) for row in valued)
    width = (1.0 + _GAP) / len(drawn)
    axes: dict[str, Trace] = {}
    data, heads = [], []
    for place, panel in enumerate(drawn):
        across, up = axis_names(place)
        domain = [place * width, min(1.0, (place + 1) * width - _GAP)]
        axes[f"xaxis{across[1:]}"] = _across(x, domain, len(drawn))
        axes[f"yaxis{up[1:]}"] = value_axis(
            words if place == 0 else "",
            range=[0.0, top],
            anchor=across,
            nticks=None,
            tickformat=",.3~s" if top >= 1000 else "~g",
            showticklabels=place == 0,
        )
        if panels is not None:
            heads.append(
                note(
                    panels.named(panel),
                    sum(domain) / 2,
                    1.0,
                    font=None,
                    **PAPER,
                    xanchor="center",
                    yanchor="bottom",
                )
            )
        for number, value in enumerate(values):
            points = [
                row
                for row in valued
                if (panels is None or row[panels.column] == panel)
                and (lines is None or row[lines.column] == value)
            ]
            name = lines.named(value) if lines else ""
            data.append(_line(points, x, metric, number, name) | {"xaxis": across, "yaxis": up})
    reading = [
        "Every point is planned anew.",
        *(["Hollow: misses a constraint."] if any(not row["meets"] for row in valued) else []),
        *(
            [f"The first {_MAX_PANELS} values of {panels.label} are drawn."]
            if panels and len(every_panel) > _MAX_PANELS
            else []
        ),
        *(["Filter the axes that are not drawn to one value each."] if len(study.axes) > 3 else []),
    ]
    return Chart(
        _finding(study, valued, metric),
        capital(words),
        " ".join(reading),
        plot(data, _HEIGHT, _MARGIN, annotations=heads, **axes),
        tuple(
            (lines.named(value), _COLOURS[number % len(_COLOURS)])
            for number, value in enumerate(values)
            if lines
        ),
    )


def _present(axis: Parameter | None, rows: Sequence[Row]) -> list[Value | None]:
    """Return values of an axis that rows have, in order; one None without an axis."""
    if axis is None:
        return [None]
    present = {row[axis.column] for row in rows}
    return [value for value in axis.values if value in present]


def _places(axis: Parameter) -> tuple[dict[Value, float], bool]:
    """Return where the values of an axis stand, and whether to scale."""
    numeric = all(isinstance(value, int | float) for value in axis.values)
    at = {value: float(value) if numeric else float(n) for n, value in enumerate(axis.values)}
    return at, numeric


def _line(rows: Sequence[Row], x: Parameter, metric: str, number: int, name: str) -> Trace:
    at, _ = _places(x)
    ordered = sorted(rows, key=lambda row: at[row[x.column]])
    colour = _COLOURS[number % len(_COLOURS)]
    return curve(
        [at[row[x.column]] for row in ordered],
        [row[metric] for row in ordered],
        colour,
        mode="lines+markers",
        name=name,
        line={"dash": _DASHES[number // len(_COLOURS) % len(_DASHES)]},
        marker={
            "size": 8,
            "color": colour,
            "symbol": ["circle" if row["meets"] else "circle-open" for row in ordered],
        },
        customdata=[row["point"] for row in ordered],
        **hovered(
            f"{f'{name}, ' if name else ''}{x.named(row[x.column])}<br>"
            f"{_figure(metric, row[metric])}<br>{row['plan']}"
            + (f"<br>{row['reason']}" if row["reason"] else "")
            for row in ordered
        ),
    )


def _across(axis: Parameter, domain: list[float], panels: int) -> Trace:
    at, numeric = _places(axis)
    places = list(at.values())
    span = max(places) - min(places) or 1.0
    closest = min((b - a for a, b in itertools.pairwise(sorted(places))), default=1.0)
    crowded = len(places) > 12 // panels or (numeric and closest < 0.04 * panels * span)
    labelled = {"tickvals": places, "ticktext": [axis.words(value) for value in at]}
    return bare_axis(
        domain=domain,
        title=axis_title(axis.title, 6),
        range=[min(places) - 0.06 * span, max(places) + 0.06 * span],
        nticks=6,
        tickangle=0 if numeric else -30,
        **({} if numeric and crowded else labelled),
    )


def _figure(metric: str, value: float) -> str:
    """Return a metric's value with its unit."""
    unit = COLUMNS[metric].partition(", ")[2]
    return percent(value) if unit.startswith("share") or metric == "mfu" else quantity(value, unit)


def _finding(study: Study, rows: Sequence[Row], metric: str) -> str:
    """Return where a metric is best, among the points that meet the constraints."""
    allowed = [row for row in rows if row["meets"]]
    if not allowed:
        return "No point meets the constraints"
    pick, verb = (min, "Least") if is_better_low(metric) else (max, "Most")
    best = pick(float(row[metric]) for row in allowed)
    where = and_others(
        [
            ", ".join(axis.named(row[axis.column]) for axis in study.axes)
            for row in allowed
            if row[metric] == best
        ],
        "other point",
    )
    return f"{verb} {COLUMNS[metric].partition(', ')[0]}: {_figure(metric, best)} at {where}"


def ratios_picture(ratios: Ratios) -> Chart:
    """Draw loss against ratio, one line per tier, each up to the first ratio that costs too much.

    Needs one tier at least.
    """
    ends = [end for tier in ratios.tiers for step in tier.steps for end in step.span]
    limit = 100 * ratios.limit
    top, low = 100 * max(1.5 * ratios.limit, *ends), 100 * min(0.0, *ends)
    looks = list(zip(ratios.tiers, itertools.cycle(_TIERS)))
    return Chart(
        capital(
            "; ".join(
                f"{tier.label} stays below the limit to {format_ratio(tier.highest.ratio)}"
                if tier.beyond is None
                else f"{tier.label} has no plan at {format_ratio(tier.beyond.ratio)}"
                if tier.beyond.loss is None
                else f"{tier.label} reaches the limit at {format_ratio(tier.beyond.ratio)}"
                for tier in ratios.tiers
            )
        ),
        "Loss of the mix against the ratio of one tier, the others as they are; %",
        "Each ratio is planned anew for every model. The highest is the last before the limit. "
        f"Uprights: the {percent(SHARE)} interval of the difference to the least ratio, on one "
        "cluster. " + UNMEASURED_RATIO,
        plot(
            [_tier_line(ratios, tier, colour, symbol) for tier, (colour, symbol) in looks],
            360,
            (62, 16, 18, 50),
            xaxis=value_axis("oversubscription, down : up", nticks=12),
            yaxis=value_axis("loss, %", range=[low - 0.04 * top, 1.08 * top]),
            shapes=[ruler(limit)],
            annotations=[
                note(
                    f"limit {limit:g} %",
                    0,
                    limit,
                    xref="paper",
                    xanchor="left",
                    yanchor="bottom",
                    font={"color": LIMIT, "size": 12},
                )
            ],
        ),
        tuple((tier.label, colour) for tier, (colour, _) in looks if len(looks) > 1),
    )


def _tier_line(ratios: Ratios, tier: TierRatios, colour: str, symbol: str) -> Trace:
    steps = [(step, step.loss) for step in tier.steps if step.loss is not None]
    symbols = [symbol + ("" if loss < ratios.limit else "-open") for _, loss in steps]
    return curve(
        [step.ratio for step, _ in steps],
        [100 * loss for _, loss in steps],
        colour,
        mode="lines+markers",
        name=tier.label,
        marker={"size": 9, "color": colour, "symbol": symbols},
        error_y={
            "symmetric": False,
            "array": [100 * (step.span[1] - loss) for step, loss in steps],
            "arrayminus": [100 * (loss - step.span[0]) for step, loss in steps],
            "thickness": 1,
            "width": 3,
        },
        **hovered(
            f"<b>{tier.label} {format_ratio(step.ratio)}</b><br>realised {step.realised}<br>"
            f"below {100 * ratios.limit:g} %: sure to {_sure(ratios, step)}<br>"
            + "<br>".join(
                f"{name} loses {percent(lost)}"
                for (name, _), lost in zip(ratios.mix, step.losses, strict=True)
            )
            for step, _ in steps
        ),
    )


def ratio_rows(ratios: Ratios) -> list[dict[str, str]]:
    """Return one row per tier for a table: what it bears, and what lies on either side."""
    return [
        {
            "tier": tier.label,
            "now": format_ratio(tier.present),
            "highest": format_ratio(tier.highest.ratio),
            "costs": percent_beside(tier.highest.loss or 0.0, ratios.limit),
            f"{percent(SHARE)} interval": span_in_words(tier.highest.span, signed_percent),
            "sure to": _sure(ratios, tier.highest),
            "the next": format_ratio(tier.beyond.ratio) if tier.beyond else NOTHING,
            "would cost": NOTHING
            if tier.beyond is None or tier.beyond.loss is None
            else percent_beside(tier.beyond.loss, ratios.limit),
            f"network, from {format_ratio(tier.steps[0].ratio)}": NOTHING
            if tier.price_usd is None
            else " → ".join(format_money(price) for price in tier.price_usd),
            "becomes": tier.highest.realised,
        }
        for tier in ratios.tiers
    ]


def ratios_finding(ratios: Ratios) -> str:
    """Return what every tier bears, in one sentence."""
    if not ratios.tiers:
        return "No tier was tried to its end"
    borne = ", ".join(
        f"{tier.label} {format_ratio(tier.highest.ratio)} (sure to "
        f"{_sure(ratios, tier.highest)}{'' if tier.beyond else ', and no higher was tried'})"
        for tier in ratios.tiers
    )
    return capital(f"{borne}: the most that costs the mix less than {100 * ratios.limit:g} %")


def _sure(ratios: Ratios, step: RatioStep) -> str:
    """Return how sure it is that a ratio costs less than the limit."""
    return chance_percent(step.chance_below(ratios.limit))
