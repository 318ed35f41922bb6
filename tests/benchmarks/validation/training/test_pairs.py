"""Experiments in which a setting was changed: which arms are priced, and what is compared."""

from __future__ import annotations

import csv
import io
import json

import pytest
from run_tables import SUBSET

from benchmarks.validation.__main__ import run
from benchmarks.validation.training.pairs import ARM_COLUMNS, predict_pairs
from nest_core.documents.errors import InputError

ARMS = SUBSET / "ab_pairs.csv"


def arms(*wanted: str, **changed: str) -> str:
    """Arms of Moonlight's recomputed modules; of the last, cells are changed."""
    listed = csv.DictReader(ARMS.read_text().splitlines())
    rows = [row for row in listed if "moonlight" in row["group"] and row["arm"] in wanted]
    rows[-1] |= changed
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def why(*wanted: str, **changed: str) -> str:
    pairs, left = predict_pairs(arms(*wanted, **changed), "t.csv")
    assert not pairs
    return left[-1].reason


def test_the_contract_of_pairs(capsys):
    assert run(["pairs", str(ARMS), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    compared = [row for row in csv.DictReader(ARMS.read_text().splitlines()) if row["compare_to"]]
    assert len(fields["rows"]) + len(fields["skipped"]) == len(compared)
    assert len(fields["rows"]) >= 8
    for row in fields["rows"]:
        assert set(row) == {
            "group", "arm", "compare_to", "changed", "strict", "measured_ratio",
            "predicted_ratio", "memory_ratio", "predicted_memory_ratio",
        }  # fmt: skip
    assert run(["pairs", str(ARMS)]) == 0
    assert "the faster arm right in" in capsys.readouterr().out


def test_modules_run_again_as_they_are_named():
    """Without a module more memory, with two of them more time than with either."""
    text = arms("none", "mla_up_proj", "mla_up_proj_mlp", "moe_act")
    pairs, _ = predict_pairs(text, "t.csv")
    found = {pair.arm: pair for pair in pairs}
    assert found["mla_up_proj_mlp"].predicted < found["mla_up_proj"].predicted < 1
    for pair in pairs:
        assert pair.predicted_memory == pytest.approx(pair.memory, abs=0.01)
        # The host issues these layers in nearly the time that the device takes, so that a replay
        # costs little but its launches, of which checkpointing's own are not counted.
        assert pair.predicted == pytest.approx(pair.measured, abs=0.04)


def test_ratios_are_of_tokens_per_device():
    """Twice the batch in an arm whose time grows with it is no faster, nor half as fast."""
    one, two = (
        predict_pairs(
            arms("none", "core_attn", global_batch=batch),
            "t.csv",
        )[0][0].predicted
        for batch in ("4", "8")
    )
    assert one == pytest.approx(two, rel=0.1)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"changed": "kernel_fusion"}, "changes kernel_fusion, which no cost describes"),
        ({"changed": "tp+cpu_binding"}, "changes cpu_binding, which no cost describes"),
        ({"recompute": "selective:[]"}, "changes recompute in a way that no cost describes"),
        ({"compare_to": "nothing"}, "is compared with 'nothing', which its group lacks"),
        ({"ratio_throughput": ""}, "states no ratio of throughput"),
        ({"ratio_throughput": "fast"}, "states no ratio of throughput"),
        ({"dispatcher": "flex/deepep over UCCL"}, "through a proxy on the host"),
        ({"model": "Abacus 7B"}, "is of a model without a preset: Abacus 7B"),
        ({"shape": "experts=12"}, "is of a model without a preset"),
        ({"recompute": "selective:core_atn"}, "core_atn"),
        ({"global_batch": ""}, "states no global_batch_seqs"),
        ({"tp": "3"}, "which are not its 8 devices"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_predicted_says_why(changed, reason):
    if "shape" in changed:
        changed = {"model": "Llama-3-8B", **changed}
    assert reason in why("none", "core_attn", **changed)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pairs"], "FILE must stand after pairs, may after fabric"),
        (["training", "a.csv"], "after pairs, may after fabric, and after nothing else, but is"),
        (["pairs", str(SUBSET / "train_measurements.csv")], "must have the columns of arms"),
    ],
)
def test_other_files_are_refused(words, sentence, capsys):
    assert run([*words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("column", csv.DictReader(ARMS.read_text().splitlines()).fieldnames or ())
@pytest.mark.sampled(6)
def test_whatever_a_cell_holds_is_an_answer(column):
    """Never a traceback; a column that is no arm's may be missing."""
    for word in ("", "x", "-1", "0", "1e99", "nan", "(tt|)*999999999999", "selective:,", "²"):
        pairs, left = predict_pairs(arms("none", "core_attn", **{column: word}), "t.csv")
        assert len(pairs) + len(left) <= 1
    listed = list(csv.DictReader(arms("none", "core_attn").splitlines()))
    if column not in ARM_COLUMNS:
        text = ",".join(f" {name}" for name in listed[0] if name != column) + "\n"
        for row in listed:
            text += ",".join(f'"{value}"' for name, value in row.items() if name != column) + "\n"
        assert sum(map(len, predict_pairs(text, "t.csv"))) == 1


def test_an_arm_stands_once():
    text = arms("none", "core_attn")
    with pytest.raises(InputError, match="must name every arm of a group once"):
        predict_pairs(text + text.splitlines()[1] + "\n", "t.csv")
