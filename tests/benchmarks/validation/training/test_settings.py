"""What a setting was worth: which way a pair counts, and what ships beside the form's fields."""

from __future__ import annotations

import csv
import io
import tomllib

import pytest

from benchmarks.validation import regenerate
from benchmarks.validation.__main__ import run
from benchmarks.validation.training.pairs import ARM_COLUMNS, Pair
from benchmarks.validation.training.settings import (
    EFFECTS,
    measured_settings,
    settings_part,
    settings_toml,
)
from nest_core.calibration.training.bands import PATH, Setting, read_settings
from nest_core.calibration.training.runs import Unread
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_path
from nest_core.documents.schema import parameter
from nest_core.report.explain.validity import setting_in_words, worth_of


def table(*arms: dict[str, str]) -> str:
    """Two arms or more of one group, all compared with the first."""
    named = (name for arm in arms for name in arm)
    columns = dict.fromkeys((*ARM_COLUMNS, "quality", *named))
    rows = [
        {"group": "g", "arm": str(n), "compare_to": "0" if n else "", "quality": "A"} | arm
        for n, arm in enumerate(arms)
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def pair(changed: str, column: str, before: str, after: str, **more: str) -> list[Setting]:
    arm = {column: after, "changed": changed, "ratio_throughput": "1.25"} | more
    return measured_settings(table({column: before}, arm), "t.csv")


@pytest.mark.parametrize(
    ("changed", "column", "less", "more", "name"),
    [
        ("ep_overlap", "overlap_flags", "none", "moe_a2a_overlap", "expert overlap"),
        ("ep_overlap turned off", "overlap_flags", "none", "moe_a2a_overlap", "expert overlap"),
        ("dispatcher", "dispatcher", "alltoall", "deepep", "DeepEP or HybridEP"),
        ("dispatcher", "dispatcher", "deepep", "flex/hybridep", "DeepEP or HybridEP"),
        ("precision", "precision_recipe", "bf16", "mxfp8", "8 bits instead of 16"),
        ("recompute", "recompute", "selective:[]", "selective:mlp", "modules recomputed"),
        ("recompute", "recompute", "none", "full/uniform/n=1", "full recomputation"),
        ("micro_batch", "micro_batch", "1", "4", "larger micro-batches"),
        ("cuda_graphs", "cuda_graphs", "none", "TE attn", "CUDA graphs of layers"),
    ],
)
def test_a_pair_counts_towards_more_of_the_setting(changed, column, less, more, name):
    """The same experiment told either way round is the same experience."""
    (gained,) = pair(changed, column, less, more)
    (lost,) = pair(changed, column, more, less)
    assert (gained.name, gained.ratios, gained.n) == (name, (1.25, 1.25), 1)
    assert lost.ratios == (0.8, 0.8)


@pytest.mark.parametrize(
    ("changed", "column", "before", "after"),
    [
        ("recompute", "recompute", "selective:mlp", "selective:moe_act"),
        ("dispatcher", "dispatcher", "deepep", "deepep tuned"),
        ("ep_overlap", "overlap_flags", "none", "none"),
        ("ep_overlap+vp turned off", "overlap_flags", "moe_a2a_overlap", "none"),
        ("micro_batch", "micro_batch", "1", ""),
    ],
)
def test_what_is_no_more_nor_less_says_nothing(changed, column, before, after):
    assert pair(changed, column, before, after) == []


@pytest.mark.parametrize("ratio", ["", "0", "-1", "nan", "fast"])
def test_without_a_ratio_there_is_nothing(ratio):
    assert pair("micro_batch", "micro_batch", "1", "4", ratio_throughput=ratio) == []


def test_a_pair_that_leaves_out_its_plan_stands_apart():
    first = {"micro_batch": "1"}
    arm = {"micro_batch": "4", "changed": "micro_batch"}
    (found,) = measured_settings(
        table(
            first,
            arm | {"ratio_throughput": "2", "purity": "one", "ratio_memory": "1.5"},
            arm | {"ratio_throughput": "3", "purity": "few"},
            arm | {"ratio_throughput": "9", "purity": "one", "quality": "B"},
        ),
        "t.csv",
    )
    assert (found.ratios, found.n, found.clean) == ((2.0, 3.0), 2, 1)
    assert (found.others, found.n_others, found.memory) == ((9.0, 9.0), 1, (1.5, 1.5))


def test_a_proxy_on_the_host_is_a_setting_of_its_own():
    found = pair("dispatcher", "dispatcher", "alltoall (NCCL)", "flex/deepep over UCCL")
    assert [one.name for one in found] == ["DeepEP through a proxy on the host (EFA)"]


def test_unsound_groups_are_left_out():
    assert pair("micro_batch", "micro_batch", "1", "4", group="g")
    arms = table({"micro_batch": "1"}, {"micro_batch": "4", "changed": "micro_batch"} | {
        "ratio_throughput": "2"}).replace("\r\ng,", "\r\nolmo762_ddp_fsdp,")  # fmt: skip
    assert measured_settings(arms, "t.csv") == []


def test_what_is_written_is_read_back():
    measured = (
        Setting("a", "search.tp", (0.5, 2.0), 3, 1, (0.9, 0.9), 1, (1.0, 1.1), ("g", "h")),
        Setting("b", "", None, 0, 0, (1.2, 1.3), 2, None, ("g",)),
    )
    assert read_settings(tomllib.loads(settings_toml(measured))) == measured


def test_fields_of_settings_are_those_of_files():
    for effect in EFFECTS:
        assert not effect.key or parameter(effect.key).text


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            Setting("expert overlap", "", (1.0375, 1.6349), 4, 1, None, 0, None, ()),
            "Expert overlap: 1.04 to 1.63 in 4 experiments, one of them clean.",
        ),
        (
            Setting("x", "", (0.9, 0.9), 1, 1, (0.8, 1.0), 2, (0.5, 0.5), ()),
            "X: 0.90 in one experiment, a clean one; 0.80 to 1.00 in 2 experiments that leave out "
            "part of their plan; memory 0.50.",
        ),
        (
            Setting("x", "", None, 0, 0, (0.8, 0.8), 1, None, ()),
            "X: 0.80 in one experiment that leaves out part of its plan.",
        ),
        (
            Setting("x", "", (1.0, 1.1), 12, 12, None, 0, None, ()),
            "X: 1.00 to 1.10 in 12 experiments, all clean.",
        ),
        (
            Setting("x", "", (1.0, 1.1), 12, 0, None, 0, None, ()),
            "X: 1.00 to 1.10 in 12 experiments, none of them clean.",
        ),
    ],
)
def test_in_words(setting, sentence):
    assert setting_in_words(setting) == sentence


