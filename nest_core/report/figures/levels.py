"""At which level any two devices meet, as heat maps, and what the links of every tier carry.

Levels of different fabrics have nothing in common but what they give a device, so of several
fabrics the colour is the bandwidth at the level where two devices meet, on a logarithmic scale that
all share. Loads are shares of the iteration, class by class.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nest_core.costs.loads import Loads
from nest_core.documents.units import (
    capital,
    humanise_bytes,
    humanise_rate,
    humanise_seconds,
    percent,
)
from nest_core.network import (
    MAX_BLOCKS,
    LevelBlocks,
    Network,
    Path,
    level_blocks,
)
from nest_core.report.explain import CLASSES
from nest_core.report.figures.style import (
    TIME_COLOURS,
    Chart,
    Trace,
    axis_names,
    axis_title,
    bare_axis,
    class_bar,
    empty,
    note,
    plain,
    plot,
    shade,
    stepped_scale,
)
from nest_core.studies.whole_bill import Candidate

__all__ = [
    "LOAD_SCALE",
    "level_figure",
    "levels_picture",
    "linkload_figure",
    "tier_name",
    "ways",
]

_HEIGHT = 440
# The upper two thirds of cividis (Nuñez, Anderton and Renslow 2018): ordered, and the same to
# colour-blind readers. The lighter, the closer.
_INNER, _OUTER = (253, 231, 86), (67, 78, 108)
_LABELLED_LEVELS = 5
_LONGEST_WAY = 9
_PER_ROW, _ROW = 3, 300
_TICKS = 6
_SIDE = 36  # pixels: half of a rate below the ends of the scale, a device number beside a matrix
_LONGEST_TITLE = 40  # characters over a third of the page
_CLOSE = 0.12  # decades between two ticks at least


def ways(paths: Sequence[Sequence[Path | None]], names: Mapping[Any, str]) -> list[list[str]]:
    """Return paths in words; of long ones the middle is left out.

    Parameters
    ----------
    paths : rows of Path or None
        As `nest_core.network.link_graph.shortest_paths` finds them.
    names : mapping
        What elements of the graph are called.
    """
    return [[_way(path, names) if path else "" for path in row] for row in paths]


def _way(path: Path, names: Mapping[Any, str]) -> str:
    # Plotly reads tags in what it shows, and people name elements as they like.
    steps = [names[element].replace("<", "&lt;") for element in path.elements]
    if len(steps) > _LONGEST_WAY:
        half = _LONGEST_WAY // 2
        steps = [*steps[:half], f"… {len(steps) - 2 * half} more …", *steps[-half:]]
    narrow = humanise_rate(path.bandwidth_Bps)
    late = humanise_seconds(path.latency_s)
    return f"{' → '.join(steps)}<br>narrowest step {narrow}, {late} in all"


def level_figure(
    network: Network,
    height: int = _HEIGHT,
    ways: Sequence[Sequence[str]] | None = None,
    limit: int = MAX_BLOCKS,
) -> Chart:
    """Draw the matrix, coloured by level; hovering names the level, its bandwidth and latency.

    Parameters
    ----------
    network : Network
    height : int
        Pixels.
    ways : sequence of sequence of str, optional
        What lies between the first devices of two blocks, shown on hovering; of the shape of
        `level_blocks` with the same limit.
    limit : int
        Most blocks.
    """
    blocks, levels = level_blocks(network, limit), network.levels
    end, count = float(len(blocks.matrix) * blocks.size), len(levels)
    rates = [humanise_rate(level.bandwidth_Bps) for level in levels]
    labels = [
        f"{level.name}: {rate}, {humanise_seconds(level.latency_s)}"
        for level, rate in zip(levels, rates, strict=True)
    ]
    labelled = range(0, count, -(-count // _LABELLED_LEVELS))
    cells = _heat(blocks) | {
        "z": blocks.matrix.astype(np.int16),
        "text": np.array([*labels, "the same device"])[blocks.matrix],
        "zmin": -0.5,
        "zmax": count - 0.5,
        "colorscale": stepped_scale(
            [shade(_INNER, _OUTER, index / max(count - 1, 1)) for index in range(count)]
        ),
        "colorbar": class_bar(labelled, [f"{levels[i].name}<br>{rates[i]}" for i in labelled])
        | {"tickangle": 0},
        "hovertemplate": "devices near %{x:.0f} and %{y:.0f} meet at<br>%{text} (per device, one "
        f"way){'' if ways is None else '%{customdata}'}<extra></extra>",
    }
    if ways is not None:
        cells["customdata"] = [[f"<br>{way}" if way else "" for way in row] for row in ways]
    axis = bare_axis(title=axis_title("device", 4), constrain="domain", nticks=6)
    blocked = f", blocks of {blocks.size} devices" if blocks.size > 1 else ""
    return Chart(
        _finding(network),
        f"Level at which two devices meet{blocked}; bandwidth of one device, one way",
        "A square is a group whose devices meet at that level: the lighter, the closer."
        if network.torus is None
        else "The lighter a cell, the fewer hops lie between its two devices.",
        plot(
            [cells],
            height,
            (52, 8, 6, 98),
            xaxis=axis | {"range": [-0.5, end - 0.5]},
            yaxis=axis | {"range": [end - 0.5, -0.5], "scaleanchor": "x"},
        ),
    )


def _heat(blocks: LevelBlocks) -> Trace:
    """Return a heat map's places: the middles of blocks."""
    step = float(blocks.size)
    first = (step - 1) / 2
    return {"type": "heatmap", "x0": first, "dx": step, "y0": first, "dy": step}


