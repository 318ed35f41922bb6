"""ZeRO in the published memory model, by hand and by what defines the rule."""

from __future__ import annotations

import itertools

import pytest
from published_tiny import tiny

from benchmarks.paper.zero import Sharding, StageNeed, sharded_bytes, sharding, stage_needs
from nest_core.paper.published import parse_instance
from nest_core.paper.published.costs import StageTables

NEED = StageNeed(parameters=100.0, optimizer=600.0, rest=50.0)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Sharding(0, 1), 850.0),
        (Sharding(1, 2), 100 + 100 + 300 + 50),
        (Sharding(2, 2), 100 + 50 + 300 + 50),
        (Sharding(3, 4), 25 + 25 + 150 + 50),
    ],
)
def test_what_each_stage_divides(how: Sharding, expected: float) -> None:
    assert sharded_bytes(NEED, how) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (850.0, Sharding(0, 1)),
        (849.0, Sharding(1, 2)),
        (549.0, Sharding(2, 2)),
        (499.0, Sharding(3, 2)),
        (449.0, Sharding(1, 4)),
        (51.0, Sharding(3, 1024)),
        (50.0, None),
    ],
)
def test_the_first_rung_that_fits(memory: float, expected: Sharding | None) -> None:
    assert sharding((NEED,), memory) == expected


def test_stages_that_are_sharded_alike_all_fit() -> None:
    needs = tuple(StageNeed(100.0, 0.0, rest) for rest in (0.0, 30.0, 60.0))
    for memory in (150.0, 170.0, 200.0, 260.0):
        how = sharding(needs, memory)
        assert how is not None
        assert all(sharded_bytes(need, how) <= memory for need in needs)
        assert how == sharding(needs[-1:], memory)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("recompute", [True, False])
def test_needs_add_up_to_the_model_s_memory(optimizer: str, recompute: bool) -> None:
    document = tiny(optimizerAlgorithm=optimizer, activationRecomputation=recompute)
    instance = parse_instance(document)
    layers = instance.widths[0]
    tables = StageTables(instance, layers)
    needs = stage_needs(instance, layers)
    for layer, need in enumerate(needs):
        whole = tables.memory(len(needs) - layer, 1)[0, layer]
        assert sharded_bytes(need, Sharding(0, 1)) == pytest.approx(whole)
        assert need.parameters == layers.parameters[layer]
        assert need.optimizer == (6 if optimizer == "Adam" else 0) * layers.parameters[layer]


def test_more_devices_and_stages_never_need_more() -> None:
    for zero, degree in itertools.product((1, 2, 3), (2, 4, 8)):
        need = sharded_bytes(NEED, Sharding(zero, degree))
        assert need <= sharded_bytes(NEED, Sharding(zero - 1, degree if zero > 1 else 1))
        assert need > sharded_bytes(NEED, Sharding(zero, 2 * degree))
