"""``nest-studio design``: what its JSON says, and its text."""

from __future__ import annotations

import json

import pytest
from studies import written

from nest_studio.cli import run

BUYING = """
schema = 1
name = "Small"
scenario = "cluster.toml"

[design]
families = ["spine-leaf", "rail-only", "torus"]
ratios = [1.0, 4.0]
nics_per_node = [2, 8]
phases = [64, 128]
"""


@pytest.fixture
def ran(tmp_path, monkeypatch, capsys):
    file = written(tmp_path, BUYING)
    monkeypatch.setenv("NEST_STUDIO_DATABASE", f"sqlite:///{tmp_path}/store.sqlite")

    def command(*more):
        assert run(["design", str(file), "--workers", "1", *more]) == 0
        return capsys.readouterr().out

    return command


def test_the_command_says_the_set_its_certificate_and_what_it_rests_on(ran):
    found = json.loads(ran("--json"))
    proof = found["certificate"]
    fates = ("planned", "bounded", "infeasible", "left")
    assert found["designs"] == proof["designs"] == sum(proof[fate] for fate in fates)
    assert proof["proven"] is True
    assert found["choice"] == found["pareto"][0]["name"]
    for one in found["pareto"]:
        assert {"name", "price_usd", "power_w", "days", "plan", "rank", "ties"} <= set(one)
        assert one["days_range"][0] < one["days"] < one["days_range"][1]
    assert len(found["planned"]) == proof["planned"]
    assert len(found["refused"]) == proof["infeasible"]
    assert {way["design"] for way in found["growth"]} <= {one["name"] for one in found["pareto"]}
    assert found["sentences"]
    assert sum(found["sensitivity"]["wins"]) == pytest.approx(1.0)


@pytest.mark.check
def test_its_text_has_a_line_for_every_member_and_way(ran):
    found = json.loads(ran("--json"))
    text = ran()
    for one in found["pareto"]:
        assert one["name"] in text
    assert "no other beats these" in text
    assert text.count("as small as it can be") == sum(
        way["how"] == "as small as it can be" for way in found["growth"]
    )
