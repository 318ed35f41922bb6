"""Headlines, sentences and rows say what the answer says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nest_core.documents.presets import preset_names
from nest_core.documents.units import humanise_bytes, humanise_seconds, percent, to_gib
from nest_core.fabric import Clos
from nest_core.hardware import load_accelerator
from nest_core.report.explain.summary import (
    accelerator_in_words,
    certificate_line,
    model_in_words,
    plan_in_words,
    quantity,
    stage_rows,
)
from nest_core.scenario import load_fabric, load_scenario
from nest_core.workload.model_files import load_model

NAMES = ["Throughput", "Speed-up", "Iteration time", "Pipeline bubble", "Memory head-room"]


def test_headlines_are_the_report(preset_answer):
    best = preset_answer.result.best
    shown = preset_answer.headlines()
    assert [headline.name for headline in shown] == NAMES
    tokens = best.samples_per_s * preset_answer.scenario.sequence
    free = best.memory_limit_bytes - max(stage.memory.total for stage in best.stages)
    assert [headline.value for headline in shown] == [
        quantity(tokens, "tokens/s"),
        f"{preset_answer.speedup:.2f} ×" if preset_answer.best_baseline else "–",
        humanise_seconds(best.iteration_s),
        percent(best.bubble),
        humanise_bytes(free),
    ]
    assert all(len(headline.formula) >= 2 for headline in shown if headline.value != "–")


def test_the_formula_of_the_iteration_adds_up(preset_answer):
    """The numbers filled in give the iteration time, to the digits shown."""
    formula = preset_answer.headlines()[2].formula[1]
    units = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "min": 60.0}
    match = re.fullmatch(
        r"= (\S+) · (\S+) (\S+) \+ (\S+) (\S+) \+ (\S+) (\S+) = (\S+) (\S+)", formula
    )
    times, slowest, su, fill, fu, sync, yu, result, ru = match.groups()
    value = float(fill) * units[fu] + float(times.replace(",", "")) * float(slowest) * units[su]
    value += float(sync) * units[yu]
    assert value == pytest.approx(preset_answer.result.best.iteration_s, rel=0.01)
    assert float(result) * units[ru] == pytest.approx(value, rel=0.01)


def test_pending_baselines_claim_no_speedup(answered):
    shown = answered("llama2-7b-64-h100").headlines(baselines_pending=True)
    assert shown[1].value == "…"
    assert shown[1].note == "pricing the baselines"


def test_without_a_plan_there_are_no_figures(infeasible):
    shown = infeasible.headlines()
    assert [headline.name for headline in shown] == NAMES
    assert {headline.value for headline in shown} == {"–"}
    assert certificate_line(infeasible.result).startswith("No feasible plan: ")


@pytest.mark.check
def test_without_a_feasible_baseline_there_is_no_speedup(answered):
    shown = answered(
        "llama2-7b-64-h100", "accelerator.memory_GiB=7.0", 'baselines.names=["manual"]'
    ).headlines()
    assert shown[1].value == "–"
    assert shown[1].note == "no baseline is feasible here"


def test_a_tie_is_called_a_tie(answered):
    example = answered("llama2-7b-64-h100")
    assert example.headlines()[1].note == f"as fast as {example.best_baseline.label}"


def test_the_plan_in_words_holds_every_degree(preset_answer):
    best, network = preset_answer.result.best, preset_answer.network
    point = best.plan.point
    words = plan_in_words(best, preset_answer.scenario.batch, network.devices)
    for part in (f"dp {point.dp},", f"pp {point.pp},", f"tp {point.tp},", f"ZeRO {point.zero},"):
        assert part in words
    m = point.micro_batches(preset_answer.scenario.batch)
    assert f"{m:,} micro-batch{'es' if m > 1 else ''} per replica" in words
    assert f"recomputation {best.plan.recompute_summary}" in words
    assert ("sp on" in words) == point.sp
    idle = network.devices - point.devices_used
    assert ("devices used." in words) == (idle == 0)
    assert "1 replicas" not in words


def test_the_certificate_counts_every_point(preset_answer):
    found = preset_answer.result.certificate
    line = certificate_line(preset_answer.result)
    assert line.startswith("Proven optimal: ")
    for count in (found.points, found.solved, found.bounded, found.infeasible):
        assert f"{count:,} " in line


def test_an_unproven_plan_says_how_far_it_may_be(answered):
    result = answered("llama2-7b-64-h100").result
    cut_short = {"proven": False, "gap": 0.031, "ended": "at the time limit"}
    cut = replace(result, certificate=replace(result.certificate, **cut_short))
    assert certificate_line(cut).startswith(
        "Best so far, optimum at most 3.2 % faster (stopped at the time limit): "
    )


def test_realised_ratios_are_those_of_whole_ports():
    for name in preset_names("fabrics"):
        fabric = load_fabric(name)
        lines = fabric.realised_ratios()
        if isinstance(fabric, Clos):
            assert len(lines) == fabric.tiers - 1
    scenario = load_scenario("llama3-70b-1024-h100", ["fabric.clos.oversubscription=[3.0]"])
    assert scenario.fabric.realised_ratios() == ("2.91:1, 11 uplinks per leaf",)
    assert load_fabric("torus-16x16").realised_ratios() == ()
    assert load_fabric("v100-pods-64").realised_ratios() == (
        "50.0 GB/s per node uplink",
        "50.0 GB/s per pod uplink",
    )


def test_stage_rows_add_up(preset_answer):
    best = preset_answer.result.best
    levels = tuple(level.name for level in preset_answer.network.levels)
    rows = stage_rows(best, levels)
    assert [row["stage"] for row in rows] == list(range(1, len(best.stages) + 1))
    for row, stage in zip(rows, best.stages, strict=True):
        times = ("compute, s", "recompute, s", "communication, s", "idle, s")
        assert sum(row[key] for key in times) == pytest.approx(best.iteration_s)
        parts = ("weights", "gradients", "optimizer", "activations", "stash", "buffers")
        assert sum(row[f"{part}, GiB"] for part in parts) == pytest.approx(row["memory, GiB"])
        assert row["memory, GiB"] == pytest.approx(to_gib(stage.memory.total))
    wraps = best.plan.point.interleave > 1  # then the last stage feeds the first
    assert (rows[0]["input over"] in levels) == wraps
    assert all(row["input over"] in levels for row in rows[1:])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("llama3-70b", "70.6 billion parameters in 80 blocks"),
        ("bert-large", "335 million parameters in 24 blocks"),
        (
            "mixtral-8x7b",
            "46.7 billion parameters in 32 blocks, 8 experts of which 2 work on a token",
        ),
    ],
)
def test_a_model_in_words(name, words):
    assert model_in_words(load_model(name)) == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "h100-80gb",
            "H100 SXM 80 GB: 80 GiB at 3,350 GB/s; dense TFLOP/s: 989 in bf16 and fp16, "
            "1,979 in fp8, 494.5 in tf32, 67 in fp32",
        ),
        (
            "tpu-v4",
            "TPU v4: 32 GiB at 1,200 GB/s; dense TFLOP/s: 275 in bf16 and int8; uncalibrated",
        ),
    ],
)
def test_an_accelerator_in_words(name, words):
    assert accelerator_in_words(load_accelerator(name)) == words


def test_without_baselines_there_is_no_speedup(answered):
    shown = answered("llama2-7b-64-h100", "baselines.names=[]").headlines()
    assert shown[1].note == "no baseline was asked for"


def test_the_formula_of_an_interleaved_plan_divides_the_fill(answered):
    best = answered("llama3-70b-1024-h100")
    assert best.result.best.plan.point.interleave > 1
    shown = best.headlines()
    assert "(Σ t − max t) / v" in shown[2].formula[0]
    assert "(Σ t − max t) / v" in shown[3].formula[0]
