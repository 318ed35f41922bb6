"""Scenario and fabric files: what loads, what overrides what, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import string
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.api.answer import answer
from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.fabric import Clos, Hierarchical, Torus
from nest_core.network import collapse
from nest_core.scenario import (
    Scenario,
    ScenarioValues,
    load_fabric,
    load_scenario,
    scenario_document,
)
from nest_core.workload.model_files import load_model

SCENARIOS = preset_names("scenarios")
SMALL = "llama2-7b-64-h100"

# The example of the schema that files are written by, one kind after the other.
FABRIC_HEAD = """
schema = 1
name = "two-tier-4to1"
kind = "{kind}"
routing = "adaptive"
"""
FABRIC_KINDS = {
    "hierarchical": """
[[level]]
name = "node"
group_size = 8
uplink_per = "device"
bandwidth_GBps = 450.0
oversubscription = 1.0
latency_us = 0.5
""",
    "leaf_spine": """
[clos]
devices = 1024
devices_per_node = 8
nics_per_node = 8
nic_bandwidth_GBps = 50.0
radix = 64
tiers = 2
oversubscription = [4.0]
hop_latency_us = 0.6
[intra_node]
interconnect = "switch"
bandwidth_GBps = 450.0
latency_us = 0.5
""",
    "torus": """
[torus]
shape = [8, 8, 4]
wrap = [true, true, true]
link_bandwidth_GBps = 50.0
hop_latency_us = 1.0
""",
}
FABRIC_KINDS["fat_tree"] = FABRIC_KINDS["leaf_spine"]

SCENARIO_EXAMPLE = """
schema = 1
name = "llama3-8b on 64 H100"
fabric = "h100-spine-leaf-64"
accelerator = "h100-80gb"
costs = "own"

[override]
"fabric.clos.oversubscription" = [4.0]
"accelerator.memory_GiB" = 80.0

[workload]
model = "llama3-8b"
sequence_length_tokens = 8192
global_batch_sequences = 1024
precision = "bf16"
optimizer = "adam"

[search]
tp = [1, 2, 4, 8]
cp = 1
ep = 1
pp = {min = 1, max = 16}
dp = {min = 1, max = 64}
sp = [false, true]
micro_batch_sequences = [1, 2, 4]
zero = [0, 1, 2, 3]
recompute = ["none", "selective", "full"]
schedule = ["1f1b"]
interleave = [1]
order = [["tp", "cp", "dp", "pp"]]
device_order = ["natural"]
idle_devices = true
stage_strategies = "uniform"
time_limit_s = 60.0
top = 1

