"""A sheet holds the built fabric to what ``nest-studio accept`` would hold it to."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from nest_core.report.sheet.words import acceptance_table, accepted_by
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_studio.cli import run


def decided(scenario):
    return SimpleNamespace(best=SimpleNamespace(scenario=scenario))


@pytest.mark.parametrize("fabric", ["h100-spine-leaf-1024-4to1", "dgx-superpod-h100"])
def test_every_tier_has_the_threshold_of_the_command(fabric, capsys):
    """Plans count on less of the network than nccl-tests reach: whole runs never reached that."""
    assert run(["accept", fabric, "--json"]) == 0
    tests = {one["tier"]: one for one in json.loads(capsys.readouterr().out)["tests"]}
    document = scenario_document("llama3-70b-1024-h100")[0] | {"fabric": fabric}
    found = decided(Scenario(document).values)
    rows = acceptance_table(found)
    assert [tier for tier, *_ in rows] == list(tests)
    for tier, rates, _ in rows:
        least, expected = rates.removesuffix(")").split(" GB/s (")
        assert float(least) == pytest.approx(tests[tier]["threshold_Bps"] / 1e9, rel=5e-3)
        assert float(expected) == pytest.approx(tests[tier]["predicted_busbw_Bps"] / 1e9, rel=5e-3)
        assert f" {least} " in accepted_by(found)


def test_a_torus_has_no_hosts_to_run_nccl_tests_on():
    found = decided(load_scenario("llama2-7b-64-tpu-torus"))
    assert (acceptance_table(found), accepted_by(found)) == ((), "")
