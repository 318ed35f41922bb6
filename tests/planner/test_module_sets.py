"""Sets of modules as further recomputations: the search against every plan of small cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_instances import joint_instance
from planner_instances import Instance

from nest_core.costs import Calls, LayerTable, price
from nest_core.planner import search
from nest_core.workload.recomputation import ordered

SETS = ("mlp", "core_attn+moe_act")


def _rows(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Rows of the sets put in before full, each between nothing and full, layer by layer."""
    none, full = values[0], values[-1]
    return np.stack([*values[:-1], *(none + share * (full - none) for share in shares), full])


def opened(seed: int) -> Instance:
    """A joint instance whose stages may recompute sets of modules too, and little beside them."""
    instance = joint_instance(seed)
    base = instance.problem.table
    dice = np.random.default_rng([seed, 77])
    layers = instance.problem.layers
    frees, costs = dice.uniform(0.2, 1.1, (2, layers)), dice.uniform(0.0, 0.6, (2, layers))

    def table(*key: int) -> LayerTable:
        plain = base(*key)
        calls = {
            axis: Calls(
                call.kind,
                call.number,
                call.bytes,
                _rows(call.replay_number, costs),
                _rows(call.replay_bytes, costs),
            )
            for axis, call in plain.calls.items()
        }
        return replace(
            plain,
            replay_s=_rows(plain.replay_s, costs),
            launch_s=_rows(plain.launch_s, costs),
            calls=calls,
            kept_bytes=np.maximum(_rows(plain.kept_bytes, frees), 0.0),
            working_bytes=_rows(plain.working_bytes, frees),
        )

    problem = replace(instance.problem, table=table, recomputations=ordered(SETS))
    space = replace(instance.space, recompute=("none", *SETS))
    return replace(instance, problem=problem, space=space)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((12, 16, 18, 22, 23), id="quick"),
        pytest.param((13, 14, 15, 17, 19, 20, 21, 23), id="more", marks=pytest.mark.check),
    ],
)
def solved(request):
    found = []
    for seed in request.param:
        instance = opened(seed)
        found.append((instance, instance.oracle, search(instance.problem, instance.space)))
    return found


def test_the_plan_is_the_best_of_all_with_sets_of_modules(solved):
    for instance, oracle, result in solved:
        ranking = oracle.ranking()
        if not ranking:
            assert result.best is None, instance.seed
            continue
        assert result.best is not None, f"seed {instance.seed}: missed {ranking[0]}"
        assert result.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9)
        repeated = price(instance.problem, result.best.plan)
        assert repeated.iteration_s == result.best.iteration_s


def test_sets_of_modules_are_worth_their_choice_somewhere(solved):
    used = {name for _, _, result in solved if result.best for name in result.best.plan.recompute}
    assert set(SETS) <= used