[baselines]
names = ["manual", "mcmc", "phaze", "alpa_e", "mist"]
seed = 0
"""


def refusal(reading: Callable[[], object]) -> str:
    """Why it is refused; empty if it is not. Anything but `InputError` is a defect."""
    try:
        reading()
    except InputError as error:
        return str(error)
    return ""


def is_sentence(message: str) -> bool:
    return message.endswith(".") and "\n" not in message


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_preset_is_planned_and_proven(name):
    """A failure: what the studio offers first does not work."""
    found = answer(load_scenario(name, ["baselines.names=[]"]))
    assert found.result.best is not None
    assert found.result.certificate.proven
    assert found.scenario.description


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_every_fabric_preset_loads_and_collapses(name):
    assert collapse(load_fabric(name)).devices == load_fabric(name).devices


@pytest.mark.parametrize("kind", FABRIC_KINDS)
def test_the_fabric_example_loads(kind, tmp_path):
    """Files that others write follow the example to the letter."""
    file = tmp_path / "fabric.toml"
    file.write_text(FABRIC_HEAD.format(kind=kind) + FABRIC_KINDS[kind])
    fabric = load_fabric(str(file))
    assert fabric.name == "two-tier-4to1"
    expected = {"hierarchical": (Hierarchical, 8), "torus": (Torus, 256)}
    assert (type(fabric), fabric.devices) == expected.get(kind, (Clos, 1024))
    if isinstance(fabric, Torus):
        assert fabric.shape == (8, 8, 4)
        assert fabric.link_bandwidth_Bps == 50e9
        assert fabric.hop_latency_s == pytest.approx(1e-6)


def test_the_scenario_example_loads_and_is_planned(tmp_path):
    """Every key of the example, with the value that it has there."""
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO_EXAMPLE)
    known = "llama3-8b" in preset_names("models")
    scenario = load_scenario(str(file), [] if known else ['workload.model="llama2-7b"'])
    assert isinstance(scenario.fabric, Clos)
    assert scenario.fabric.oversubscription == (4.0,)
    assert (scenario.sequence, scenario.batch) == (8192, 1024)
    space = scenario.space
    assert (space.tp, space.sp) == ((1, 2, 4, 8), (False, True))
    assert space.pp == tuple(range(1, 17))
    assert space.dp == (1, 2, 4, 8, 16, 32, 64)
    assert space.micro_batch == (1, 2, 4)
    assert space.orders == (("tp", "cp", "dp", "pp"),)
    found = answer(scenario)
    assert found.result.best is not None
    assert [entry.name for entry in found.baselines] == list(scenario.baselines)


def write(folder: Path, fabric: str, **lines: str) -> Path:
    """A small scenario file with that value of ``fabric``."""
    file = folder / "scenario.toml"
    file.write_text(
        f'schema = 1\nname = "s"\nfabric = {fabric}\naccelerator = "h100-80gb"\n'
        '[workload]\nmodel = "llama2-7b"\nsequence_length_tokens = 1024\n'
        "global_batch_sequences = 64\n" + "".join(lines.values())
    )
    return file


def test_a_fabric_path_starts_at_the_scenario_file(tmp_path, monkeypatch):
    """Not at the working directory."""
    (tmp_path / "below").mkdir()
    (tmp_path / "elsewhere").mkdir()
    fabric = FABRIC_HEAD.format(kind="torus") + FABRIC_KINDS["torus"]
    (tmp_path / "below" / "mine.toml").write_text(fabric)
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = write(tmp_path, '"below/mine.toml"')
    assert load_scenario(str(file)).fabric.devices == 256
    absolute = json.dumps(str(tmp_path / "below" / "mine.toml"))
    assert load_scenario(str(write(tmp_path, absolute))).fabric.devices == 256
    with pytest.raises(InputError, match=r"mine\.toml must be a readable file"):
        load_scenario(str(write(tmp_path, '"mine.toml"')))


@pytest.mark.parametrize("head", ["", 'schema = 1\nname = "inline one"\n'])
def test_a_fabric_may_stand_inline(head, tmp_path):
    """The FABRIC tables under [fabric]; their schema and name may be left to the scenario."""
    tables = (
        f'\n[fabric]\n{head}kind = "hierarchical"\n[[fabric.level]]\nname = "node"\n'
        "group_size = 8\nbandwidth_GBps = 450.0\nlatency_us = 0.5\n"
    )
    file = tmp_path / "scenario.toml"
    file.write_text(write(tmp_path, '"gone"').read_text().replace('fabric = "gone"\n', "") + tables)
    scenario = load_scenario(str(file))
    assert scenario.fabric.devices == 8
    assert scenario.fabric.name == ("inline one" if head else "inline")
    deeper = load_scenario(str(file), ["fabric.level.0.group_size=16"])
    assert deeper.fabric.devices == 16


def test_settings_come_after_overrides_and_both_after_the_document(tmp_path):
    """The last word is the command line's; within it, the later setting's."""
    lines = '[search]\ntp = 1\n[override]\n"search.tp" = 2\n"workload.optimizer" = "sgd"\n'
    file = str(write(tmp_path, '"h100-spine-leaf-64"', more=lines))
    assert load_scenario(file).space.tp == (2,)
    assert load_scenario(file).optimizer == "sgd"
    assert load_scenario(file, ["search.tp=4"]).space.tp == (4,)
    assert load_scenario(file, ["search.tp=4", "search.tp=8"]).space.tp == (8,)
    # A table set after one of its keys replaces it, and the other way round refines it.
    assert load_scenario(file, ["search={}"]).space.tp == (1, 2, 4, 8, 16, 32)
    assert load_scenario(file, ["search={}", "search.tp=4"]).space.tp == (4,)
    again = ["search.tp=4", "search={}", "search.tp=2"]
    assert load_scenario(file, again).space.tp == (2,)


def test_a_reference_is_replaced_before_what_lies_inside_it(tmp_path):
    """`fabric` first, then `fabric.torus.shape`, in whatever order they are given."""
    file = str(write(tmp_path, '"h100-spine-leaf-64"'))
    sets = ["fabric.torus.shape=[2,4,4]", 'fabric="tpu-v4-4x4x4"']
    assert load_scenario(file, sets).fabric.devices == 32
    accelerator = load_scenario(file, ['accelerator="a100-80gb"', "accelerator.memory_GiB=40.0"])
    assert accelerator.accelerator.name == "A100 SXM 80 GB"
    assert accelerator.accelerator.memory_bytes == 40 * 2**30


def test_dotted_keys_index_lists(tmp_path):
    """`level.1.oversubscription` is the second level's; `oversubscription.0` an entry."""
    base = load_scenario("bert-large-64-v100")
    eased = load_scenario("bert-large-64-v100", ["fabric.level.2.oversubscription=4"])
    assert isinstance(base.fabric, Hierarchical)
    assert isinstance(eased.fabric, Hierarchical)
    assert [tier.oversubscription for tier in base.fabric.tiers] == [1, 1, 2]
    assert [tier.oversubscription for tier in eased.fabric.tiers] == [1, 1, 4]
    clos = load_scenario(SMALL, ["fabric.clos.oversubscription.0=2.0"]).fabric
    assert isinstance(clos, Clos)
    assert clos.oversubscription == (2.0,)


