"""Experiments on two networks: what is priced, what is compared, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from benchmarks.validation import validate_fabric
from benchmarks.validation.__main__ import run
from benchmarks.validation.fabric.document import fabric_part
from benchmarks.validation.fabric.experiments import COLUMNS, experiment_of, published
from benchmarks.validation.fabric.ratios import RATIO_COLUMNS, predict_ratios
from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.documents.errors import InputError

SUBSET = Path(__file__).parents[3] / "data" / "fidelity" / "fabric_ratios.csv"

OWN = {
    "id": "mine",
    "network_a": "1:1",
    "network_b": "4:1",
    "metric": "step time (s)",
    "value_a": "1.0",
    "value_b": "1.2",
    "ratio_b_over_a": "1.2",
    "fabric_a": "h100-spine-leaf-64",
    "fabric_b": "h100-spine-leaf-64",
    "transport_b": "roce",
    "scenario": "llama2-7b-64-h100",
    "plan": "dp=64,zero=1",
}
MESSAGE = {
    "id": "message",
    "network_a": "alone",
    "network_b": "hashed",
    "metric": "busbw (GB/s)",
    "ratio_b_over_a": "0.5",
    "fabric_a": "h100-spine-leaf-64",
    "fabric_b": "h100-spine-leaf-64",
    "collective": "all_reduce",
    "bytes": "1e9",
    "device": "h100-80gb",
}


def table(*rows: dict[str, str]) -> str:
    out = io.StringIO()
    columns = dict.fromkeys((*RATIO_COLUMNS, *(key for row in rows for key in row)))
    writer = csv.DictWriter(out, list(columns), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def predicted(row: dict[str, str], **changed: str):
    found, left = predict_ratios(table(row | changed), "t.csv", draws=4)
    assert not left, left
    return found[0]


def why(row: dict[str, str], **changed: str) -> str:
    found, left = predict_ratios(table(row | changed), "t.csv", draws=2)
    assert not found
    return left[0].reason


def subset(*wanted: str) -> str:
    rows = csv.DictReader(SUBSET.read_text().splitlines())
    return table(*(row for row in rows if row["id"].startswith(wanted)))


@pytest.mark.check
def test_the_contract_of_fabrics(capsys, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(subset("NVLS", "SHARP", "AR-", "HPN", "ATLAHS"))
    assert run(["fabric", str(file), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in fields["skipped"]] == ["HPN-448-LLaMa-7B", "ATLAHS-LLAMA-4OS"]
    assert [row["measured_ratio"] for row in fields["rows"]] == [7.1993, 1.2973, 1.4533]
    for row in fields["rows"]:
        assert {"id", "measured_ratio", "predicted_ratio", "interval"} <= set(row)
        assert row["interval"][0] <= row["interval"][1]
    assert fields["summary"]["measured"]["n"] == 3
    assert fields["summary"]["simulated"]["n"] == 0
    assert run(["fabric", str(file)]) == 0
    assert "3 ratios, median error" in capsys.readouterr().out


def test_without_a_file_the_published_rows_are_read(monkeypatch):
    monkeypatch.setattr(validate_fabric, "SHARED", SUBSET.parent / "none")
    seen = []
    monkeypatch.setattr(
        validate_fabric, "predict_ratios", lambda text, name: seen.append(text) or ([], [])
    )
    validate_fabric.fabrics()
    assert seen == [SUBSET.read_text()]


def test_every_published_row_has_tables_or_a_reason():
    """Of two networks each, whose devices are those of the run."""
    known = published()
    for identity, entry in known.rows.items():
        if not identity.startswith(("DSV3", "MIX")):  # thousands of devices
            experiment_of(entry, known.fabrics, None)
        assert entry["assumed"]
    assert sum(bool(entry.get("complete")) for entry in known.rows.values()) == 8
    for row in csv.DictReader(SUBSET.read_text().splitlines()):
        assert row["id"] in known.rows or known.reason(row["id"])


def test_the_document_has_every_row_and_the_sentence(root):
    """Of what `regenerate fabric` wrote: complete rows first, simulated ones apart."""
    text = (root / "docs" / "validation.md").read_text().partition("## Two networks")[2]
    found, left = predict_ratios(subset("NVLS", "HPN"), "t.csv", draws=2)
    part = fabric_part(found, left)
    assert "| NVLS-H100-8 | A | 1.297 |" in part
    assert "- HPN-448-LLaMa-7B: states no plan" in part
    assert UNMEASURED_RATIO in part
    for row in csv.DictReader(SUBSET.read_text().splitlines()):
        assert f"| {row['id']} |" in text or f"- {row['id']}: " in text
    complete = text.partition("### Complete rows")[2].partition("###")[0]
    assert complete.count("\n| ") == 9  # a head and eight rows


def test_ratios_are_of_times_whatever_the_metric_counts():
    rate = predicted(MESSAGE)
    time = predicted(MESSAGE, metric="time (s)")
    assert (rate.measured, time.measured) == (2.0, 0.5)
    assert rate.predicted == time.predicted == 1.0  # the same network under two names
    assert predicted(MESSAGE, notes="time_ratio_b_over_a=2.01").measured == 2.01


def test_one_network_twice_cancels_under_every_draw():
    """What both share is drawn once; a transport that differs is drawn apart."""
    same = predicted(OWN, transport_b="")
    assert (same.predicted, same.interval) == (1.0, (1.0, 1.0))
    apart = predicted(MESSAGE, transport_b="roce")
    assert apart.predicted == pytest.approx(1.0)  # RoCE reaches at its centre what InfiniBand does
    assert apart.interval[0] < 1.0 < apart.interval[1]


def test_half_the_measured_rate_takes_at_most_twice_as_long():
    slower = predicted(OWN, transport_b="", reach_a="0.8", reach_b="0.4")
    assert 1.0 < slower.predicted < 2.0
    message = predicted(MESSAGE, reach_a="0.8", reach_b="0.4")
    assert 1.5 < message.predicted <= 2.0


def test_the_time_on_network_a_sets_how_fast_the_device_is():
    """A slower device hides more traffic, and has more to hide it behind."""
    free = predicted(OWN, transport_b="", reach_a="0.8", reach_b="0.2")
    slow = predicted(OWN, transport_b="", reach_a="0.8", reach_b="0.2", seconds_a="50")
    assert free.anchored is None
    assert 1.0 <= slow.anchored < slow.predicted == free.predicted
    impossible = predicted(OWN, seconds_a="1e-9")
    assert impossible.anchored is None
    assert impossible.anchored_interval is None


def test_switches_that_reduce_send_once():
    """A ring over eight nodes sends 2 x 7/8 of what goes up and comes down; NVLink bounds both."""
    alone = predicted(MESSAGE, in_network_a="yes", in_network_b="no", group="8", stride="8")
    assert alone.predicted == pytest.approx(2 * 7 / 8, rel=0.05)
    whole = predicted(MESSAGE, in_network_a="yes", in_network_b="no")
    assert 1.0 < whole.predicted < alone.predicted


@pytest.mark.parametrize(
    ("row", "changed", "reason"),
    [
        (OWN, {"network_b": "1:1"}, "names the same network twice: 1:1"),
        (OWN, {"ratio_b_over_a": ""}, "states no ratio_b_over_a"),
        (OWN, {"ratio_b_over_a": "-1"}, "states ratio_b_over_a as -1, which is no such figure"),
        (OWN, {"ratio_b_over_a": "one"}, "states ratio_b_over_a as one, which is no number"),
        (OWN, {"value_b": "9"}, "states a ratio of 1.2, and values whose ratio is 9"),
        (OWN, {"metric": "colour"}, "names neither a time nor a rate"),
        (OWN, {"notes": "time_ratio_b_over_a=3"}, "and its values give 1.2"),
        (OWN, {"notes": "time_ratio_b_over_a=1.2.3"}, "which is no number"),
        (OWN, {"fabric_b": ""}, "names no fabric_b"),
        (OWN, {"fabric_a": "", "fabric_b": ""}, "has no tables: give fabric_a, fabric_b"),
        (OWN, {"fabric_b": "nowhere"}, "fabric must be one of the presets"),
        (OWN, {"fabric_b": "dgx-superpod-a100"}, "has 64 devices on network a and"),
        (OWN, {"plan": ""}, "names a scenario without the plan that ran"),
        (OWN, {"plan": "dp=99"}, "99"),
        (OWN, {"scenario": ""}, "must name one of a scenario with its plan and a collective"),
        (OWN, {"collective": "all_reduce"}, "not scenario and collective"),
        (OWN, {"transport_a": "pigeon"}, "transport must be one of the catalogue"),
        (OWN, {"reach_a": "2"}, "more than the line rate"),
        (OWN, {"in_network_a": "perhaps"}, "which is neither yes nor no"),
        (MESSAGE, {"collective": "sum"}, "op must be one of"),
        (MESSAGE, {"collective": "broadcast"}, "which plans do not have"),
        (MESSAGE, {"bytes": ""}, "names a collective without its bytes"),
        (MESSAGE, {"group": "1"}, "size must lie between 2 and 64, but is 1"),
        (MESSAGE, {"group": "65"}, "65"),
        (MESSAGE, {"concurrent": "some"}, "which is neither one nor all"),
    ],
)
def test_rows_that_say_no_experiment(row, changed, reason):
    assert reason in why(row, **changed)


def test_tables_that_are_none():
    with pytest.raises(InputError, match="must have the columns of fabric_ratios"):
        predict_ratios("id,network_a\n1,2\n", "t.csv")
    with pytest.raises(InputError, match="must name every row once"):
        predict_ratios(table(OWN, OWN), "t.csv")


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "cell", ["", " ", "nan", "-1", "1e400", "0", "é\x00", "a,b", "[1]", "x" * 9]
)
@pytest.mark.parametrize("column", sorted({*OWN, *MESSAGE, *COLUMNS, "notes", "kind"}))
def test_whatever_a_cell_holds_is_an_answer(column, cell):
    """Predicted, or one sentence; a traceback would be a defect."""
    for row in (OWN, MESSAGE):
        found, left = predict_ratios(table(row | {column: cell}), "t.csv", draws=1)
        assert len(found) + len(left) == 1
        assert not left or (left[0].reason and "\n" not in left[0].reason)
