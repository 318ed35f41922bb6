"""`nest-studio plan`, `price` and `levels`: the contract of the command line, field by field."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nest_core.documents.presets import preset_names
from nest_core.scenario import load_scenario
from nest_studio.cli import run

SMALL = "llama2-7b-64-h100"
# Presets, and what makes their plans recompute or shard.
ROUND_TRIPS = [
    (SMALL, []),
    (SMALL, ["--set", 'search.recompute="full"', "--set", "search.zero=3"]),
    ("bert-large-64-v100", ["--set", "accelerator.memory_GiB=4.5", "--set", "search.tp=1"]),
    ("gpt3-175b-64-h100", ["--set", "search.tp=8"]),
    ("llama2-7b-64-tpu-torus", ["--set", 'search.order=["tp","pp","cp","dp"]']),
]

SCARCE = ("--set", "accelerator.memory_GiB=2.0", "--set", "search.tp=8")
ALONE = ("--set", "baselines.names=[]")
MANUAL = ("--set", 'baselines.names=["manual"]')

PLAN_FIELDS = {
    "feasible",
    "reason",
    "iteration_time_s",
    "samples_per_s",
    "tokens_per_s_per_device",
    "mfu",
    "plan",
    "stages",
    "certificate",
    "alternatives",
    "baselines",
    "shadow_prices",
    "head_room",
    "solve_seconds",
    "peak_memory_bytes",
    "error_band",
}
PLAN = {
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "sp",
    "zero",
    "recompute",
    "micro_batch",
    "schedule",
    "interleave",
    "order",
    "device_order",
    "devices_used",
}
STAGE = {"layers", "compute_s", "communication_s", "idle_s", "memory_bytes"}
MEMORY = {"weights", "gradients", "optimizer", "activations", "stash", "buffers"}
CERTIFICATE = {
    "lower_bound_s", "gap", "proven", "points", "solved", "bounded", "infeasible",
    "axes", "words",
}  # fmt: skip
BASELINE = {"name", "feasible", "reason", "plan", "stages", "iteration_time_s", "search_seconds"}
PRICE = {"feasible", "reason", "iteration_time_s", "terms", "best_iteration_time_s", "difference"}
LEVEL = {"name", "kind", "group_size", "groups", "links", "bandwidth_Bps", "latency_s"}


@pytest.fixture
def ask(capsys):
    """Run a command that must succeed and return its one JSON object."""

    def asked(*arguments: str) -> dict[str, Any]:
        assert run([*arguments, "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.count("\n") == 1
        fields = json.loads(out, parse_constant=pytest.fail)
        assert isinstance(fields, dict)
        return fields

    return asked


@pytest.fixture
def refused(capsys):
    """Run a command that must be refused and return its one sentence."""

    def told(*arguments: str) -> str:
        assert run(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.endswith(".\n")
        assert err.count("\n") == 1
        return str(err)

    return told


def test_plan_has_the_fields_of_the_contract(ask):
    """A failure breaks every program that reads them."""
    two = ["--set", 'baselines.names=["manual", "phaze"]']
    fields = ask("plan", SMALL, *two, "--top", "3", "--draws", "1")
    assert set(fields) >= PLAN_FIELDS
    assert set(fields["recommended"]) >= {"plan", "expected_s", "interval", "fits", "best_in"}
    assert fields["recommended"]["best_in"]["draws"] == 1
    assert set(fields["plan"]) >= PLAN
    assert set(fields["certificate"]) == CERTIFICATE
    for stage in fields["stages"]:
        assert set(stage) >= STAGE
        assert set(stage["memory_bytes"]) == MEMORY
    for entry in fields["baselines"]:
        assert set(entry) >= BASELINE
        assert entry["feasible"] == (entry["iteration_time_s"] is not None)
    assert fields["feasible"] is True
    assert fields["reason"] is None
    assert fields["peak_memory_bytes"] > 10_000_000
    assert set(fields["error_band"]) >= {"region", "n", "p10", "p90"}
    assert set(fields["shadow_prices"]) == {
        "bandwidth.node",
        "bandwidth.leaf",
        "bandwidth.spine",
        "memory",
    }
    least, own, most = fields["head_room"]
    assert [step["certainty"] for step in fields["head_room"]] == [0.8, 0.95, 0.99]
    assert own["iteration_time_s"] == fields["iteration_time_s"]
    assert least["difference"] <= own["difference"] == 0.0 <= most["difference"]


def test_more_draws_than_a_thousand_are_refused_before_anything_is_planned(refused):
    assert "--draws must lie between 0 and 1,000" in refused("plan", SMALL, "--draws", "1001")


def times_and_layers_add_up(fields: dict[str, Any]) -> None:
    """Every stage's time is the iteration's; virtual stages cover all layers."""
    spans = []
    for stage in fields["stages"]:
        parts = stage["compute_s"] + stage["communication_s"] + stage["idle_s"]
        assert parts == pytest.approx(fields["iteration_time_s"], rel=1e-12)
        assert min(stage["compute_s"], stage["communication_s"]) >= 0
        assert stage["idle_s"] >= -1e-12 * fields["iteration_time_s"]
        assert stage["layers"] == [stage["chunks"][0][0], stage["chunks"][-1][1]]
        assert len(stage["chunks"]) == fields["plan"]["interleave"]
        spans += stage["chunks"]
        assert min(stage["memory_bytes"].values()) >= 0
    last = 0
    for first, end in sorted(spans):
        assert first == last < end
        last = end
    assert sum(fields["terms"].values()) == pytest.approx(fields["iteration_time_s"], rel=1e-12)
    assert len(fields["stages"]) == fields["plan"]["pp"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "sets"), ROUND_TRIPS)
def test_price_of_the_printed_plan_is_its_time(name, sets, ask, tmp_path):
    """The plan goes through its JSON file and comes back at the same price, difference 0.

    A failure: the planner and the judge of plans disagree, or the file loses something.
    """
    fields = ask("plan", name, *sets, *ALONE)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(fields))
    priced = ask("price", name, *sets, "--plan", str(file))
    assert set(priced) >= PRICE
    assert priced["feasible"] is True
    assert priced["iteration_time_s"] == pytest.approx(fields["iteration_time_s"], rel=1e-12)
    assert priced["best_iteration_time_s"] == fields["iteration_time_s"]
    assert abs(priced["difference"]) <= 1e-12
    assert priced["plan"] == fields["plan"]
    assert priced["stages"] == fields["stages"]
    times_and_layers_add_up(fields)
    times_and_layers_add_up(priced)
    certificate = fields["certificate"]
    counted = certificate["solved"] + certificate["bounded"] + certificate["infeasible"]
    assert counted == certificate["points"]
    assert certificate["proven"] is True
    assert certificate["gap"] == 0
    assert certificate["lower_bound_s"] == pytest.approx(fields["iteration_time_s"], rel=1e-12)


def test_throughput_and_mfu_follow_from_the_iteration(ask):
    """Real sequences per second, and every device of the fabric in the denominator."""
    scenario = load_scenario(SMALL)
    fields = ask("plan", SMALL, *ALONE)
    seconds = fields["iteration_time_s"]
    assert fields["samples_per_s"] == pytest.approx(1024 / seconds)
    assert fields["tokens_per_s_per_device"] == pytest.approx(1024 * 4096 / seconds / 64)
    work = 1024 * scenario.problem().model_flops
    assert fields["mfu"] == pytest.approx(work / (seconds * 64 * 989e12))


def test_pairs_and_flags_price_the_same_plan(ask):
    """Eight replicas of eight ranks, said in three ways."""
    pairs = "dp=8,tp=8,pp=1,micro_batch=1,sp=true,zero=1"
    flags = (
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 --micro-batch-size 1"
        " --sequence-parallel --use-distributed-optimizer"
    )
    first, second = (ask("price", SMALL, "--plan", text) for text in (pairs, flags))
    assert first == second
    assert first["plan"]["dp"] == 8
    assert first["difference"] > 0
    best = first["best_iteration_time_s"]
    assert first["iteration_time_s"] == pytest.approx(best * (1 + first["difference"]))


def test_a_plan_that_does_not_fit_is_an_answer(ask):
    """Code 0, with the stage, what it needs and what there is."""
    fields = ask("price", SMALL, "--plan", "dp=64")
    assert fields["feasible"] is False
    assert "stage 1 needs" in fields["reason"]
    assert fields["iteration_time_s"] > 0


def test_a_scenario_that_nothing_fits_is_an_answer(ask):
    """Code 0, null figures, a reason, and what would help."""
    fields = ask("plan", SMALL, *SCARCE)
    assert set(fields) >= PLAN_FIELDS
    assert fields["feasible"] is False
    assert fields["plan"] is fields["iteration_time_s"] is fields["shadow_prices"] is None
    assert fields["stages"] == fields["alternatives"] == []
    assert "no plan fits into memory" in fields["reason"]
    assert "Raise memory per device" in fields["advice"]
    priced = ask("price", SMALL, "--plan", "dp=8,tp=8", *SCARCE)
    assert priced["best_iteration_time_s"] is priced["difference"] is None


def test_top_prints_the_next_best_points_in_order(ask):
    fields = ask("plan", SMALL, *ALONE, "--top", "4")
    times = [fields["iteration_time_s"]]
    times += [entry["iteration_time_s"] for entry in fields["alternatives"]]
    assert len(times) == 4
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(times))
    points = [fields["plan"], *(entry["plan"] for entry in fields["alternatives"])]
    keys = ("dp", "tp", "pp", "sp", "zero", "micro_batch", "schedule", "interleave", "order")
    assert len({tuple(map(str, (plan[key] for key in keys))) for plan in points}) == 4


def test_audit_solves_excluded_points_and_finds_none_below_its_bound(ask):
    """The same seed draws the same points."""
    first = ask("plan", SMALL, *ALONE, "--audit", "40", "--seed", "3")["audit"]
    again = ask("plan", SMALL, *ALONE, "--audit", "40", "--seed", "3")["audit"]
    assert first == again
    assert first["solved"] + first["infeasible"] == 40
    assert first["violations"] == []


def without_clocks(value: Any) -> Any:
    """Two runs may differ in times and memory of the search, nothing else."""
    if isinstance(value, dict):
        return {
            key: without_clocks(entry)
            for key, entry in value.items()
            if not key.endswith("_seconds") and key != "peak_memory_bytes"
        }
    return [without_clocks(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.check
def test_another_process_prints_the_same_plan(ask):
    """Byte for byte, whatever Python's hash seed is, and whatever this one planned before."""
    asked = ["plan", SMALL, "--top", "5"]
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    ended = subprocess.run(
        [sys.executable, "-m", "nest_studio", *asked, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    printed = [json.dumps(without_clocks(one)) for one in (json.loads(ended.stdout), ask(*asked))]
    assert printed[0] == printed[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_levels_have_the_fields_of_the_contract(name, ask):
    """Innermost first; a group size for nested levels, null for hop distances."""
    fields = ask("levels", name)
    assert set(fields) >= {"devices", "levels", "collapse_error"}
    for level in fields["levels"]:
        assert set(level) >= LEVEL
        assert level["bandwidth_Bps"] > 0
        assert (level["group_size"] is None) == (level["kind"] == "affinity")
    assert all(
        inner["latency_s"] <= outer["latency_s"] for inner, outer in pairwise(fields["levels"])
    )


def test_levels_of_a_fabric_by_hand(ask, tmp_path):
    """64 devices: nodes of 8 on 8 NICs of 50, leaves of 4 nodes with 32/4 = 8 uplinks.

    All 32 devices of a leaf share 8 x 50 GB/s: 12.5 each; two hops up and two down.
    """
    file = tmp_path / "fabric.toml"
    file.write_text(
        'schema = 1\nname = "f"\nkind = "leaf_spine"\n[clos]\ndevices = 64\n'
        "devices_per_node = 8\nnics_per_node = 8\nnic_bandwidth_GBps = 50.0\nradix = 64\n"
        "tiers = 2\noversubscription = [4.0]\nhop_latency_us = 0.6\n"
        "[intra_node]\nbandwidth_GBps = 450.0\nlatency_us = 0.5\n"
    )
    fields = ask("levels", str(file))
    assert (fields["devices"], fields["collapse_error"]) == (64, 0.0)
    node, leaf, spine = fields["levels"]
    assert (node["name"], node["group_size"], node["groups"]) == ("node", 8, 8)
    assert (node["bandwidth_Bps"], node["latency_s"]) == pytest.approx((450e9, 0.5e-6))
    assert (leaf["name"], leaf["group_size"], leaf["groups"], leaf["links"]) == ("leaf", 32, 2, 8)
    assert (leaf["bandwidth_Bps"], leaf["latency_s"]) == pytest.approx((50e9, 1.2e-6))
    assert (spine["name"], spine["group_size"], spine["links"]) == ("spine", 64, 8)
    assert (spine["bandwidth_Bps"], spine["latency_s"]) == pytest.approx((12.5e9, 2.4e-6))


SCENARIO = """
schema = 1
name = "s"
fabric = "fabric.toml"
accelerator = "h100-80gb"
[workload]
model = "llama2-7b"
sequence_length_tokens = 1024
global_batch_sequences = 64
"""
FABRIC = """
schema = 1
name = "f"
kind = "hierarchical"
[[level]]
name = "node"
group_size = 8
bandwidth_GBps = 450.0
latency_us = 0.5
"""
GRAPH = """
schema = 1
name = "f"
kind = "graph"
[[element]]
id = "gpu0"
role = "device"
[[element]]
id = "gpu1"
role = "device"
"""
LINK = '[[link]]\na = "gpu0"\nb = "gpu1"\nbandwidth_GBps = 50.0\ncount = 1\nlatency_us = 0.5\n'
CLOS = (
    'schema = 1\nname = "f"\nkind = "leaf_spine"\n[clos]\ndevices = {devices}\n'
    "devices_per_node = 8\nnics_per_node = 8\nnic_bandwidth_GBps = 50.0\nradix = 256\n"
    "tiers = 3\noversubscription = [1.0, 1.0]\nhop_latency_us = 0.6\n"
    "[intra_node]\nbandwidth_GBps = 450.0\nlatency_us = 0.5\n"
)
BAD_FABRICS = {
    "unknown key": (FABRIC + "speed = 1.0\n", "level[0].speed is not a known key"),
    "negative": (FABRIC.replace("450.0", "-450.0"), "level[0].bandwidth_GBps must be at least"),
    "NaN": (FABRIC.replace("450.0", "nan"), "level[0].bandwidth_GBps must be a finite number"),
    "no devices": (FABRIC.replace("size = 8", "size = 0"), "level[0].group_size must be at least"),
    "levels times devices": (FABRIC + "devices = 9\n", "is not a known key, but is 9"),
    "devices in broken nodes": (CLOS.format(devices=60), "clos.devices must be a multiple of"),
    "too many devices": (CLOS.format(devices=1_048_584), "must not exceed 1,048,576 devices"),
    "too many devices by levels": (
        FABRIC.replace("size = 8", "size = 1_048_577"), "level must not exceed 1,048,576 devices",
    ),
    "disconnected": (GRAPH, ""),
    "cycle": (GRAPH + LINK * 2 + LINK.replace("gpu1", "gpu0"), ""),
    "deep nesting": (FABRIC + "x = " + "[" * 5000, "must not nest tables and arrays deeply"),
    "deep nesting that parses": (FABRIC + "x = " + "[" * 200 + "]" * 200, "must nest at most 32"),
    "too long": (FABRIC + "#" * 5_000_000, "must hold at most 5,000,000 bytes"),
    "long key": (FABRIC + "a." * 100_000 + "a = 1", "must have keys of at most 16 parts"),
    "not TOML": ("{}", "must be valid TOML"),
    "binary": ("\0\1", "must be valid TOML"),
    "empty": ("", "schema is required"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FABRICS)
def test_a_bad_fabric_is_one_sentence_to_every_command(name, refused, tmp_path):
    """Nothing on standard output, no traceback, code 2: by itself and inside a scenario."""
    text, message = BAD_FABRICS[name]
    (tmp_path / "fabric.toml").write_text(text)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    scenario = str(tmp_path / "scenario.toml")
    assert message in refused("levels", str(tmp_path / "fabric.toml"))
    assert message.removeprefix("level") in refused("plan", scenario)
    assert message.removeprefix("level") in refused("price", scenario, "--plan", "dp=1", "--json")


BAD_LINES: list[tuple[list[str], str]] = [
    (["plan"], "Missing argument 'scenario'"),
    (["levels"], "Missing argument 'fabric'"),
    (["price", SMALL], "Missing option '--plan'"),
    (["plan", "missing.toml"], "missing.toml must be a readable file"),
    (["plan", "missing"], "scenario must be a preset or a path to a .toml file"),
    (["levels", "missing"], "fabric must be a preset or a path to a .toml file"),
    (["levels", SMALL], "fabric must be a preset or a path to a .toml file"),
    (["plan", "/"], "/ must be a readable file"),
    (["plan", "a" * 4000], "scenario must be a preset"),
    (["plan", SMALL, "--set", "search.tp"], "--set must read KEY=VALUE"),
    (["plan", SMALL, "--set", "search.tpp=1"], "search.tpp is not a known key"),
    (["plan", SMALL, "--set", "accelerator.memory_GiB=nan"], "must be a finite number"),
    (["plan", SMALL, "--set", "accelerator.memory_GiB=-1"], "must be at least"),
    (["plan", SMALL, "--set", "a." * 5000 + "a=1"], "--set must hold at most"),
    (["plan", SMALL, "--set", "workload.model=0x" + "F" * 6000], "of at most 64 bits"),
    (
        ["plan", SMALL, "--set", "search.dp=64", "--set", "search.tp=32"],
        "search.pp must not exceed the fabric's 64 devices, but is 2048: set search.dp = 2",
    ),
    (
        ["plan", SMALL, "--set", "search.dp=64", "--set", "search.micro_batch_sequences=[32]"],
        "search.dp times micro_batch_sequences must divide the batch of 1024",
    ),
    (["plan", SMALL, "--top", "0"], "search.top must be at least 1"),
    (["plan", SMALL, "--top", "many"], "Invalid value for '--top'"),
    (
        ["plan", SMALL, "--audit", "-1"],
        "Invalid value for '--audit': Input should be greater than or equal to 0",
    ),
    (
        ["plan", SMALL, "--seed", "-1"],
        "Invalid value for '--seed': Input should be greater than or equal to 0",
    ),
    (["price", SMALL, "--plan", ""], "plan must be a JSON file"),
    (["price", SMALL, "--plan", "nothing.json"], "plan must be a JSON file"),
    (["price", SMALL, "--plan", "dp=0"], "plan.dp must be a whole number from 1"),
    (["price", SMALL, "--plan", "dp=64,tp=2"], "plan must use at most the fabric's 64 devices"),
    (["price", SMALL, "--plan", "dp=3"], "must divide the batch of 1024, but is 3"),
    (["price", SMALL, "--plan", "tp=3"], "plan.tp must divide the model's 32 heads, but is 3"),
    (["price", SMALL, "--plan", "zero=4"], "plan.zero must be 0, 1, 2 or 3, but is 4"),
    (["price", SMALL, "--plan", "pp=2,cuts=0-34"], "plan.cuts must rise from 0 to 34 in 2 steps"),
    (["price", SMALL, "--plan", "pp=2,cuts=0-34-34"], "plan.cuts must rise from 0 to 34"),
    (["price", SMALL, "--plan", "pp=2,cuts=0-5-33"], "plan.cuts must rise from 0 to 34"),
    (
        ["price", SMALL, "--plan", "pp=2,stage_recompute=none-some"],
        "plan.stage_recompute must be none",
    ),
    (["price", SMALL, "--plan", "order=5"], "plan.order must be a list, but is 5"),
    (["price", SMALL, "--plan", "--micro-batch-size 'x"], "plan must close its quotes"),
    (["price", SMALL, "--plan", "dp=8," * 200 + "="], "plan.dp must be given once"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_LINES, ids=[" ".join(line)[:60] for line, _ in BAD_LINES]
)
def test_bad_input_is_one_sentence(arguments, message, refused):
    """What the person wrote, the rule, and what to do."""
    assert message in refused(*arguments)


def test_the_process_prints_a_sentence_and_no_traceback(tmp_path):
    """From the outside, once: code 2, standard output empty, one line of standard error."""
    file = tmp_path / "fabric.toml"
    file.write_text(FABRIC.replace("450.0", "nan"))
    ended = subprocess.run(
        [sys.executable, "-m", "nest_studio", "levels", str(file), "--json"],
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "level[0].bandwidth_GBps must be a finite number, but is nan: change it.\n"
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["plan", SMALL, *MANUAL, "--audit", "5"],
            ["proven optimal", "this plan", "manual", "audit: "],
        ),
        (["plan", SMALL, *MANUAL, "--top", "3"], ["place  iteration, s", "\n    2  ", "\n    3  "]),
        (["plan", SMALL, *SCARCE], ["infeasible: ", "Raise memory"]),
        (["price", SMALL, "--plan", "dp=8,tp=8"], ["fits; +", "pipeline fill and drain"]),
        (["price", SMALL, "--plan", "dp=64"], ["does not fit: stage 1 needs"]),
        (["levels", "tpu-v4-4x4x4"], ["64 devices", "6 hops", "affinity"]),
    ],
    ids=["plan", "next best", "infeasible plan", "price", "infeasible price", "levels"],
)
@pytest.mark.sampled(2)
def test_people_get_text(arguments, words, capsys):
    """Without --json: the same answer, for reading."""
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert not [word for word in words if word not in out]


def test_a_scenario_file_and_its_fabric_file_are_planned(ask, tmp_path):
    """Files, a plan, and the same plan through its file: what a person does first."""
    (tmp_path / "fabric.toml").write_text(FABRIC)
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    fields = ask("plan", str(file))
    assert fields["plan"]["devices_used"] == 8
    plan = tmp_path / "only-the-plan.json"
    plan.write_text(json.dumps(fields["plan"]))
    assert ask("price", str(file), "--plan", str(plan))["difference"] == 0
    half = ask("plan", str(file), *ALONE, "--set", "fabric.level.0.group_size=4")
    assert half["plan"]["devices_used"] == 4
    assert half["iteration_time_s"] > fields["iteration_time_s"]


def test_commands_do_not_depend_on_the_working_directory(ask, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "fabric.toml").write_text(FABRIC)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ask("plan", str(Path("..") / "scenario.toml"), *ALONE)["feasible"] is True
