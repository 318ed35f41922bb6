"""A device that takes longer for its work."""

from __future__ import annotations

import numpy as np
import pytest
from small_fabric import job, small

from nest_core.network import collapse
from nest_core.simulator import simulate

PLANS = ("dp=4,tp=1,pp=1,micro_batch=4,zero=1", "dp=2,tp=1,pp=2,micro_batch=4,zero=0")


@pytest.fixture(scope="module")
def values():
    return small()


@pytest.mark.parametrize("words", PLANS)
@pytest.mark.parametrize("device", range(4))
def test_classes_of_slow_and_other_devices_are_the_whole(values, words, device):
    """Where every device is followed by itself the same comes out."""
    problem, plan = job(values, collapse(values.fabric), words, [0, 1, 4, 5])
    pace = np.ones(16)
    pace[plan.point.device_order[device]] = 1.5
    by_class = simulate(problem, plan, pace=pace)
    assert by_class.seconds == pytest.approx(
        simulate(problem, plan, pace=pace, is_whole=True).seconds, rel=1e-9
    )
    healthy = simulate(problem, plan).seconds
    assert healthy < by_class.seconds <= 1.5 * healthy


def test_without_messages_work_takes_as_much_longer(values):
    words = "dp=1,tp=1,pp=1,micro_batch=4,zero=0"
    problem, plan = job(values, collapse(values.fabric), words, [3])
    healthy = simulate(problem, plan).seconds
    pace = np.full(16, 2.0)
    # Hosts launch as fast as before.
    assert simulate(problem, plan, pace=pace).seconds == pytest.approx(2 * healthy, rel=1e-3)


def test_idle_devices_may_be_as_slow_as_they_like(values):
    problem, plan = job(values, collapse(values.fabric), PLANS[0], [0, 1, 4, 5])
    pace = np.where(np.isin(np.arange(16), [0, 1, 4, 5]), 1.0, 9.0)
    assert simulate(problem, plan, pace=pace).seconds == simulate(problem, plan).seconds
