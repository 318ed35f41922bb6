"""Fixed placements: how layers are split, what each order of stages pays, why one is refused."""

from __future__ import annotations

import pytest
from published_tiny import tiny

from nest_core.paper.published import ArtifactBaseline, StageOrder, evaluate, parse_instance
from nest_core.paper.published.baselines import partition


def _baseline(
    pipeline: int = 2,
    data: int = 1,
    tensor: int = 1,
    layers: int = 2,
    sizes: tuple[int, ...] | None = None,
) -> ArtifactBaseline:
    return ArtifactBaseline("Manual", pipeline, data, tensor, layers, sizes)


@pytest.mark.parametrize(
    ("baseline", "count", "stages"),
    [
        # The embedding counts as a layer, so the last stage is one longer.
        (_baseline(4, layers=8), 9, ((0, 2), (2, 4), (4, 6), (6, 9))),
        (_baseline(3, layers=8), 9, ((0, 3), (3, 6), (6, 9))),
        # ceil(8 / 5) = 2 layers run out before the stages do.
        (_baseline(6, layers=8), 9, ((0, 2), (2, 4), (4, 6), (6, 8), (8, 8), (8, 9))),
        (_baseline(1, layers=8), 9, ((0, 9),)),
        (_baseline(3, layers=8, sizes=(1, 3, 4)), 9, ((0, 1), (1, 4), (4, 9))),
    ],
)
def test_split(baseline: ArtifactBaseline, count: int, stages: tuple[tuple[int, int], ...]) -> None:
    assert partition(baseline, count) == stages


def test_both_orders_by_hand() -> None:
    instance = parse_instance(tiny())
    # [-1 | 0 1], priced as in test_published_solver: 28 * 5.
    right = evaluate(instance, _baseline(), StageOrder.RIGHT)
    assert right.time_per_batch == pytest.approx(140, rel=1e-12)
    assert right.throughput == pytest.approx(4096 / 140, rel=1e-12)
    # The last stage recomputes too: 10 + 8 forward, 10 again, 10 back.
    published = evaluate(instance, _baseline(), StageOrder.AS_PUBLISHED)
    assert published.time_per_batch == pytest.approx(38 * 5, rel=1e-12)


def test_the_reversed_order_charges_the_last_stage_for_the_stash() -> None:
    # 600 bytes and one micro-batch of 40 that enters it.
    instance = parse_instance(tiny(maxMemoryPerDevice=600))
    assert evaluate(instance, _baseline(), StageOrder.RIGHT).feasible
    refused = evaluate(instance, _baseline(), StageOrder.AS_PUBLISHED)
    assert refused.reason == "Memory: stage 2 of 2 needs 640 B per device, 600 B available."
    assert (refused.feasible, refused.time_per_batch, refused.throughput) == (False, None, None)


def test_the_reversed_order_synchronises_the_last_stage() -> None:
    document = tiny(maxDevices=4, devices_per_level=[2, 2])
    times = {
        order: evaluate(parse_instance(document), _baseline(data=2), order).time_per_batch
        for order in StageOrder
    }
    # Level 0 joins the stages (40 / 20 + 0.5 = 2.5), level 1 the replicas.
    # The first stage has 10 bytes of parameters, the last 50.
    for order, load, weights in (
        (StageOrder.RIGHT, 2.5 + 8 + 10, 10),
        (StageOrder.AS_PUBLISHED, 2.5 + 8 + 20, 50),
    ):
        sync = (0.5 + weights / 20) + 2 * (1 + weights / 10)
        assert times[order] == pytest.approx(load * 3 + sync, rel=1e-12)


def test_one_stage_has_no_order() -> None:
    instance = parse_instance(tiny())
    for order in StageOrder:
        found = evaluate(instance, _baseline(1, 2), order).time_per_batch
        assert found == pytest.approx(59.5, rel=1e-12)


@pytest.mark.parametrize(
    ("baseline", "changes", "reason"),
    [
        (_baseline(tensor=2), {}, "Width: no layers for tensor width 2 (1 exist)."),
        (_baseline(2, 2), {}, "Devices: 4 needed, 2 available."),
        (_baseline(1, 2), {"mbsInBatch": 1}, "Batch: 2 replicas for 1 micro-batches."),
        (
            _baseline(3, sizes=(1, 0, 1)),
            {"maxDevices": 4, "devices_per_level": [2, 2]},
            "Layers: stage 2 of 3 would hold none.",
        ),
        (
            _baseline(1),
            {"maxMemoryPerDevice": 700},
            "Memory: stage 1 of 1 needs 720 B per device, 700 B available.",
        ),
    ],
)
@pytest.mark.parametrize("order", StageOrder)
def test_refusals_say_why(
    baseline: ArtifactBaseline, changes: dict[str, object], reason: str, order: StageOrder
) -> None:
    evaluation = evaluate(parse_instance(tiny(**changes)), baseline, order)
    assert not evaluation.feasible
    assert evaluation.reason == reason
