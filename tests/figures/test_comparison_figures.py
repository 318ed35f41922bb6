"""Throughput, stage balance and memory: what every bar must add up to, and what titles claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nest_core.documents.units import humanise_bytes, percent
from nest_core.planner.baselines import NAMES
from nest_core.report.explain.summary import bottleneck, fullest
from nest_core.report.figures import (
    MethodRow,
    balance_figure,
    entries,
    memory_figure,
    throughput_figure,
)
from nest_core.report.figures.style import (
    ACCENT,
    HATCH,
    LIMIT,
    MEMORY_COLOURS,
    TIME_COLOURS,
    axis_unit,
)


def rows_of(answer):
    return entries(answer.result, answer.baselines)


def stacked(picture, row):
    """Sum of a row's bars, per stage, in units of the axis."""
    axis = "x" if row == 0 else f"x{row + 1}"
    bars = [t for t in picture.plot.data if t.type == "bar" and (t.xaxis or "x") == axis]
    return np.sum([bar.y for bar in bars], axis=0), bars


@pytest.mark.sampled(4)
def test_the_bars_of_a_stage_add_up_to_the_iteration_time(preset_answer):
    rows = rows_of(preset_answer)
    picture = balance_figure(rows)
    longest = max(row.report.iteration_s for row in rows if row.report)
    scale, unit = axis_unit(longest, "s")
    assert picture.subtitle.endswith(f", {unit}")
    for number, row in enumerate(rows):
        if row.report:
            total, _ = stacked(picture, number)
            assert total == pytest.approx([row.report.iteration_s / scale] * len(total), rel=1e-4)


def test_the_bars_of_a_stage_add_up_to_its_memory(preset_answer):
    rows = rows_of(preset_answer)
    limit = preset_answer.scenario.accelerator.memory_bytes
    picture = memory_figure(rows, limit)
    scale, unit = axis_unit(limit, "B")
    assert picture.subtitle.endswith(f", {unit}")
    for number, row in enumerate(rows):
        if row.report:
            total, _ = stacked(picture, number)
            expected = [stage.memory.total / scale for stage in row.report.stages]
            assert total == pytest.approx(expected, rel=1e-4)
    lines = picture.plot.layout.shapes
    assert len(lines) == len(rows)
    assert {line.y0 for line in lines} == {limit / scale}
    assert {line.line.color for line in lines} == {LIMIT}


@pytest.mark.parametrize("figure", ["balance", "memory"])
def test_a_bar_is_as_wide_as_the_layers_of_its_stage(preset_answer, figure):
    rows = rows_of(preset_answer)
    picture = (
        balance_figure(rows)
        if figure == "balance"
        else memory_figure(rows, preset_answer.scenario.accelerator.memory_bytes)
    )
    for number, row in enumerate(rows):
        if row.report:
            _, bars = stacked(picture, number)
            virtual_stages = np.diff(row.report.plan.cuts)
            widths = virtual_stages.reshape(-1, row.report.plan.point.pp).sum(axis=0)
            for bar in bars:
                assert list(bar.width) == list(widths)
                assert list(bar.x) == pytest.approx(np.cumsum(widths) - widths / 2)


@pytest.mark.parametrize("figure", ["balance", "memory"])
def test_rows_share_both_axes(preset_answer, figure):
    rows = rows_of(preset_answer)
    picture = (
        balance_figure(rows)
        if figure == "balance"
        else memory_figure(rows, preset_answer.scenario.accelerator.memory_bytes)
    )
    layout = picture.plot.layout.to_plotly_json()
    for letter in "xy":
        axes = [layout[key] for key in layout if key.startswith(f"{letter}axis")]
        assert len(axes) == len(rows)
        assert len({tuple(axis["range"]) for axis in axes}) == 1


def test_the_title_names_the_bottleneck(preset_answer):
    best = preset_answer.result.best
    title = balance_figure(rows_of(preset_answer)).title
    loads = [stage.micro_batch_s for stage in best.stages]
    number, excess = bottleneck(best)
    assert loads[number] == max(loads)
    assert excess == pytest.approx(max(loads) / np.mean(loads) - 1)
    if len(loads) == 1:
        assert title.startswith("One stage")
    elif "balanced" in title:
        assert max(loads) < 1.005 * min(loads)
    elif slow := [load for load in loads if load > 0.995 * max(loads)][1:]:
        assert title.startswith(f"{len(slow) + 1} of {len(loads)} stages are slowest, ")
    else:
        bottleneck_words = f"Stage {number + 1} is the bottleneck, {percent(excess)} above the mean"
        assert title.startswith(bottleneck_words)