def test_a_field_says_all_that_was_measured_of_it():
    settings = [
        Setting(name, key, (1.1, 1.2), 2, 2, None, 0, None, ("g",))
        for name, key in (("a", "search.tp"), ("b", "search.tp"), ("c", "search.pp"), ("d", ""))
    ]
    assert worth_of("search.tp", settings) == (
        "Measured throughput, with over without: A: 1.10 to 1.20 in 2 experiments, all clean. "
        "B: 1.10 to 1.20 in 2 experiments, all clean."
    )
    assert worth_of("search.dp", settings) == worth_of("", settings) == ""


def test_the_part_of_the_document():
    """Measured beside predicted, the score of clean pairs, and reasons counted."""
    pairs = [
        Pair("g", "a", "0", "tp", True, 1.2, 1.1, None, None),
        Pair("g", "b", "0", "tp", True, 0.8, 1.1, 0.5, 0.6),
        Pair("g", "c", "0", "tp", False, 9.0, 1.0, None, None),
    ]
    left = [Unread("g/d", "is of a model without a preset: A"), Unread("g/e", "states no tp")]
    left.append(Unread("g/f", "is of a model without a preset: B"))
    text = settings_part([], pairs, left, "t.csv")
    assert "3 pairs predicted. Of the 2 clean ones the median error of the ratio is 22.9%" in text
    assert "the faster arm is right in 1 of 2 that differ by more than 5%" in text
    assert "| g/b | tp | yes | 0.80 | 1.10 | 0.50 | 0.60 |" in text
    assert "| is of a model without a preset | 2 |" in text
    assert "none of them clean" in settings_part([], pairs[2:], [], "t.csv")


@pytest.mark.check
def test_regenerating_writes_what_ships(shared_data, monkeypatch, tmp_path):
    """The shipped file is what the table says today; the document's other parts stay."""
    document = tmp_path / "validation.md"
    document.write_text("# Validation\n\nOf others.\n")
    monkeypatch.setattr(regenerate, "DOCUMENT", document)
    monkeypatch.setattr(regenerate, "SETTINGS", tmp_path / "settings.toml")
    assert run(["regenerate", "settings"]) == 0
    assert document.read_text().startswith("# Validation\n\nOf others.\n")
    assert "## Settings" in document.read_text()
    assert (tmp_path / "settings.toml").read_text() == preset_path(*PATH).read_text()
    assert run(["regenerate", "settings", "--fit"]) == 2


def test_regenerating_needs_the_data(monkeypatch, tmp_path):
    monkeypatch.setattr(regenerate.validate_training, "SHARED", tmp_path)
    with pytest.raises(InputError, match="needs the whole data"):
        regenerate.settings(None)