def _finding(network: Network) -> str:
    inner, outer = network.levels[0], network.levels[-1]
    rate = humanise_rate(outer.bandwidth_Bps)
    if len(network.levels) == 1:
        return f"One level: {rate} between any two devices"
    ratio = inner.bandwidth_Bps / outer.bandwidth_Bps
    rates = [level.bandwidth_Bps for level in network.levels]
    if max(rates) < 1.001 * min(rates):
        return f"Full bandwidth at every level: {rate} per device"
    if abs(ratio - 1) < 1e-3:
        least = min(network.levels, key=lambda level: level.bandwidth_Bps)
        return f"Bandwidth per device is least at {least.name}: {humanise_rate(min(rates))}"
    change = f"falls {ratio:.3g}" if ratio > 1 else f"rises {1 / ratio:.3g}"
    return f"Bandwidth per device {change}-fold, {inner.name} to {outer.name}"


def levels_picture(every: Sequence[Candidate]) -> Chart:
    """Draw one matrix per candidate in their order, three in a row."""
    columns = min(_PER_ROW, len(every))
    rows = math.ceil(len(every) / columns)
    data: list[Trace] = []
    layout: dict[str, Any] = {}
    titles: list[Trace] = []
    for place, candidate in enumerate(every):
        down, across = divmod(place, columns)
        x = [(across + 0.06) / columns, (across + 0.94) / columns]
        y = [1 - (down + 0.88) / rows, 1 - (down + 0.09) / rows]
        data.append(_matrix(candidate, place))
        layout |= _axes(place, x, y, candidate.scenario.fabric.devices)
        short = textwrap.shorten(candidate.name, _LONGEST_TITLE, placeholder=" …")
        ends = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        titles.append(note(plain(short), x[0], y[1], **ends))
    rates = [level.bandwidth_Bps for candidate in every for level in candidate.levels]
    return Chart(
        _levels_finding(every),
        "Bandwidth of one device to another, one way; device numbers on both axes",
        "A square is a group whose devices meet at that level; one colour scale for all. The "
        "lighter, the more bandwidth.",
        plot(
            data,
            rows * _ROW + 60,
            (_SIDE, _SIDE, 4, 60),
            coloraxis=_colours(rates),
            annotations=titles,
            **layout,
        ),
    )


def _matrix(candidate: Candidate, place: int) -> Trace:
    rates = np.array([*[level.bandwidth_Bps for level in candidate.levels], np.nan])[
        candidate.blocks.matrix
    ].astype(np.float32)
    across, up = axis_names(place)
    return _heat(candidate.blocks) | {
        "xaxis": across,
        "yaxis": up,
        "z": np.log10(rates),
        "customdata": rates,
        "coloraxis": "coloraxis",
        "hovertemplate": "devices near %{x:.0f} and %{y:.0f}: %{customdata:.3s}B/s per device, one "
        "way<extra></extra>",
    }


def _axes(place: int, x: list[float], y: list[float], devices: int) -> dict[str, Trace]:
    across, up = axis_names(place)
    axis = bare_axis(constrain="domain", nticks=4)
    horizontal = {"anchor": up, "constraintoward": "left"}
    vertical = {"anchor": across, "constraintoward": "top", "scaleanchor": across}
    return {
        f"xaxis{across[1:]}": axis | {"domain": x, "range": [-0.5, devices - 0.5]} | horizontal,
        f"yaxis{up[1:]}": axis | {"domain": y, "range": [devices - 0.5, -0.5]} | vertical,
    }


def _colours(rates: Sequence[float]) -> dict[str, Any]:
    low, high = math.log10(min(rates)), math.log10(max(rates))
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    ticks: list[float] = []
    for rate in sorted({float(f"{rate:.3g}") for rate in rates}, reverse=True):
        if all(abs(math.log10(rate) - tick) >= _CLOSE * max(1.0, high - low) for tick in ticks):
            ticks.append(math.log10(rate))
    bar = class_bar(ticks[:_TICKS], [humanise_rate(10**tick) for tick in ticks])
    return {
        "cmin": low,
        "cmax": high,
        "colorscale": [[0.0, shade(_OUTER, _INNER, 0)], [1.0, shade(_OUTER, _INNER, 1)]],
        "colorbar": bar | {"y": 0.02, "ticklabeloverflow": "allow"},
    }


