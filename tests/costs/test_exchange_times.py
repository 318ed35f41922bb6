"""Seconds of a layer's collectives on a fabric: those that plans of it are priced with."""

from __future__ import annotations

import pytest

from nest_core.costs import Point, links
from nest_core.costs.anatomy import anatomy
from nest_core.costs.exchange_times import exchange_times
from nest_core.costs.layout import AXES
from nest_core.documents.errors import InputError
from nest_core.hardware import load_accelerator
from nest_core.hardware.stacks import default_stack, under
from nest_core.report.explain.layer_summary import exchange_finding, exchange_rows
from nest_core.scenario.job import Job
from nest_core.teaching.lessons.figure import noded
from nest_core.workload import load_model


def _layer(tp, cp, sp, nic_GBps=50, nodes=4):
    device = load_accelerator("h100-80gb")
    device = under(device, default_stack(device.family.name), "bf16")
    job = Job(device, default_stack("h100"), load_model("llama3-70b"), 4096, 1, "bf16", "adam")
    found = anatomy(job.model, "block", job.strategy(tp, sp, 1, cp, 1, tp), device, "bf16", "none")
    return job.problem_on(noded(nodes, 8, nic_GBps)), found


@pytest.mark.parametrize(("tp", "cp", "sp"), [(8, 1, True), (8, 1, False), (4, 4, True)])
def test_they_add_up_to_what_a_plan_pays_for_a_block(tp, cp, sp):
    problem, found = _layer(tp, cp, sp)
    times = exchange_times(problem, found)
    point = Point(tp, sp, 32 // (tp * cp), 1, 1, 0, AXES, cp=cp)
    shared, table = links(problem, point), problem.table(tp, sp, 1, cp, 1, tp)
    for axis, calls in table.calls.items():
        number, size = float(calls.number[1]), float(calls.bytes[1])
        priced = number * float(shared.time(axis, calls.kind).seconds(size / number)[0])
        here = [
            time.seconds
            for time, exchange in zip(times, found.exchanges, strict=True)
            if exchange.node.axis == axis
        ]
        assert sum(here) == pytest.approx(priced)


def test_nics_of_half_the_rate_slow_the_groups_that_cross_them_and_no_others():
    fast, slow = (exchange_times(*_layer(4, 4, True, nic)) for nic in (50, 25))
    _, found = _layer(4, 4, True)
    for before, after, exchange in zip(fast, slow, found.exchanges, strict=True):
        inside = exchange.node.axis == "tp"
        assert (after.seconds == pytest.approx(before.seconds)) is inside
        assert (after.seconds > 1.3 * before.seconds) is not inside


def test_words_say_the_seconds_and_their_share():
    problem, found = _layer(8, 1, True)
    times = exchange_times(problem, found)
    total = sum(one.seconds for one in times)
    finding = exchange_finding(found, times)
    assert finding.startswith("4 collectives take ")
    assert f"{100 * total / (total + found.device_s):.3g} % of the layer" in finding
    rows = exchange_rows(found, times)
    assert [float(row["forward, µs"]) for row in rows] == pytest.approx(
        [1e6 * one.forward_s for one in times], rel=5e-3
    )
    assert "forward, µs" not in exchange_rows(found)[0]


def test_ranks_that_no_fabric_has_room_for_are_refused():
    problem, found = _layer(8, 8, True)
    with pytest.raises(InputError, match=r"layer must have ranks that fill the fabric's 32 dev"):
        exchange_times(problem, found)