def test_the_title_names_the_fullest_stage(preset_answer):
    best = preset_answer.result.best
    title = memory_figure(
        rows_of(preset_answer), preset_answer.scenario.accelerator.memory_bytes
    ).title
    number, stage = fullest(best)
    assert stage.memory.total == max(entry.memory.total for entry in best.stages)
    assert humanise_bytes(stage.memory.total) in title
    needed = humanise_bytes(stage.memory.total)
    alike = [entry for entry in best.stages if humanise_bytes(entry.memory.total) == needed]
    assert len(alike) > 1 or len(best.stages) == 1 or f"Stage {number + 1} is fullest" in title


def test_throughput_bars_are_sequences_times_tokens(preset_answer):
    rows = rows_of(preset_answer)
    tokens = preset_answer.scenario.sequence
    picture = throughput_figure(rows, tokens)
    (bars,) = picture.plot.data
    rates = [row.report.samples_per_s * tokens if row.report else 0.0 for row in rows]
    scale, unit = axis_unit(max(rates), "tokens/s")
    assert list(bars.x) == pytest.approx([rate / scale for rate in rates])
    assert unit in picture.subtitle
    assert unit in picture.plot.layout.xaxis.title.text
    rival, speedup = preset_answer.best_baseline, preset_answer.speedup
    faster = [
        row
        for row in rows
        if row.report and row.report.samples_per_s > rows[0].report.samples_per_s * 1.005
    ]
    if faster:
        (program,) = faster
        assert program.report.plan.ragged
        assert "differ in width" in picture.title
    elif rival is None:
        priced = any(row.report for row in rows if not row.ours)
        alone = "Ours is the only feasible plan"
        assert picture.title == (
            alone if priced else "No baseline has a placement here to compare with"
        )
    elif speedup > 1.005:
        assert picture.title == (
            f"Our plan is {speedup:.2f} × as fast as the best baseline, {rival.label}"
        )
    else:
        assert picture.title == f"The best baseline, {rival.label}, is as fast as our plan"


def test_one_meaning_has_one_colour(answered):
    example = answered("llama2-7b-64-h100")
    rows = rows_of(example)
    for picture, colours in (
        (balance_figure(rows), TIME_COLOURS),
        (memory_figure(rows, example.scenario.accelerator.memory_bytes), MEMORY_COLOURS),
    ):
        assert dict(picture.legend) == colours
        for bar in picture.plot.data:
            if bar.type == "bar":
                assert bar.marker.color == colours[bar.name]
    assert TIME_COLOURS["compute"] == "#0072B2"
    assert TIME_COLOURS["communication"] == "#E69F00"
    assert MEMORY_COLOURS["stash"] == "#F0E442"
    bars = throughput_figure(rows, 1).plot.data[0]
    assert list(bars.marker.color).count(ACCENT) == 1
    assert bars.marker.color[0] == ACCENT


LONG = (
    "no plan fits into memory: the leanest found (tp 16, cp 4, pp 1, dp 1, micro-batch 1, ZeRO 3) "
    "needs 3.6 GiB per device, 550 MiB more than the 3.00 GiB there are"
)


def test_a_long_reason_is_short_beside_its_bar_and_whole_under_the_pointer(answered):
    ours = rows_of(answered("llama2-7b-64-h100"))[0]
    rows = (ours, MethodRow("Phaze", None, LONG), MethodRow("Mist", None, "x" * 30 + " word" * 40))
    bars, pointed = throughput_figure(rows, 1).plot.data
    assert bars.text[1] == "no plan fits into memory"
    assert len(bars.text[2]) <= 48
    assert bars.text[2].endswith("word …")
    assert list(pointed.y) == [1, 2]
    assert set(pointed.x) == {throughput_figure(rows, 1).plot.layout.xaxis.range[1]}
    assert pointed.opacity == 0
    assert LONG in pointed.customdata[0].replace("<br>", " ")
    assert max(map(len, pointed.customdata[0].split("<br>"))) <= 70
    assert len(throughput_figure(rows, 1).rows()) == len(rows)
    for picture in (balance_figure(rows), memory_figure(rows, 1e9)):
        labels = {
            note.text: note.hovertext
            for note in picture.plot.layout.annotations
            if note.text.startswith(("Phaze", "Mist"))
        }
        assert LONG in next(iter(labels.values())).replace("<br>", " ")
        assert max(len(line) for text in labels for line in text.split("<br>")) <= 64


