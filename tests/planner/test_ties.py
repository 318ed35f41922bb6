"""Plans that are equally fast: which of them is the answer.

By the oracle (``oracle.py``), which lists every plan of small instances.
"""

from __future__ import annotations

from collections import Counter

import pytest
from oracle import Choice, Found
from planner_instances import even_instance, level_instance

from nest_core.planner import search


def _tied(ranking: list[Found]) -> list[Choice]:
    best = ranking[0].seconds
    return [plan.choice for plan in ranking if plan.seconds <= best * (1 + 1e-12)]


def _answer(instance) -> Choice:
    found = search(instance.problem, instance.space).best
    assert found is not None
    return Choice(*(getattr(found.plan.point, name) for name in Choice._fields))


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 200), marks=pytest.mark.check)], ids=str
)
def test_ties_go_to_few_devices_then_shallow_pipelines_then_small_widths(seeds):
    decided: Counter[str] = Counter()
    for seed in seeds:
        instance = even_instance(seed)
        tied = _tied(instance.oracle.ranking())
        least = min(choice.devices for choice in tied)
        fewest = [choice for choice in tied if choice.devices == least]
        shallow = [choice for choice in fewest if choice.pp == min(other.pp for other in fewest)]
        decided["devices"] += len(fewest) < len(tied)
        decided["pipeline"] += len(shallow) < len(fewest)
        decided["width"] += len({choice.tp for choice in shallow}) > 1
        assert _answer(instance) == min(shallow), (seed, tied)
    rules = ("devices", "pipeline", "width")
    assert min(decided[rule] for rule in rules) >= 0.07 * len(seeds), decided


def test_few_devices_come_before_a_shallow_pipeline():
    """Two stages on two devices are as fast as tp = 4 on four; tp = 1 without stages is slower."""
    instance = level_instance()
    tied = _tied(instance.oracle.ranking())
    assert [(choice.devices, choice.pp) for choice in tied] == [(2, 2), (4, 1)]
    assert _answer(instance) == tied[0]