def test_resolving_changes_none_of_its_arguments():
    """Pages hold on to documents; a failure: one request leaks into the next."""
    document, folder = scenario_document("bert-large-64-v100")
    inline = load_toml(preset_path("fabrics", "v100-pods-64.toml"))
    overrides = {"fabric": inline, "fabric.level.0.group_size": 4, "search.tp": [1, 2]}
    before = copy.deepcopy((document, overrides))
    scenario = Scenario(document, overrides, folder).values
    assert scenario.fabric.devices == 32
    assert (document, overrides) == before


def test_choices_are_what_is_valid_of_what_is_asked():
    """Absent is all valid, a scalar pins, a list chooses, bounds cut; always in order."""
    free = load_scenario(SMALL, ["search={}"]).space
    assert free.tp == (1, 2, 4, 8, 16, 32)  # divisors of 32 heads
    assert free.dp == (*free.tp, 64)  # divisors of the batch up to 64 devices
    assert free.pp == tuple(range(1, 35))  # 32 blocks and both ends
    assert free.micro_batch[-1] == 1024
    assert load_scenario(SMALL, ["search.tp=[8,2,3,2]"]).space.tp == (2, 8)
    assert load_scenario(SMALL, ["search.pp={min=30}"]).space.pp == tuple(range(30, 35))
    assert load_scenario(SMALL, ["search.sp=true"]).space.sp == (True,)
    assert load_scenario(SMALL, ["search.zero=[3,0,3]"]).space.zero == (3, 0)
    order = load_scenario(SMALL, ['search.order=["tp","pp","cp","dp"]']).space.orders
    assert order == (("tp", "pp", "cp", "dp"),)


