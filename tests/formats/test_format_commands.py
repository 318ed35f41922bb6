"""`nest-studio convert`, and fabrics of other formats wherever a fabric is named."""

from __future__ import annotations

import json
import tomllib

import pytest
from ibnet_sample import ibnetdiscover_text

from nest_core.documents.presets import preset_path
from nest_core.fabric import Hierarchical
from nest_core.scenario import load_fabric, load_scenario
from nest_studio.cli import run

TREE = "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=r Switches=s[0-1]\n"


@pytest.fixture
def conf(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text(TREE)
    return path


def ask(capsys, *arguments: str) -> dict:
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_a_tree_becomes_toml_and_says_what_was_assumed(conf, capsys):
    out = conf.with_name("fabric.toml")
    fields = ask(capsys, "convert", str(conf), str(out))
    assert fields["format"] == "toml"
    assert fields["devices"] == 64
    assert fields["lost"] == []
    assert fields["output"] == str(out)
    assert any("8 devices per node" in note for note in fields["notes"])
    assert [level["group_size"] for level in tomllib.loads(out.read_text())["level"]] == [8, 4, 2]


def test_presets_convert_too_and_losses_are_said(tmp_path, capsys):
    out = tmp_path / "x.out"
    fields = ask(capsys, "convert", "h100-spine-leaf-64", str(out), "--to", "slurm-tree")
    assert any(sentence.startswith("Rates") for sentence in fields["lost"])
    assert load_fabric(str(out)).devices == 64
    assert run(["convert", "h100-spine-leaf-64", str(out), "--to", "slurm-tree"]) == 0
    text = capsys.readouterr().out
    assert "Lost in writing:\n- Rates" in text


def test_toml_keeps_the_remarks_of_its_source(tmp_path, capsys):
    ask(capsys, "convert", "drawn-8", str(tmp_path / "x.toml"))
    mine = tomllib.loads((tmp_path / "x.toml").read_text())
    assert mine == tomllib.loads(preset_path("fabrics", "drawn-8.toml").read_text())


def test_assumptions_can_be_stated(conf, capsys):
    out = conf.with_name("fabric.toml")
    settings = ["--assume", "devices_per_node=4", "--assume", "link_bandwidth_GBps=25"]
    assert ask(capsys, "convert", str(conf), str(out), *settings)["devices"] == 32
    levels = tomllib.loads(out.read_text())["level"]
    assert levels[-1]["bandwidth_GBps"] == 25.0


def test_what_a_command_assumes_of_a_foreign_file_stands_on_standard_error(conf, capsys, caplog):
    assert run(["levels", str(conf), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == 64
    assert any("8 devices per node" in record.getMessage() for record in caplog.records)


SCENARIO = (
    'schema = 1\nname = "x"\nfabric = "subnet.txt"\naccelerator = "h100-80gb"\n[workload]\n'
    'model = "gpt3-125m"\nsequence_length_tokens = 2048\nglobal_batch_sequences = 16\n'
    'precision = "bf16"\n'
)
PLAN = ["--plan", "dp=4,micro_batch=1"]
COMMANDS = [
    ["levels", "subnet.txt"], ["bill", "subnet.txt"], ["bom", "subnet.txt"],
    ["cables", "subnet.txt"], ["convert", "subnet.txt", "x.toml"], ["inspect", "subnet.txt"],
    ["collective", "subnet.txt", "--op", "all-reduce", "--bytes", "1e6", "--size", "4"],
    ["price", "x.scenario.toml", *PLAN], ["memory", "x.scenario.toml", *PLAN],
    ["accept", "subnet.txt", "--accelerator", "h100-80gb"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_every_command_says_once_what_its_reader_left_out(
    command, tmp_path, capsys, caplog, monkeypatch
):
    """A server of files in a subnet: its devices were priced, and no command said so."""
    monkeypatch.chdir(tmp_path)
    subnet = ibnetdiscover_text(3, rails=2, hosts_per_unit=4, spines=1, sharp=False)
    (tmp_path / "subnet.txt").write_text(subnet.replace("a01-p1-dgx-003-c01", "nas1"))
    (tmp_path / "x.scenario.toml").write_text(SCENARIO)
    assert run([*command, "--json"]) == 0
    said = capsys.readouterr().out + " ".join(record.getMessage() for record in caplog.records)
    assert said.count("nas1") == 1
    assert said.count("1 host left out") == 1


BAD = [
    (["convert", "{conf}", "x.toml", "--assume", "rails=4"], "--assume must name an assumption"),
    (["convert", "{conf}", "x.toml", "--assume", "devices_per_node=x"], "--assume devices_per_no"),
    (["convert", "{conf}", "x.csv", "--assume", "devices_per_node=1.5"], "--assume devices_per_n"),
    (["convert", "{conf}", "{conf}"], "OUT must not be the file that is read"),
    (["convert", "{conf}", "x.foo"], "OUT must end in one of .toml .graphml .xml .csv .conf"),
    (["convert", "{conf}", "x.toml", "--to", "visio"], "to must be a known format, but is 'visio'"),
    (["convert", "{conf}", "x.toml", "--from", "csv"], "topology.conf, line 1 must name known col"),
    (["convert", "{conf}", "no/where.toml"], "OUT must be a file that can be written"),
    (["convert", "nowhere", "x.toml"], "nowhere must be a readable file"),
    (["levels", "nowhere.conf"], "nowhere.conf must be a readable file"),
    (["levels", "nowhere"], "fabric must be a preset or a path to a .toml file or to another that"),
    (["plan", "llama2-7b-64-h100", "--set", 'fabric="{conf}.x"'], "fabric must be a preset, a pat"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_requests_get_one_sentence(arguments, message, conf, capsys, monkeypatch):
    monkeypatch.chdir(conf.parent)
    assert run([word.format(conf=conf) for word in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert conf.read_text() == TREE


def test_a_link_to_the_input_is_the_input(conf, capsys):
    link = conf.with_name("link.toml")
    link.symlink_to(conf)
    assert run(["convert", str(conf), str(link)]) == 2
    assert "OUT must not be the file that is read" in capsys.readouterr().err
    assert conf.read_text() == TREE


def test_any_format_is_a_fabric_wherever_one_is_named(conf, capsys, tmp_path):
    fabric = load_fabric(str(conf))
    assert isinstance(fabric, Hierarchical)
    assert ask(capsys, "levels", str(conf))["devices"] == 64
    scenario = preset_path("scenarios", "llama2-7b-64-h100.toml").read_text()
    document = tomllib.loads(scenario)
    file = tmp_path / "scenario.toml"
    file.write_text(scenario.replace(f'"{document["fabric"]}"', '"topology.conf"'))
    assert load_scenario(str(file)).fabric == fabric
    overridden = load_scenario(str(file), ['fabric.missing=["node 1"]'])
    assert overridden.fabric.devices == 56
