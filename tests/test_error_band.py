"""Beside every predicted figure: where it will lie, which runs it is like and what it assumes."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest

from nest_core.api.answer import answer
from nest_core.calibration.training.bands import ErrorBand, load_bands
from nest_core.costs.interval import span_in_words
from nest_core.costs.overlap import IDEAL_OVERLAP, NO_OVERLAP, Overlap
from nest_core.costs.parse import parse_plan
from nest_core.documents.presets import preset_names
from nest_core.hardware import load_accelerator
from nest_core.hardware.posterior import load_posterior
from nest_core.report.explain.validity import (
    calibration_in_words,
    overlap_in_words,
    validity_of,
)
from nest_core.report.figures import entries, throughput_figure
from nest_core.scenario import load_scenario
from nest_core.studies.uncertainty import interval_of
from nest_studio.cli import run

SMALL = "llama2-7b-64-h100"
ALONE = ("--set", "baselines.names=[]")
CELL = ("H100", "model parallel", "dense", "16 bits", "several nodes")
PLAN = {"dp": 8, "tp": 8, "sp": True, "zero": 1}


def band(cell=CELL, *, n=9, devices=(64, 64), parameters=(6e9, 7e9), tokens=(4096, 4096)):
    return ErrorBand(", ".join(cell), cell, n, -0.2, 0.25, 0.1, devices, parameters, tokens)


def stands(*sets, bands=None, **plan):
    scenario = load_scenario(SMALL, sets)
    problem = scenario.problem()
    return validity_of(scenario, problem.network, parse_plan(PLAN | plan, problem.layers), bands)


@pytest.fixture(scope="module")
def small():
    return answer(load_scenario(SMALL))


def test_a_plan_like_measured_ones_has_their_band():
    found = stands(bands=[band()])
    assert found.band == band()
    assert found.differs == ()
    assert found.in_words == (
        "Validated on 9 runs of H100, model parallel, dense, 16 bits, several nodes: "
        "−20.0 % to +25.0 % (10th to 90th percentile)."
    )


@pytest.mark.parametrize(
    ("sets", "plan", "sizes", "differs"),
    [
        (['workload.overlap="none"'], {}, {}, "overlap none, where the runs were predicted with"),
        (['workload.overlap="ideal"'], {}, {}, "overlap ideal, where"),
        (['workload.precision="fp8"'], {}, {}, "fp8"),
        (['workload.model="mixtral-8x7b"'], {}, {"parameters": (1e9, 1e12)}, "mixture of experts"),
        ([], {"dp": 64, "tp": 1, "sp": False, "zero": 3}, {}, "sharded"),
        ([], {"dp": 1}, {"devices": (8, 64)}, "one node"),
        (['accelerator="h200-141gb"'], {}, {}, "device H200 SXM 141 GB"),
        (['accelerator="v100-32gb"', 'workload.precision="fp16"'], {}, {}, "device V100 SXM2"),
        ([], {}, {"devices": (129, 512)}, "64 devices (measured 129 to 512)"),
        ([], {}, {"devices": (8, 31)}, "64 devices (measured 8 to 31)"),
        ([], {}, {"tokens": (1024, 1024)}, "4,096 tokens per sequence (measured 1,024)"),
        ([], {}, {"parameters": (1.5e10, 1e12)}, "6.74 billion parameters (measured 15.0 billion "),
    ],
)
def test_outside_says_what_differs(sets, plan, sizes, differs):
    """One thing differs, and that is what is said.

    A failure: a figure that nobody measured passes as validated, or a person is sent after the
    wrong reason.
    """
    found = stands(*sets, bands=[band(**sizes)], **plan)
    assert found.band is None
    (told,) = found.differs
    assert told.startswith(differs)
    assert found.in_words.startswith("Outside every validated region. ")
    assert found.in_words.endswith(f"(9 runs): {told}.")


def test_twice_what_was_measured_is_inside():
    for sizes in ({"devices": (32, 32)}, {"tokens": (8192, 8192)}, {"parameters": (12e9, 13e9)}):
        assert stands(bands=[band(**sizes)]).band is not None


def test_the_nearest_is_of_the_same_device_then_family_then_alike():
    other = band(("A100", *CELL[1:]), n=1000)
    far = band(("H100", "sharded", "mixture of experts", "8 bits", "several nodes"))
    near = band(("H100", "sharded", *CELL[2:]))
    assert stands(bands=[other, far, near]).nearest == near
    assert stands('accelerator="h200-141gb"', bands=[other, far, near]).nearest == near
    away = stands('accelerator="gaudi3-128gb"', bands=[far, other, near])
    assert away.nearest == other
    assert stands(bands=[]).in_words == "Outside every validated region: none is known."


@pytest.mark.parametrize(("ratio", "named"), [(1.0, False), (2.0, False), (4.0, True)])
def test_less_between_nodes_than_was_measured_is_said(ratio, named):
    found = stands(f"fabric.clos.oversubscription=[{ratio}]", bands=[band()])
    assert found.band is not None
    assert ("here it is 12.5 GB/s, at level spine" in found.in_words) == named
    assert bool(found.caveat) == named


def test_every_shipped_region_is_reached_by_a_plan_of_its_kind():
    """Sizes in the middle of a region, on its device, give that region and no other."""
    base = load_scenario(SMALL)
    problem = base.problem()
    presets = {"A100": "a100-80gb", "H100": "h100-80gb", "B200": "b200-180gb"}
    presets |= {"B300": "b300-288gb", "GB200": "gb200-186gb", "GB300": "gb300-288gb"}
    reached = 0
    for region in load_bands():
        device, kind, model, width, _ = region.cell
        low, high = region.parameters
        name = "mixtral-8x7b" if model == "mixture of experts" else "llama2-7b"
        scenario = replace(
            base,
            accelerator=load_accelerator(presets[device]),
            model=load_scenario(SMALL, [f'workload.model="{name}"']).model,
            precision={"4 bits": "nvfp4", "8 bits": "fp8"}.get(width, "bf16"),
            sequence=int(region.tokens[1]),
        )
        if not low / 2 <= scenario.model.parameters <= high * 2:
            continue
        degrees = {"dp": int(region.devices[1]), "zero": 3 if kind == "sharded" else 1}
        found = validity_of(scenario, problem.network, parse_plan(degrees, problem.layers))
        assert found.band == region
        reached += 1
    assert reached >= 5


def test_units_stand_once_where_they_are_shared():
    words = {1.0: "826 k tokens/s", 2.0: "1.11 M tokens/s", 3.0: "998 k tokens/s"}
    assert span_in_words((1.0, 2.0), words.__getitem__) == "826 k to 1.11 M tokens/s"
    assert span_in_words((1.0, 3.0), words.__getitem__) == "826 to 998 k tokens/s"


def of_file(root, plan, devices_per_node=8):
    """The region of an H100, dense, 16-bit plan as the shipped file has it."""
    text = (root / "presets" / "validation" / "regions.toml").read_text(encoding="utf-8")
    kind = "sharded" if plan["zero"] >= 2 and plan["pp"] == 1 else "model parallel"
    nodes = "one node" if plan["devices_used"] <= devices_per_node else "several nodes"
    cell = ["H100", kind, "dense", "16 bits", nodes]
    return next(entry for entry in tomllib.loads(text)["region"] if entry["cell"] == cell)


def asked(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def check_band(fields, entry):
    found = fields["error_band"]
    assert found == {
        "region": ", ".join(entry["cell"]),
        **{k: entry[k] for k in ("n", "p10", "p90")},
    }


def test_plan_and_price_carry_the_band_of_the_plan(capsys, root):
    fields = asked(capsys, "plan", SMALL, "--set", "search.zero=3")
    rows = [fields, *(entry for entry in fields["baselines"] if entry["feasible"])]
    for entry in rows:
        check_band(entry, of_file(root, entry["plan"]))
    assert len(rows) > 2
    for text in ("dp=8,tp=8,sp=true,zero=1", "dp=64,zero=3"):
        priced = asked(capsys, "price", SMALL, "--plan", text)
        check_band(priced, of_file(root, priced["plan"]))
        interval = priced["interval"]
        assert interval["centre_s"] == priced["iteration_time_s"]
        assert interval["low_s"] * interval["high_s"] == pytest.approx(interval["centre_s"] ** 2)


def test_outside_there_is_no_band_but_a_sentence(capsys):
    for command in (
        ["plan", "bert-large-64-v100"],
        ["price", "bert-large-64-v100", "--plan", "dp=64"],
        ["plan", SMALL, "--set", 'workload.overlap="none"'],
    ):
        fields = asked(capsys, *command, *ALONE)
        assert fields["error_band"] is None
        assert fields["validity"].startswith("Outside every validated region. ")
        assert run([*command, *ALONE]) == 0
        assert fields["validity"] in capsys.readouterr().out


def test_without_a_plan_there_is_no_band(capsys):
    fields = asked(capsys, "plan", SMALL, *ALONE, "--set", "accelerator.memory_GiB=2.0")
    assert fields["feasible"] is False
    assert fields["error_band"] is fields["validity"] is None


def test_the_text_says_what_the_figures_stand_on(capsys):
    for command in (["plan", SMALL], ["price", SMALL, "--plan", "dp=64,zero=3"]):
        assert run([*command, *ALONE]) == 0
        out = capsys.readouterr().out
        assert "80 % interval " in out
        assert "Validated on " in out
        assert " runs of H100, " in out
        assert "(10th to 90th percentile)" in out
        assert "\noverlap fitted (tp " in out
        assert "estimator h100\n" in out


@pytest.mark.parametrize("name", ["none", "ideal", "fitted"])
@pytest.mark.parametrize("command", [["plan", SMALL], ["price", SMALL, "--plan", "dp=64,zero=1"]])
@pytest.mark.sampled(3)
def test_the_overlap_that_is_printed_is_the_one_assumed(name, command, capsys, root):
    fields = asked(capsys, *command, *ALONE, "--set", f'workload.overlap="{name}"')
    assert fields["overlap"] == name
    family = tomllib.loads((root / "presets" / "estimators" / "h100.toml").read_text("utf-8"))
    inside, data = (family["parameters"][key] for key in ("overlap_tp", "overlap_dp"))
    shares = {"none": (0, 0, 0), "ideal": (1, 1, 1), "fitted": (inside, inside, data)}[name]
    assert tuple(fields["overlap_shares"][axis] for axis in ("tp", "pp", "dp")) == shares
    assert fields["estimator"] == {"family": "h100", "calibrated": True}


@pytest.mark.parametrize(
    ("overlap", "words"),
    [
        (NO_OVERLAP, "Overlap: none, communication never hides behind compute."),
        (IDEAL_OVERLAP, "Overlap: ideal, communication hides wherever it finds compute to hide "),
        (Overlap("fitted"), "Overlap: fitted (family h100), nothing hides behind compute."),
        (
            Overlap("fitted", 0.6, 0.5, 0.75, experts=True),
            "Overlap: fitted (family h100), 60 % within layers, 50 % of pipeline transfers, 75 % "
            "of gradients, states and experts beside another micro-batch hide where compute "
            "covers them.",
        ),
        (
            Overlap("fitted", 0.6, 0.5, 0.75, 0.1),
            "Overlap: fitted (family h100), 60 % within layers, 50 % of pipeline transfers, 75 % "
            "of gradients and states hide where compute covers them, slowing it by 10 % of that.",
        ),
    ],
)
def test_overlap_in_words(overlap, words):
    assert overlap_in_words(overlap, load_accelerator("h100-80gb")).startswith(words)
    assert "assumed" in overlap_in_words(Overlap("fitted"), load_accelerator("v100-32gb"))


@pytest.mark.parametrize("name", preset_names("accelerators"))
def test_the_software_is_named_with_what_was_measured_of_it(name):
    precision = "bf16" if "bf16" in load_accelerator(name).precisions else "fp16"
    sets = [f'accelerator="{name}"', f'workload.precision="{precision}"']
    scenario = load_scenario("llama2-7b-64-h100", sets)
    words, family = calibration_in_words(scenario), scenario.accelerator.family.name
    rows = {(of, stack): count for of, stack, count in load_posterior().measured}
    measured = rows.get((family, scenario.stack.name), 0)
    assert words.startswith(f"Software: {scenario.stack.name} ({scenario.stack.release})")
    count = f"{measured} run{'' if measured == 1 else 's'} of it over several nodes measured"
    assert words.endswith(f"on family {family}: {count}.")


@pytest.mark.check
def test_headlines_show_the_interval_of_time_throughput_and_mfu(small):
    best = small.result.best
    ends = [end / best.iteration_s for end in (small.interval.low_s, small.interval.high_s)]
    assert ends[0] < 0.95
    assert ends[1] > 1.05
    throughput, speedup, time, bubble, memory = small.headlines()
    low, high = (best.iteration_s * end for end in ends)
    assert time.span == f"{low:.2f} to {high:.2f} s"
    rate = best.samples_per_s * small.scenario.sequence / 1e3
    slow, fast = (f"{rate / end:.0f}" for end in reversed(ends))
    assert throughput.span == f"{slow} to {fast} k tokens/s"
    mfu = [f"{100 * best.mfu / end:.1f}" for end in reversed(ends)]
    assert time.note.endswith(f", {mfu[0]} to {mfu[1]} %")
    assert throughput.basis == time.basis
    assert time.basis.startswith(f"80 % interval under {small.scenario.stack.name}. Validated on ")
    assert (speedup.span, bubble.span) == ("", "")
    assert memory.note.endswith(" certainty")
    assert " to " in memory.span
    assert any(f"= {time.span}" in line for line in time.formula)


def test_outside_every_region_the_interval_stands_and_the_headline_says_so():
    shown = answer(load_scenario("bert-large-64-v100", ["baselines.names=[]"])).headlines()
    assert " to " in shown[2].span
    assert "Outside every validated region. " in shown[0].basis


def test_bars_have_the_interval(small):
    rows = entries(small.result, small.baselines)
    picture = throughput_figure(rows, small.scenario.sequence, small.interval)
    (bars,) = picture.plot.data
    lines = picture.plot.layout.shapes
    assert len(lines) == len(rows)
    assert "80 % interval" in picture.reading
    centre, low, high = small.interval.centre_s, small.interval.low_s, small.interval.high_s
    for line, rate in zip(lines, bars.x, strict=True):
        assert (line.x0, line.x1) == pytest.approx((rate * centre / high, rate * centre / low))


def test_the_spread_of_our_plan_stands_for_that_of_the_others(small):
    """The bars share one width: the baselines' own intervals are as wide within a tenth."""
    problem = small.scenario.problem()
    for entry in small.baselines:
        own = interval_of(small.scenario, problem, entry.report)
        assert own.spread == pytest.approx(small.interval.spread, rel=0.1)


def test_what_cannot_run_or_is_awaited_has_no_interval(small):
    tokens = small.scenario.sequence

    def lines(rows, interval=small.interval):
        return throughput_figure(rows, tokens, interval).plot.layout.shapes

    first, *others = small.baselines
    misfit = replace(first, reason="does not fit")
    assert len(lines(entries(small.result, (misfit, *others)))) == len(others) + 1
    names = small.scenario.baselines
    assert len(lines(entries(small.result, (), names))) == 1
    assert not lines(entries(small.result, small.baselines), None)