BAD_SETTINGS = [
    ("search.tp", "--set must read KEY=VALUE, but is 'search.tp'"),
    ("=1", "--set must read KEY=VALUE, but is '=1'"),
    ("", "--set must read KEY=VALUE, but is ''"),
    ("search.tp=", "--set search.tp must be a TOML value, but is ''"),
    ("search.tp=two", "must be a TOML value, but is 'two': put text in double quotes"),
    ('search.tp=1\nname="x"', "--set search.tp must be a TOML value"),
    ("name=\x07", "--set name must be a TOML value"),
    ("x=" + "[" * 8000, "--set x must be a TOML value"),
    ("x=" + "[" * 40 + "]" * 40, "the overrides must nest at most 32 tables and arrays"),
    ("x={" + ".".join("a" * 40) + "=1}", "the overrides must nest at most 32 tables and arrays"),
    ("x={" + ".".join("a" * 60_000) + "=1}", "--set must hold at most 8,192 characters"),
    (".".join("a" * 17) + "=1", "override must have keys of at most 16 parts"),
    ("workload.global_batch_sequences=1" + "0" * 400, "whole numbers of at most 64 bits"),
    ("workload.global_batch_sequences=1" + "0" * 5000, "must be a TOML value"),
    ("workload.global_batch_sequences=0x" + "F" * 6000, "whole numbers of at most 64 bits"),
    ("workload.global_batch_sequences=1000001", "must be at most 1000000"),
    ("workload.global_batch_sequences=0", "must be at least 1, but is 0"),
    ("workload.sequence_length_tokens=1e3", "must be a whole number, but is 1000.0"),
    ("workload.model=\"\"", "workload.model must be text that is not empty"),
    ("workload.model=\"../x\"", "workload.model must be a preset, a path to a config"),
    ("workload.model=\"gpt5\"", "config.json or trace or a table, but is 'gpt5': pick bert-large"),
    ("workload.precision=\"int4\"", "workload.precision must be 'bf16', 'fp16', 'fp8', 'int8'"),
    ("accelerator=\"v100-32gb\"", "workload.precision must be one that V100 SXM2 32 GB computes"),
    ("workload.sequnce=5", "workload.sequnce is not a known key, but is 5"),
    ("fabric=5", "fabric must be a table, but is 5"),
    ("fabric=\"\"", "fabric must be a preset, a path to a .toml file or a table, but is ''"),
    ("fabric=\"nowhere\"", "fabric must be a preset, a path to a .toml file or a table"),
    ("fabric=\"nowhere.toml\"", "nowhere.toml must be a readable file"),
    ("fabric=\"a\\u0000b.toml\"", "must be a file's path"),
    ("accelerator=\"tpu9\"", "accelerator must be one of the presets, but is 'tpu9'"),
    ("accelerator={}", "accelerator.name is required"),
    ("accelerator.memory_GiB=nan", "accelerator.memory_GiB must be a finite number, but is nan"),
    ("accelerator.memory_GiB=-80", "accelerator.memory_GiB must be at least 0.001, but is -80"),
    ("accelerator.memory_GiB=1.0", "must exceed accelerator.reserved_GiB = 1.5, but is 1.0: raise"),
    ("accelerator.units=0", "accelerator.units must be at least 1, but is 0"),
    ("accelerator.peak_TFLOPs={}", "accelerator.peak_TFLOPs"),
    ("accelerator.peak_TFLOPs={int4=1.0}", "accelerator.peak_TFLOPs"),
    ("fabric.clos.devices=60", "clos.devices must be a multiple of clos.devices_per_node = 8"),
    ("fabric.clos.oversubscription=[0.5]", "oversubscription[0] must be at least 1"),
    ("fabric.clos.oversubscription.1=2.0", "override must have keys that lead into tables and"),
    ("fabric.clos.oversubscription.-1=2.0", "override must have keys that lead into tables and"),
    ("fabric.clos.oversubscription." + "9" * 5000 + "=2.0", "must have keys that lead into tables"),
    ("fabric.clos.devices.x=1", "override must have keys that lead into tables and lists"),
    ("fabric.kind=\"torus\"", "clos must be absent for kind = \"torus\", but is 'present'"),
    ("fabric.torus={}", "fabric.torus.shape is required"),
    ("search.tp=3", "search.tp must divide 32 heads, but is 3: valid are 1, 2, 4"),
    ("search.tp=[]", "search.tp must be a list of at least 1 entries"),
    ("search.tp={min=4,max=2}", "search.tp must have a min of at most its max, but is"),
    ("search.dp={min=100}", "search.dp must divide the batch of 1024, but is 'min 100': valid are"),
    ("search.tp={min=5,max=7}", "search.tp must divide 32 heads, but is 'min 5, max 7'"),
    ("search.dp=[3,5]", "search.dp must divide the batch of 1024, but is [3, 5]"),
    ("search.pp=35", "search.pp must not exceed 34 layers or 64 devices, but is 35"),
    ("search.cp=3", "search.cp must divide the sequence of 4096 tokens into two chunks per rank"),
    ("search.cp=32", "each of at least 128 tokens, but is 32: valid are 1, 2, 4, 8, 16"),
    ("search.ep=2", "search.ep must be 1 for a dense model, which has no experts, but is 2"),
    ('search={schedule="1f1b",interleave=2}', "search.schedule must go with interleave = [2]"),
    ("search.schedule=\"zb\"", "search.schedule must be"),
    ("search.stage_strategies=\"free\"", "search.stage_strategies must be"),
    ("search.memory_rule=\"never\"", "search.memory_rule must be"),
    ("search.order=[]", "search.order must name tp first"),
    ("search.order=[\"dp\",\"tp\",\"cp\",\"pp\"]", "search.order must name tp first"),
    ("search.top=0", "search.top must be at least 1, but is 0"),
    ("search.time_limit_s=0", "search.time_limit_s must be at least 1e-09, but is 0"),
    ("schema=2", "schema must be 1, but is 2"),
    ("costs=\"guessed\"", "costs must be"),
    ("baselines.names=[\"alpa\"]", "baselines.names[0] must be 'nest', 'manual'"),
    ("override.x=1", "override is not a known key"),
    ("search..tp=1", "is not a known key"),
    ("١=1", "is not a known key"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_SETTINGS, ids=[t[:40] for t, _ in BAD_SETTINGS])
def test_a_bad_setting_is_refused_in_one_sentence(text, message):
    """Field, rule, value and remedy. A failure is a traceback, or a scenario nobody asked for."""
    found = refusal(lambda: load_scenario(SMALL, [text]))
    assert message in found
    assert is_sentence(found)


def test_learned_positions_limit_the_sequence():
    with pytest.raises(InputError, match="must not exceed the 512 positions that BERT-large has"):
        load_scenario("bert-large-64-v100", ["workload.sequence_length_tokens=513"])


def test_fp8_needs_sixteen_bits_for_the_rest():
    """Only projections run in fp8, so a device without bf16 cannot be estimated."""
    sets = ["accelerator.peak_TFLOPs={fp8=1000.0}", 'workload.precision="fp8"']
    with pytest.raises(InputError, match=r"accelerator\.peak_TFLOPs must give bf16 beside fp8"):
        load_scenario(SMALL, sets)
    alone = ['workload.precision="fp8"', "baselines.names=[]"]
    assert answer(load_scenario(SMALL, alone)).result.best is not None


@pytest.mark.parametrize("load", [load_scenario, load_fabric])
@pytest.mark.parametrize(
    "name", ["", "nowhere", "nowhere.toml", ".", "../..", "a" * 300, "a" * 5000, "a\0b", "\ud800"]
)
def test_a_name_that_leads_to_no_file_is_refused(load, name):
    """Long names used to end in an OSError."""
    found = refusal(lambda: load(name))
    assert is_sentence(found)
    assert "must be a" in found


HEAD = 'schema = 1\nname = "s"\nfabric = "tpu-v4-4x4x4"\n'
DOCUMENTS = [
    ("", "schema is required"),
    ("schema = 1", "name is required"),
    ('schema = 1\nname = "s"\n', "fabric is required"),
    ("schema = 1\nschema = 1", "must be valid TOML"),
    (HEAD, "accelerator is required"),
    (HEAD + "override = 5", "override must be a table, but is 5"),
    (HEAD + "override = 0x" + "F" * 6000, "the scenario must hold whole numbers of at most 64"),
    (HEAD + "x = " + "[" * 300 + "]" * 300, "the scenario must nest at most 32 tables and arrays"),
    (HEAD + "x = " + "[" * 100_000, "must not nest tables and arrays deeply"),
    (HEAD + '[override]\n"' + "a." * 20 + 'a" = 1', "must have keys of at most 16 parts"),
    (HEAD + '[override]\n"' + "é." * 20 + 'a" = 1', "override must have keys of at most 16 parts"),
    (HEAD + "[workload]\nmodel = 5", "workload.model must be text or a table, but is 5"),
]


@pytest.mark.parametrize(("text", "message"), DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_a_bad_document_is_refused_in_one_sentence(text, message, tmp_path):
    file = tmp_path / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    found = refusal(lambda: load_scenario(str(file)))
    assert message in found
    assert is_sentence(found)


def test_text_may_be_in_any_script(tmp_path):
    file = write(tmp_path, '"h100-spine-leaf-64"')
    assert load_scenario(str(file), ['name="Lauf № 5 – 試行 🚀"']).name == "Lauf № 5 – 試行 🚀"


# What a person may write, to the ends of the ranges. Answers must be figures: `-W error` turns
# numpy's overflows into failures.
EXTREMES: dict[str, tuple[str, list[str]]] = {
    "one device": (
        SMALL,
        [
            "fabric.clos.devices=1",
            "fabric.clos.devices_per_node=1",
            "fabric.clos.nics_per_node=1",
            "fabric.clos.tiers=1",
            "fabric.clos.oversubscription=[]",
            "accelerator.memory_GiB=800",
        ],
    ),
    "one device by levels": (
        "bert-large-64-v100",
        [f"fabric.level.{level}.group_size=1" for level in range(3)],
    ),
    "one sequence": (SMALL, ["workload.global_batch_sequences=1"]),
    "one token": (SMALL, ["workload.sequence_length_tokens=1"]),
    "ten million tokens": (SMALL, ["workload.sequence_length_tokens=10000000"]),
    "ten million tokens and the memory for them": (
        SMALL,
        ["workload.sequence_length_tokens=10000000", "accelerator.memory_GiB=1e18"],
    ),
    "a batch with 240 divisors": (
        SMALL,
        ["workload.global_batch_sequences=720720", "search.micro_batch_sequences={}"],
    ),
    "a prime batch": (SMALL, ["workload.global_batch_sequences=999983"]),
    "links of nothing": (
        SMALL,
        ["fabric.clos.nic_bandwidth_GBps=1e-9", "fabric.intra_node.bandwidth_GBps=1e-9"],
    ),
    "infinite links": (
        SMALL,
        [
            "fabric.clos.nic_bandwidth_GBps=1e18",
            "fabric.intra_node.bandwidth_GBps=1e18",
            "fabric.clos.hop_latency_us=0",
            "fabric.intra_node.latency_us=0",
        ],
    ),
    "everything infinite": (
        SMALL,
        [
            "fabric.clos.nic_bandwidth_GBps=1e18",
            "fabric.intra_node.bandwidth_GBps=1e18",
            "fabric.clos.hop_latency_us=0",
            "fabric.intra_node.latency_us=0",
            "accelerator.peak_TFLOPs={bf16=1e18}",
            "accelerator.memory_bandwidth_GBps=1e18",
        ],
    ),
    "an eternity per hop": (SMALL, ["fabric.clos.hop_latency_us=1e18"]),
    "no arithmetic": (SMALL, ["accelerator.peak_TFLOPs={bf16=1e-9}"]),
    "no memory bandwidth": (SMALL, ["accelerator.memory_bandwidth_GBps=1e-9"]),
    "tiles of one element": (SMALL, ["accelerator.tile=[1,1]", "accelerator.units=1"]),
    "ten million units": (
        SMALL,
        ["accelerator.tile=[10000000,10000000]", "accelerator.units=10000000"],
    ),
    "no memory": (SMALL, ["accelerator.memory_GiB=1e-9", "accelerator.reserved_GiB=0"]),
    "all the memory": (SMALL, ["accelerator.memory_GiB=1e18"]),
    "no time": (SMALL, ["search.time_limit_s=1e-9"]),
    "ports for everyone": (SMALL, ["fabric.clos.radix=10000000"]),
    "one uplink for all": (SMALL, ["fabric.clos.oversubscription=[1e6]"]),
    "oversubscribed to nothing": (
        "bert-large-64-v100",
        ["fabric.level.2.oversubscription=1e18", "fabric.level.2.bandwidth_GBps=1e-9"],
    ),
    "undersubscribed": ("bert-large-64-v100", ["fabric.level.1.oversubscription=1e-9"]),
    "a chain as a torus": (
        "llama2-7b-64-tpu-torus",
        ["fabric.torus.shape=[1,64]", "fabric.torus.wrap=[false,false]"],
    ),
    "two devices as a torus": (
        "llama2-7b-64-tpu-torus",
        ["fabric.torus.shape=[1,2]", "fabric.torus.wrap=[true,true]"],
    ),
    "a hundred alternatives": (SMALL, ["search.top=100"]),
    "everything pinned": (
        SMALL,
        [
            "search.tp=8",
            "search.pp=1",
            "search.dp=8",
            "search.sp=true",
            "search.zero=1",
            "search.micro_batch_sequences=1",
            'search.recompute="none"',
            "search.idle_devices=false",
        ],
    ),
}


def not_finite(value: Any, where: str = "") -> Iterator[str]:
    """Where a document holds NaN or infinity."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from not_finite(entry, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield from not_finite(entry, f"{where}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield where


@pytest.mark.sampled(27)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_figures_get_an_answer_in_figures(name):
    """A plan whose certificate adds up, or a reason. A failure: NaN on a page, or a crash."""
    preset, sets = EXTREMES[name]
    found = answer(load_scenario(preset, sets))
    document = found.to_json()
    certificate = found.result.certificate
    counted = (certificate.solved, certificate.bounded, certificate.infeasible, certificate.open)
    assert sum(counted) == certificate.points
    # Nothing fits: no plan is the least bound that there is.
    allowed = [] if found.result.best else [".certificate.lower_bound_s"]
    assert [where for where in not_finite(document) if where not in allowed] == []
    assert bool(found.result.best) != bool(document["reason"])


def test_a_model_of_one_block_is_planned():
    """Three layers: embedding, block, head; up to three stages."""
    scenario = load_scenario(SMALL, ["search.pp=[1,2,3]"])
    small = replace(scenario, model=replace(scenario.model, blocks=1))
    found = answer(small)
    assert found.scenario.problem().layers == 3
    assert found.result.best is not None
    assert found.result.best.stages[-1].last == 3


# Hypothesis changes documents and settings at random: a scenario or a sentence, nothing else.
toml_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0, 1, -1, 2, 3, 8, 64, 2**31, 2**63, 10**30, 10**400])
    | st.sampled_from([0.0, 1e-320, 1e-9, 1e18, 1e19, math.nan, math.inf, -math.inf, -0.0])
    | st.sampled_from(["", "bf16", "fp8", "torus", "child", "1f1b", "full", "tpu-v4-4x4x4", "\0"])
    | st.text(max_size=5)
)
toml_values = st.recursive(
    toml_scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["min", "max", "a"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    entries = (
        list(document.items())
        if isinstance(document, dict)
        else list(enumerate(document))
        if isinstance(document, list)
        else []
    )
    found = [(document, key) for key, _ in entries]
    for _, entry in entries:
        found += places(entry)
    return found


def whole_document(name: str) -> dict[str, Any]:
    """A preset with its fabric and accelerator inline and every section present."""
    document, _ = scenario_document(name)
    for kind in ("fabric", "accelerator"):
        document[kind] = load_toml(preset_path(f"{kind}s", f"{document[kind]}.toml"))
    document.setdefault("baselines", {"names": ["manual"], "seed": 0})
    document["search"].update(
        {
            "pp": {"min": 1, "max": 8},
            "sp": [False, True],
            "zero": [0, 1],
            "top": 1,
            "order": [["tp", "cp", "dp", "pp"]],
            "recompute": "full",
            "idle_devices": True,
        }
    )
    return document


@st.composite
def mutants(draw: st.DrawFn) -> dict[str, Any]:
    document = whole_document(draw(st.sampled_from(SCENARIOS)))
    for _ in range(draw(st.integers(1, 4))):
        container, key = draw(st.sampled_from(places(document)))
        action = draw(st.sampled_from(["set", "set", "set", "drop", "add"]))
        if action == "set":
            container[key] = draw(toml_values)
        elif action == "drop":
            del container[key]
        elif isinstance(container, dict):
            container[draw(st.text(max_size=6))] = draw(toml_values)
        else:
            container.append(draw(toml_values))
        if not document:
            break
    return document


quick = settings(max_examples=300, derandomize=True, database=None, deadline=timedelta(seconds=5))


@quick
@given(mutants())
@pytest.mark.check
def test_a_changed_document_is_a_scenario_or_a_sentence(document):
    """RecursionError, KeyError, OverflowError and their like are defects."""
    found: list[ScenarioValues] = []
    message = refusal(lambda: found.append(Scenario(document).values))
    if found:
        assert collapse(found[0].fabric).devices == found[0].fabric.devices
    else:
        assert is_sentence(message)


keys = st.sampled_from(
    [
        "search.tp",
        "search.pp",
        "search.order",
        "search.order.0",
        "fabric",
        "accelerator",
        "name",
        "fabric.clos.devices",
        "fabric.clos.oversubscription",
        "fabric.clos.oversubscription.0",
        "fabric.clos.tiers",
        "fabric.level",
        "fabric.torus",
        "workload",
        "workload.model",
        "schema",
        "accelerator.peak_TFLOPs.bf16",
        "accelerator.memory_GiB",
        "override",
        "baselines.names.0",
    ]
) | st.lists(st.text(string.printable, max_size=4), max_size=20).map(".".join)
texts = st.sampled_from(
    [
        "1",
        "-1",
        "0",
        "nan",
        "-inf",
        "1e400",
        "1e-400",
        "0x" + "F" * 999,
        "9" * 4400,
        "[]",
        "[1, 2]",
        "{}",
        "{min=1}",
        '""',
        '"tpu-v4-4x4x4"',
        "true",
        "1979-05-27",
        "[[[[1]]]]",
        "'''a\nb'''",
        "{a.b.c.d=1}",
        "[" * 500,
        '"\\ud800"',
        '"\\u0000.toml"',
    ]
) | st.text(string.printable, max_size=10)


@quick
@given(st.lists(st.tuples(keys, texts), min_size=1, max_size=4))
def test_any_settings_are_a_scenario_or_a_sentence(pairs):
    """Whatever stands on the command line; within five seconds."""
    sets = [f"{key}={text}" for key, text in pairs]
    found: list[ScenarioValues] = []
    message = refusal(lambda: found.append(load_scenario(SMALL, sets)))
    assert found or is_sentence(message)


def test_models_are_presets():
    assert load_model("llama2-7b").blocks == 32
    with pytest.raises(InputError, match=r"workload\.model must be a preset or a table"):
        load_model("x")


def test_zero_bubble_schedules_are_searched_where_they_are_named():
    """Frameworks lack them, so no plan has one that nobody asked for."""
    usual = load_scenario("gpt3-175b-64-h100", ['search.schedule=["1f1b", "zb_2p"]'])
    assert usual.space.schedules == ("1f1b", "zb_2p")
    file = load_scenario("gpt3-175b-64-h100", ["search.interleave={min=1}"])
    assert not any(name.startswith("zb") for name in file.space.schedules)


def test_expert_tensor_degrees_are_all_valid_ones_unless_named():
    """Absent: every width; of a dense model, and under ``etp = 1``, there is nothing to choose."""

    def etp(model: str, *sets: str) -> tuple[int, ...]:
        return load_scenario("llama2-7b-64-h100", [f'workload.model="{model}"', *sets]).space.etp

    assert etp("llama2-7b") == etp("llama2-7b", "search.etp=1") == ()
    assert etp("mixtral-8x7b")[:4] == (1, 2, 4, 8)
    assert etp("mixtral-8x7b", "workload.expert_tensor=false") == (1,)
    assert etp("mixtral-8x7b", "workload.expert_tensor=false", "search.etp=[2, 4]") == (2, 4)
    space = load_scenario("llama2-7b-64-h100", ['workload.model="mixtral-8x7b"']).space
    assert space.expert_tensor(4, sp=True) == (1, 2, 4)
    assert space.expert_tensor(4, sp=False) == (4,)
    with pytest.raises(InputError, match=r"search\.etp must be 1 for a dense model"):
        etp("llama2-7b", "search.etp=2")
    with pytest.raises(InputError, match=r"search\.etp must divide what tp may be, but is 5"):
        etp("mixtral-8x7b", "search.etp=5")
