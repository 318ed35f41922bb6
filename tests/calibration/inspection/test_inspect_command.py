"""`nest-studio inspect`: the contract's fields, and a file that `plan` takes."""

from __future__ import annotations

import json
import tomllib

import pytest
from cluster_logs import nccl, printed

from nest_core.scenario import Scenario, load_fabric, load_scenario
from nest_studio.cli import run


@pytest.fixture
def logs(tmp_path):
    """A cluster of 16 devices, which is quickly planned."""
    cluster = printed(load_fabric("h100-spine-leaf-64"))
    small = (("topology.conf", "SwitchName=s0 Nodes=node[00-01]\n"),)
    files = [*cluster.files[:2], *small, ("nccl.txt", nccl(cluster.hosts[:2]))]
    for name, text in files:
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name, _ in files]


def test_json_has_the_fields_of_the_contract(logs, capsys):
    assert run(["inspect", *logs, "--launch", "srun -N 2 --ntasks-per-node 8", "--json"]) == 0
    out, err = capsys.readouterr()
    fields = json.loads(out)
    assert err == ""
    assert Scenario(fields["scenario"]).values.fabric.devices == 16
    assert all(isinstance(sentence, str) for sentence in fields["assumed"])
    (one,) = fields["compared"]
    assert one["measured_busbw_Bps"] > 0
    assert set(fields["logs"]) == {"ib.txt", "topo.txt", "topology.conf", "nccl.txt"}


def test_what_is_printed_is_a_scenario_file_with_its_assumptions_on_top(logs, capsys, tmp_path):
    assert run(["inspect", *logs]) == 0
    text = capsys.readouterr().out
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert text.startswith("# Read: ib.txt (ibnetdiscover)")
    assert any("placeholder" in line for line in head)
    assert any("the scenario's fabric predicts" in line for line in head)
    assert run(["inspect", *logs, "--json"]) == 0
    assert tomllib.loads(text) == json.loads(capsys.readouterr().out)["scenario"]
    (tmp_path / "mine.toml").write_text(text)
    assert load_scenario(str(tmp_path / "mine.toml")).fabric.devices == 16
    small = ["--set", "search.tp=[1]", "--set", "search.pp=1", "--set", "search.cp=1"]
    small += ["--set", "baselines.names=[]"]
    assert run(["plan", str(tmp_path / "mine.toml"), *small, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feasible"]


def test_bad_input_is_one_sentence(logs, capsys):
    assert run(["inspect", *logs, "--launch", "srun -N 4 --ntasks-per-node 8"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "must fit on the 2 nodes of 8 that ib.txt shows, but is '4 nodes'" in err
    assert err.count("\n") == 1
