"""The search on every kind of fabric: proven, and no excluded point beats its bound.

The enumerations run on trees; here the other kinds' wires meet the planner's bounds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.costs import NO_OVERLAP, price
from nest_core.costs.parse import read_plan
from nest_core.planner import audit, search
from nest_core.scenario import load_scenario

KINDS = [
    "mi300x-mesh-64", "dgx1-v100-64", "torus-16x16", "mesh-8x8", "tpu-v4-4x4x8-twisted",
    "rail-only-1024", "dgx-superpod-h100-as-built", "unequal-racks-88", "dragonfly-1056", "drawn-8",
]  # fmt: skip


PLAIN = ("search.cp=1", "search.schedule='1f1b'")


@pytest.mark.parametrize("fabric", KINDS)
def test_no_excluded_point_is_faster(fabric):
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [f"fabric='{fabric}'", "workload.global_batch_sequences=16", "search.zero=[0, 1, 3]"],
    )
    problem = scenario.problem()
    result = search(problem, scenario.space)
    assert result.best is not None
    assert result.certificate.proven
    checked = audit(problem, scenario.space, result, 40, seed=2)
    assert checked.solved + checked.infeasible == 40
    assert not checked.violations


@pytest.mark.parametrize("fabric", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "dp=2,cp=2,tp=2,ep=4,zero=3,order=tp-dp-cp-pp",
        "dp=2,cp=2,pp=2,ep=2,zero=1,schedule=interleaved,interleave=2",
    ],
)
def test_context_and_experts_have_a_price(fabric, text):
    """Rings, exchanges and chunks on all wires; what leaves a device takes its time there."""
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [f"fabric='{fabric}'", "workload.model='mixtral-8x7b'",
         "workload.global_batch_sequences=16"],
    )  # fmt: skip
    problem = replace(scenario.problem(), overlap=NO_OVERLAP)
    report = price(problem, read_plan(text, problem.layers, problem.network.devices))
    point = report.plan.point
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep)
    port = problem.network.wires.port_Bps * problem.software.reach
    sent = sum(
        (1 - 1 / degree) * table.calls[axis].bytes.sum() / port
        for axis, degree in (("cp", point.cp), ("ep", point.ep))
    )
    loads = sum(stage.micro_batch_s for stage in report.stages)
    assert table.compute_s.sum() + sent <= loads < float("inf")


@pytest.mark.parametrize("order", ["snake", "hilbert"])
def test_a_device_order_on_offer_never_hurts(order):
    """More to choose from; on a torus a curve may place groups closer."""
    asked = ["fabric='torus-16x16'", "workload.global_batch_sequences=64", "search.zero=1"]
    seconds = []
    for orders in (["natural"], ["natural", order]):
        scenario = load_scenario(
            "llama2-7b-64-h100", [*asked, *PLAIN, f"search.device_order={orders}"]
        )
        result = search(scenario.problem(), scenario.space)
        assert result.best is not None
        seconds.append(result.best.iteration_s)
    assert seconds[1] <= seconds[0]


def test_one_drawn_device_is_a_fabric():
    """It sends to nobody; the model fits or it does not."""
    alone = "fabric={kind='graph', element=[{id='only', role='device'}]}"
    scenario = load_scenario("llama2-7b-64-h100", [alone, "accelerator.memory_GiB=1000.0"])
    result = search(scenario.problem(), scenario.space)
    assert result.best is not None
    assert result.best.plan.point.devices_used == 1