def _levels_finding(every: Sequence[Candidate]) -> str:
    outer = {candidate.name: candidate.levels[-1].bandwidth_Bps for candidate in every}
    least, most = min(outer, key=outer.__getitem__), max(outer, key=outer.__getitem__)
    low, high = outer[least], outer[most]
    if high / low < 1.005:
        return f"The farthest devices have {humanise_rate(high)} between them in all"
    return (
        f"The farthest devices have {high / low:.3g} times as much between them in {most} "
        f"({humanise_rate(high)}) as in {least} ({humanise_rate(low)})"
    )


def tier_name(network: Network, level: int) -> str:
    """Return the links whose traffic a level's pairs send first; a torus has one kind of link."""
    return "links" if network.torus is not None else network.levels[level].name


LOAD_SCALE = [(0.0, "#F7EBCF"), (0.6, TIME_COLOURS["communication"]), (1.0, "#9C5F00")]
"""From little to much, around the colour of communication."""

_SHORT = {
    "tied": "tied copies",
    "expert_data": "expert gradients",
    "data": "gradients",
    "ep": "experts",
    "etp": "experts' tensors",
    "cp": "context",
    "tp": "tensor",
    "transfers": "pipeline",
}
_LOAD_ROW, _LOAD_MARGIN = 46, (148, 8, 36, 8)
_MIN_SHARE = 5e-6  # of an iteration; less is shown as nothing


def linkload_figure(loads: Loads | None) -> Chart:
    """Draw the busiest link of every tier and the mean of all, outermost tier at the top.

    Parameters
    ----------
    loads : Loads or None
        None: there is no plan.
    """
    if loads is None or not loads.bytes:
        why = "No plan sends anything" if loads is None else "Nothing is sent"
        return empty(why, "Load per link", 44 + 4 * _LOAD_ROW, _LOAD_MARGIN)
    names = [name for name in reversed(CLASSES) if name in loads.bytes]
    rows = []
    for tier in reversed(loads.tiers):
        name, count = tier_name(loads.network, tier.level), f"mean of {tier.links:,}"
        worst, full = tier.busiest, tier.busiest.capacity_Bps * loads.iteration_s
        rows += [
            (f"<b>{name}</b>, busiest", f"busiest link, {worst.link}", worst.users, full),
            (f"{name}, {count}", f"{count} links", tier.mean_busy, full),
        ]
    z = np.array(
        [[*(busy.get(name, 0.0) for name in names), sum(busy.values())] for _, _, busy, _ in rows]
    )
    cells = {
        "type": "heatmap",
        "x": [*(_SHORT[name] for name in names), "together"],
        "y": [label for label, _, _, _ in rows],
        "z": 100 * z,
        "zmin": 0.0,
        "zmax": 100 * float(z.max()) or 1.0,
        "text": [
            [percent(value) if value > _MIN_SHARE else "0" for value in line] for line in z.tolist()
        ],
        "texttemplate": "%{text}",
        "customdata": [
            [f"{words}: {humanise_bytes(share * full)}" for share in line]
            for line, (_, words, _, full) in zip(z.tolist(), rows, strict=True)
        ],
        "colorscale": LOAD_SCALE,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{x}: %{text} of the iteration<br>%{customdata}<extra></extra>",
    }
    ecmp = " Static ECMP: one draw of the hash." if loads.network.link_map.variants > 1 else ""
    return Chart(
        _load_finding(loads),
        "Load per link: share of the iteration that a link is busy at its full rate, by traffic",
        "Bytes over the links' rate; a tier's links lead up to it and down from it, each way on "
        f"its own. Libraries reach less than the links' rate, so collectives take longer.{ecmp}",
        plot(
            [cells],
            44 + _LOAD_ROW * len(rows),
            _LOAD_MARGIN,
            xaxis={"side": "top", "fixedrange": True, "showgrid": False, "ticks": ""},
            yaxis=bare_axis(range=[len(rows) - 0.5, -0.5], ticksuffix=" "),
        ),
    )


def _load_finding(loads: Loads) -> str:
    worst = max(loads.tiers, key=lambda tier: tier.busiest.utilisation)
    users, share = worst.busiest.users, worst.busiest.utilisation
    if share <= _MIN_SHARE:
        return "No link is busy for long"
    name = next(iter(users))
    where = tier_name(loads.network, worst.level)
    links = "Links" if loads.network.torus is not None else f"{capital(where)} links"
    what = CLASSES[name].replace("-parallel", "")
    most = "mostly" if 2 * users[name] > share else "most"
    return f"{links} are busy up to {percent(share)}, {most} with {what}"
