"""Jobs that share a fabric: slowdowns by placement, and what ratios cost a population."""

from collections.abc import Sequence

from nest_core.documents.units import format_ratio, percent
from nest_core.report.figures.style import (
    ACCENT,
    LIMIT,
    MUTED,
    Chart,
    curve,
    dots,
    plain,
    plot,
    pointed,
    rows_axis,
    value_axis,
)
from nest_core.studies.mixes import MixResult
from nest_core.studies.population import Population

__all__ = ["mix_finding", "population_finding", "population_picture", "slowdowns_picture"]

_COLOURS = (ACCENT, "#E69F00", "#009E73", "#CC79A7")
_ROW_PX = 26


def mix_finding(result: MixResult) -> str:
    """Return who loses most, and what is known of the worst."""
    worst = max(result.jobs, key=lambda job: job.slowdown)
    lost, most = (percent(ratio - 1.0) for ratio in (worst.slowdown, result.bound_slowdown))
    if result.bound_slowdown < 1.0 + 5e-4:
        return f"Placed {result.placement}, no job can slow another"
    return f"Placed {result.placement}, {worst.name} takes {lost} longer; at most {most}"


def slowdowns_picture(results: Sequence[MixResult]) -> Chart:
    """Draw how much longer each job takes, and at most, placement by placement."""
    names = [job.name for job in results[0].jobs]
    top = 100 * (max(of.bound_slowdown for of in results) - 1) or 1.0
    traces = []
    for number, (result, colour) in enumerate(zip(results, _COLOURS, strict=False)):
        rows = [n + 0.22 * (number - (len(results) - 1) / 2) for n in range(len(names))]
        lost = [100 * (job.slowdown - 1) for job in result.jobs]
        most = [100 * (job.most_s / job.undisturbed_s - 1) for job in result.jobs]
        pairs = list(zip(lost, most, strict=True))
        texts = [f"{result.placement}: {a:.3g} %, at most {b:.3g} %" for a, b in pairs]
        marker = {"color": colour, "size": 9}
        bound = {"symmetric": False, "array": [b - a for a, b in pairs], "arrayminus": [0] * 8}
        error_x = bound | {"color": colour, "thickness": 1.5, "width": 5}
        traces.append(dots(lost, rows, marker, error_x=error_x, **pointed(texts)))
    return Chart(
        mix_finding(min(results, key=lambda result: max(job.slowdown for job in result.jobs))),
        "How much longer an iteration takes than with idle neighbours; %",
        "Dot: the mean of iterations side by side. Upright: what it takes at most, whenever its "
        "neighbours' iterations fall.",
        plot(
            traces,
            64 + _ROW_PX * (1 + len(results)) * len(names) // 2,
            (110, 16, 8, 50),
            xaxis=value_axis("longer than undisturbed, %", range=[-0.03 * top, 1.05 * top]),
            yaxis=rows_axis([plain(name) for name in names]),
        ),
        tuple((of.placement, colour) for of, colour in zip(results, _COLOURS, strict=False)),
    )


def population_finding(result: Population) -> str:
    """Return what the highest ratio costs, and how much sits under one leaf."""
    last = result.ratios[-1]
    span = [percent(last[name]) for name in ("loss", "contended_loss")]
    cost = span[0] if span[0] == span[1] else f"{span[0].removesuffix(' %')} to {span[1]}"
    return (
        f"{format_ratio(last['ratio'])} costs this population {cost}; "
        f"{percent(result.under_one_leaf)} of its GPU-hours are under one leaf"
    )


def population_picture(result: Population) -> Chart:
    """Draw the loss of a population against the ratio of the leaves' uplinks."""
    ratios = [row["ratio"] for row in result.ratios]
    looks = (("loss", "idle neighbours", MUTED), ("contended_loss", "all send as much", LIMIT))
    return Chart(
        population_finding(result),
        "Loss weighted by GPU-hours against the ratio of the leaves' uplinks; %",
        f"Placed by topology/{result.placement}. Between the lines lies what neighbours do.",
        plot(
            [
                curve(
                    ratios,
                    [100 * row[key] for row in result.ratios],
                    colour,
                    mode="lines+markers",
                    name=name,
                    marker={"size": 8, "color": colour},
                )
                for key, name, colour in looks
            ],
            300,
            (62, 16, 12, 50),
            xaxis=value_axis("oversubscription, down : up", tickvals=ratios),
            yaxis=value_axis("loss, %", autorangeoptions={"include": 0}),
        ),
        tuple((name, colour) for _, name, colour in looks),
    )
