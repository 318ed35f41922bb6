"""Jobs that share links: what each takes, and what it takes at most."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from small_fabric import job, small

from nest_core.costs.overlap import IDEAL_OVERLAP, NO_OVERLAP
from nest_core.documents import InputError
from nest_core.network import collapse
from nest_core.simulator import simulate
from nest_core.studies.neighbours import simulate_jobs

PLANS = (
    "dp=4,tp=1,pp=1,micro_batch=4,zero=1",
    "dp=2,tp=2,pp=1,micro_batch=2,zero=1",
    "dp=2,tp=1,pp=2,micro_batch=4,zero=0",
    "dp=1,tp=2,pp=2,micro_batch=4,zero=0",
    "dp=4,tp=1,pp=1,micro_batch=2,zero=3",
)


@pytest.fixture(scope="module")
def values():
    return small()


@pytest.fixture(scope="module")
def network(values):
    return collapse(values.fabric)


@pytest.mark.parametrize("words", PLANS)
def test_jobs_that_share_no_link_take_what_they_take_undisturbed(values, network, words):
    jobs = [job(values, network, words, [0, 1, 2, 3]), job(values, network, words, [4, 5, 6, 7])]
    undisturbed = [simulate(*one).seconds for one in jobs]
    taken = simulate_jobs(jobs)
    assert taken.seconds == pytest.approx(undisturbed, rel=1e-9)
    assert taken.undisturbed_s == pytest.approx(undisturbed, rel=1e-9)
    assert (taken.most_s == taken.undisturbed_s).all()


@pytest.mark.parametrize("overlap", [NO_OVERLAP, IDEAL_OVERLAP])
@pytest.mark.parametrize("words", PLANS)
def test_equal_jobs_in_step_have_half_of_every_link_that_they_share(
    values, network, words, overlap
):
    """Each has a node under either leaf: all uplinks carry the same of both at the same time."""
    jobs = [job(values, network, words, at) for at in ([0, 1, 4, 5], [2, 3, 6, 7])]
    jobs = [(replace(problem, overlap=overlap), plan) for problem, plan in jobs]
    halved = np.where(network.link_map.tier == 2, 0.5, 1.0)
    half = replace(network, link_map=network.link_map.scaled(halved))
    expected = simulate(replace(jobs[0][0], network=half), jobs[0][1]).seconds
    taken = simulate_jobs(jobs)
    assert taken.seconds == pytest.approx([expected, expected], rel=1e-6)
    assert (taken.most_s >= expected * (1 - 1e-9)).all()


def test_a_short_job_meets_a_long_one_all_the_time():
    """Its mean is of many iterations; the long one is slowed by them all."""
    values = small()
    network = collapse(values.fabric)
    long = small({"workload.global_batch_sequences": 512})
    jobs = [
        job(values, network, PLANS[0], [0, 1, 4, 5]),
        job(long, network, PLANS[4], [2, 3, 6, 7]),
    ]
    taken = simulate_jobs(jobs)
    assert taken.undisturbed_s[1] > 4 * taken.undisturbed_s[0]
    slowdown = taken.seconds / taken.undisturbed_s
    assert (slowdown > 1.0).all()
    assert (taken.seconds <= taken.most_s * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(12))
def test_no_mix_passes_its_bound(seed):
    """Random jobs at random places on uplinks of all widths."""
    rng = np.random.default_rng(seed)
    ratio = float(rng.choice([1.0, 2.0, 4.0]))
    values = small(oversubscription=[ratio])
    network = collapse(values.fabric)
    devices = rng.permutation(16).tolist()
    jobs = []
    for n in range(int(rng.integers(2, 5))):
        batch = int(rng.choice([16, 32, 64]))
        of = small({"workload.global_batch_sequences": batch}, oversubscription=[ratio])
        problem, plan = job(of, network, str(rng.choice(PLANS)), devices[4 * n : 4 * n + 4])
        overlap = (NO_OVERLAP, IDEAL_OVERLAP)[int(rng.integers(2))]
        jobs.append((replace(problem, overlap=replace(overlap, slowdown=0.0)), plan))
    taken = simulate_jobs(jobs)
    assert (taken.seconds <= taken.most_s * (1 + 1e-9)).all()
    assert (taken.seconds >= taken.undisturbed_s * (1 - 1e-6)).all()


def test_the_bound_holds_where_hidden_calls_slow_compute_down(values, network):
    """Whatever of it runs beside calls takes as much longer."""
    overlap = replace(IDEAL_OVERLAP, slowdown=0.2)
    jobs = [job(values, network, PLANS[0], at) for at in ([0, 1, 4, 5], [2, 3, 6, 7])]
    taken = simulate_jobs([(replace(problem, overlap=overlap), plan) for problem, plan in jobs])
    assert (taken.seconds <= taken.most_s * (1 + 1e-9)).all()


def test_jobs_that_share_a_device_are_refused(values, network):
    jobs = [job(values, network, PLANS[0], at) for at in ([0, 1, 2, 3], [3, 4, 5, 6])]
    with pytest.raises(InputError, match=re.escape("jobs must have devices of their own")):
        simulate_jobs(jobs)
