"""Problems under draws of their network's parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nest_core.costs import price
from nest_core.costs.network_draw import routing_of, under
from nest_core.costs.parse import read_plan
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import build_fabric
from nest_core.hardware.network_spread import CENTRE, NetworkParameters, load_spread
from nest_core.network import collapse
from nest_core.scenario import load_scenario


def cluster(nics: int, ratio: float, routing: str):
    clos = {
        "devices": 128, "devices_per_node": 8, "nics_per_node": nics, "nic_bandwidth_GBps": 50.0,
        "radix": 64, "tiers": 2, "oversubscription": [ratio], "hop_latency_us": 0.6,
    }  # fmt: skip
    inside = {"bandwidth_GBps": 450.0, "latency_us": 0.5}
    document = {"schema": 1, "name": "x", "kind": "leaf_spine", "routing": routing}
    return collapse(
        build_fabric(checked(FabricFile, document | {"clos": clos, "intra_node": inside}))
    )


@pytest.fixture(scope="module")
def job():
    scenario = load_scenario("llama2-7b-64-h100")
    return scenario.problem()


def seconds(problem, network, plan: str, parameters=CENTRE) -> float:
    at = under(replace(problem, network=network), parameters)
    given = read_plan(plan, problem.layers, network.devices)
    return price(at, given).iteration_s


def test_the_centre_changes_nothing(job):
    assert under(job, CENTRE) is job
    assert under(job, NetworkParameters(uplinks=1.0)) is job


@pytest.mark.parametrize("factor", ["reach", "uplinks", "overlap_dp"])
def test_a_better_network_is_never_slower(job, factor):
    network = cluster(8, 4.0, "ecmp")
    found = [
        seconds(job, network, "dp=128,zero=3", parameters=NetworkParameters(**{factor: value}))
        for value in (0.5, 0.8, 1.0, 1.1)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_draws_of_the_network_alone_change_which_of_two_fabrics_wins(job):
    """Half the NICs at 1:1 against all of them behind 4:1, both hashed: the same job and plan.

    With the parameters of compute alone one of them would win in every draw, and a person would be
    told that it is certain.
    """
    few, thin = cluster(4, 1.0, "ecmp"), cluster(8, 4.0, "ecmp")
    assert routing_of(few) == "ecmp"
    assert routing_of(cluster(8, 4.0, "adaptive")) == "adaptive"
    plan = "dp=16,tp=8,zero=1"
    rng, spread = np.random.default_rng(0), load_spread()
    spreads = spread.of_curve(job.software.between).spread, dict(spread.spreads)["uplinks.ecmp"]
    factors = np.exp(rng.standard_normal((24, 2)) * spreads)
    drawn = [NetworkParameters(reach=reach, uplinks=uplinks) for reach, uplinks in factors]
    wins = [seconds(job, few, plan, at) < seconds(job, thin, plan, at) for at in drawn]
    assert seconds(job, few, plan) < seconds(job, thin, plan)
    assert 2 <= wins.count(False) <= 22
