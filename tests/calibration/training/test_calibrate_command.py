"""``nest-studio calibrate``: logs and tables in, a stack of one's own out."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from run_tables import PLAIN, as_csv

from nest_core.costs.software import software_of
from nest_core.documents.presets import preset_names, preset_path
from nest_core.hardware import load_accelerator
from nest_core.hardware.collectives import load_curve
from nest_core.hardware.stacks import load_stack
from nest_core.network import collapse
from nest_core.network.collective import KINDS, collective, member_groups
from nest_core.scenario import load_fabric, load_scenario
from nest_studio.cli import run

sys.path.append(str(Path(__file__).resolve().parents[1] / "logs"))
from printed_logs import deepspeed, megatron, text, torchtitan

FIELDS = {
    "rows", "skipped", "before", "after", "left_one_out", "parameters", "next_runs", "output",
}  # fmt: skip


@pytest.fixture
def ask(capsys, tmp_path, monkeypatch):
    """``ask(*arguments)``: the fields, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def fields(*arguments):
        assert run(["calibrate", *arguments, "--name", "mine", "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return fields


@pytest.fixture
def refuse(capsys, tmp_path, monkeypatch):
    """``refuse(*arguments)``: the sentence."""
    monkeypatch.chdir(tmp_path)

    def sentence(*arguments):
        assert run(["calibrate", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err

    return sentence


def logs(folder, **printed):
    for name, lines in printed.items():
        (folder / f"{name}.log").write_text(text(lines))
    return [f"{name}.log" for name in printed]


def test_logs_become_a_stack(ask, tmp_path):
    files = logs(
        tmp_path,
        slow=megatron([9.0, 8.0, 7.0, *[5.4] * 5]),
        slower=megatron([9.0, 8.0, 7.0, *[5.6] * 5], micro_batch_size=2),
    )
    fields = ask(*files, "--accelerator", "H100")
    assert fields.keys() >= FIELDS
    assert [row["id"] for row in fields["rows"]] == files
    assert [row["measured_s"] for row in fields["rows"]] == [5.4, 5.6]
    assert {row["stack"] for row in fields["rows"]} <= set(preset_names("stacks"))
    assert fields["rows"][0]["plan"]["tp"] == 4
    assert fields["after"]["mape"] < fields["before"]["mape"]
    assert {"mape", "bias"} == fields["left_one_out"].keys()
    assert all(
        {"name", "prior", "value", "interval"} == each.keys() for each in fields["parameters"]
    )
    written = tomllib.loads((tmp_path / fields["output"]).read_text())
    assert fields["output"] == "mine.toml"
    for each in fields["parameters"][:-1]:  # the last is the factor on whole runs
        assert written["parameters"][each["name"]] == pytest.approx(each["value"], rel=1e-4)


def test_a_table_and_a_log_go_together(ask, tmp_path):
    (tmp_path / "runs.csv").write_text(
        as_csv({**PLAIN, "accelerator": "H100", "tp": "x", "id": "B"})
    )
    files = logs(tmp_path, own=torchtitan())
    fields = ask("runs.csv", *files)
    assert [each["id"] for each in fields["skipped"]] == ["B"]
    assert [row["id"] for row in fields["rows"]] == files
    assert fields["left_one_out"] is None


def test_a_broken_log_among_others_is_skipped_with_its_sentence(ask, tmp_path):
    files = logs(tmp_path, good=megatron(), cut=megatron([9.0]))
    fields = ask(*files, "--accelerator", "H100")
    assert [each["id"] for each in fields["skipped"]] == ["cut.log"]
    assert "1 printed step, fewer than" in fields["skipped"][0]["reason"]


def test_each_log_may_have_its_own_command(ask, tmp_path):
    files = logs(tmp_path, one=deepspeed(), two=deepspeed())
    (tmp_path / "two.yaml").write_text("seq_length: 4096\n")
    fields = ask(
        *files, "--model", "llama3-8b", "--accelerator", "H100",
        "--launch", "seq_length=8192", "--launch", "two.yaml",
    )  # fmt: skip
    first, second = (row["before_s"] for row in fields["rows"])
    assert second < 0.7 * first


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    """A scenario's file whose search is small; few draws are searched."""
    monkeypatch.setattr("nest_core.studies.next_runs.DRAWS", 2)
    text = preset_path("scenarios", "llama2-7b-64-h100.toml").read_text().partition("[search]")[0]
    pins = "pp = [1]\ntp = [1, 2]\nmicro_batch_sequences = [1, 2]\n"
    (tmp_path / "job.toml").write_text(f"{text}[search]\n{pins}")
    return "job.toml"


def test_a_scenario_gives_machine_and_model_and_asks_for_runs(ask, tmp_path, capsys, scenario):
    """Own runs change what others are worth: after them `next` with the own stack says so."""
    (file,) = logs(tmp_path, own=deepspeed())
    capsys.readouterr()
    assert run(["next", scenario, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    fields = ask(file, "--launch", "seq_length=4096", "--on", scenario)
    assert fields["rows"][0]["before_s"] > 0
    assert run(["next", scenario, "--set", 'stack="mine.toml"', "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["runs"] == fields["next_runs"]
    assert again["expected_regret_s"] != first["expected_regret_s"]
    assert again["runs"][0]["predicted_s"] != first["runs"][0]["predicted_s"]


def test_runs_are_written_as_a_job(scenario, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["next", scenario, "--runs", "2", "--to", "slurm", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert len(fields["runs"]) == 2
    assert {"plan", "expected_regret_removed_s"} <= fields["runs"][0].keys()
    assert "--array=0-1%1" in (tmp_path / fields["files"]["next.sbatch"]).read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--runs", "0"), "runs must lie between 1 and 50"),
        (("--to", "pbs"), "to must be slurm"),
        (("--seed", "-1"), "Invalid value for '--seed'"),
        (("--set", 'workload.model="llama3.1-405b"'), "must have a plan"),
    ],
)
def test_next_refuses_in_one_sentence(scenario, tmp_path, capsys, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    assert run(["next", scenario, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1


def test_a_slower_network_is_seen_in_the_prediction(ask, tmp_path):
    (file,) = logs(tmp_path, own=torchtitan())
    fast = ask(file)["rows"][0]["before_s"]
    slow = ask(file, "--on", "dgx1-v100-64")["rows"][0]["before_s"]
    assert slow > fast


def nccl_log(hosts, per_host, seconds):
    """A log of all-reduces, one row for each size."""
    ranks = [
        f"#  Rank  {rank} Group  0 Pid  1 on  node-{rank // per_host} device  0 [0x1b]"
        " NVIDIA H100 80GB HBM3"
        for rank in range(per_host * hosts)
    ]
    rows = [
        f"{size:12d} {size // 4:12d}  float  sum  -1 {1e6 * seconds(size):.3f} 1 1 0 1 1 1 0"
        for size in (2**power for power in range(16, 34))
    ]
    return "\n".join(["# nThread 1 nGpus 8 minBytes 8", "# all_reduce_perf", *ranks, *rows]) + "\n"


@pytest.mark.check
def test_a_log_of_nccl_tests_goes_before_the_shipped_curve(ask, tmp_path):
    (file,) = logs(tmp_path, own=megatron())
    plain = ask(file, "--accelerator", "H100")["rows"][0]["before_s"]
    (tmp_path / "nccl.log").write_text(nccl_log(1, 8, lambda size: 40e-6 + size / 60e9))
    slow = ask(file, "--accelerator", "H100", "--nccl", "nccl.log")["rows"][0]["before_s"]
    assert slow > plain


@pytest.mark.parametrize("share", [0.5, 1.1])
@pytest.mark.sampled(2)
def test_a_scenario_is_priced_at_what_nccl_tests_reached(ask, tmp_path, share):
    """Curves of logs moved the fit and were then forgotten: the stack's file had none."""
    inside, between = load_curve("h100-nvlink4"), load_curve("network-infiniband")

    def reached(curve, devices, rate, *nodes):
        """Between nodes with one device in each, as tests of rails have it."""
        ask_curve = curve.seconds_between if nodes else curve.seconds
        more = (inside, 450e9) if nodes else ()
        return lambda size: ask_curve("all_reduce", devices, *nodes, size, rate, *more) / share

    (tmp_path / "node.log").write_text(nccl_log(1, 8, reached(inside, 8, 450e9)))
    (tmp_path / "nodes.log").write_text(nccl_log(8, 1, reached(between, 8, 50e9, 8)))
    (file,) = logs(tmp_path, own=megatron())
    fields = ask(file, "--accelerator", "H100", "--nccl", "node.log", "--nccl", "nodes.log")
    assert [each["link"] for each in fields["curves"]] == ["nvlink", "network"]
    assert all(each["error"][1] < 0.03 < each["error"][0] for each in fields["curves"])
    (network,) = (each for each in fields["parameters"] if each["name"] == "network")
    assert network["prior"] == 1.0

    def seconds(device, group, stride):
        network = collapse(load_fabric("h100-spine-leaf-1024"))
        chosen = member_groups(1024, group, stride=stride, concurrent="one")
        protocols = software_of(device).of_groups(network, KINDS["all_reduce"][0], chosen)
        return collective(
            network, "all_reduce", 2**30, group, stride=stride, concurrent="one",
            protocols=protocols,
        ).time_s  # fmt: skip

    mine = load_scenario("llama3-70b-1024-h100", ('stack="mine.toml"',)).accelerator
    factor = dict(load_stack("mine.toml", tmp_path).parameters)["run_factor"]
    shipped = load_accelerator("h100-80gb")
    for group, stride in ((8, 1), (8, 8)):
        slower = seconds(mine, group, stride) / seconds(shipped, group, stride) / factor
        assert slower == pytest.approx(1 / share, rel=0.06)


def test_what_is_missing_is_asked_for_in_one_sentence(refuse, tmp_path):
    (file,) = logs(tmp_path, own=megatron())
    assert "--accelerator" in refuse(file, "--name", "mine")
    assert "No such file" in refuse("none.log", "--name", "mine", "--accelerator", "H100")
    assert "plain name" in refuse(file, "--name", "a/b", "--accelerator", "H100")
    assert "preset" in refuse(file, "--name", "mine", "--accelerator", "Abacus")
    sent = refuse(file, file, file, "--name", "m", "--launch", "a=1", "--launch", "b=1")
    assert "once for each log" in sent
    assert not (tmp_path / "mine.toml").exists()