@pytest.mark.check
def test_what_stands_above_a_row_takes_two_lines_at_most(infeasible):
    ours, *others = rows_of(infeasible)
    priced = next(row for row in others if row.report)
    rows = (ours, replace(priced, name="A method with a name that is rather long", stale=True))
    texts = [note.text for note in balance_figure(rows).plot.layout.annotations]
    (text,) = (text for text in texts if text.startswith("A method"))
    lines = text.split("<br>")
    assert len(lines) == 2
    assert max(map(len, lines)) <= 64
    assert text.endswith("previous request")


def test_infeasible_plans_are_hatched_and_say_why(infeasible):
    rows = rows_of(infeasible)
    assert not any(row.feasible for row in rows)
    bars = throughput_figure(rows, 1).plot.data[0]
    assert bars.text[0] == "no feasible plan"
    shapes = list(bars.marker.pattern.shape)
    priced = [number for number, row in enumerate(rows) if row.report]
    assert len(priced) > 1
    for number in priced:
        over = (
            fullest(rows[number].report)[1].memory.total
            - infeasible.scenario.accelerator.memory_bytes
        )
        assert bars.text[number] == f"does not fit, {humanise_bytes(over)} over"
        assert shapes[number] == HATCH
    _, stages = stacked(
        memory_figure(rows, infeasible.scenario.accelerator.memory_bytes), priced[0]
    )
    assert {bar.marker.pattern.shape for bar in stages} == {HATCH}


def test_a_method_without_any_plan_leaves_an_empty_row(infeasible):
    rows = rows_of(infeasible)
    number = next(n for n, row in enumerate(rows) if n and row.report is None)
    picture = balance_figure(rows)
    total, bars = stacked(picture, number)
    assert not bars
    assert np.size(total) == 1
    labels = [note.text for note in picture.plot.layout.annotations]
    assert any(label.startswith(f"{rows[number].name}  ") for label in labels)


def test_rows_that_are_awaited_claim_nothing(answered):
    example = answered("llama2-7b-64-h100")
    names = example.scenario.baselines
    rows = entries(example.result, (), names)
    assert [row.is_pending for row in rows] == [False] + [True] * 5
    picture = throughput_figure(rows, 1)
    assert picture.title == "Our plan is found; the baselines are being priced"
    assert [bool(length) for length in picture.plot.data[0].x] == [True] + [False] * 5
    assert [row.report is None for row in rows] == [False] + [True] * 5
    assert [row.name for row in rows] == ["Exact search (ours)", *(NAMES[name] for name in names)]


def test_heights_do_not_depend_on_the_data(answered):
    shapes = set()
    for name in ("llama3-70b-1024-h100", "llama2-7b-64-h100", "gpt3-175b-64-h100"):
        example = answered(name)
        rows = rows_of(example)
        shapes.add(
            tuple(
                picture.plot.layout.height
                for picture in (
                    throughput_figure(rows, 1),
                    balance_figure(rows),
                    memory_figure(rows, example.scenario.accelerator.memory_bytes),
                )
            )
        )
    assert len(shapes) == 1


def test_a_faster_baseline_is_admitted(answered):
    example = answered("llama2-7b-64-h100")
    ours, *others = rows_of(example)
    slow = replace(ours.report, samples_per_s=others[0].report.samples_per_s / 2)
    title = throughput_figure((replace(ours, report=slow), *others), 1).title
    assert title == "Manual is 2.00 × as fast as our plan"


def test_a_picture_carries_its_words_into_notebooks(answered):
    picture = balance_figure(rows_of(answered("llama2-7b-64-h100")))
    figure = picture.titled()
    assert figure.layout.title.text == picture.title
    assert figure.layout.title.subtitle.text == picture.subtitle
    assert figure.layout.height > picture.plot.layout.height
    assert picture.plot.layout.title.text is None
