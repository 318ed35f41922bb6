"""Collective algorithms: strategies from a network and groups to stages of simultaneous flows.

`ALGORITHMS` maps every operation to its algorithms by name; each is a function, so that others
can be added. All count flows on ``network.link_map`` and so know of every kind of fabric only where
its links are.

The buffer ``m`` is the per-rank input, for all-gather the per-rank output.
"""

from functools import partial

from nest_core.documents.errors import require
from nest_core.network.algorithms.schedules import (
    MOST_FLOWS,
    MOST_IN_ALL,
    Stage,
    backwards,
    chain,
    halving,
    neighbours,
    onwards,
    pairwise,
    ring,
    ring_all_to_all,
    ring_bidirectional,
    tree,
)
from nest_core.network.algorithms.strategies import (
    Strategy,
    at_once,
    double_binary_tree,
    everyone,
    hierarchical,
    hierarchical_at_once,
    in_network,
    multi_rail_broadcast,
    multi_rail_reduce_scatter,
    multi_ring,
    nvls_tree,
    one_by_one,
)
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray

__all__ = [
    "ALGORITHMS",
    "IN_NETWORK",
    "MOST_FLOWS",
    "MOST_IN_ALL",
    "OPS",
    "Stage",
    "Strategy",
    "algorithm_stages",
    "check_op",
]

REDUCE_SCATTERS: dict[str, Strategy] = {
    "ring": everyone(ring),
    "ring_bidirectional": everyone(ring_bidirectional),
    "halving_doubling": everyone(halving),
    "halving_doubling_far": everyone(partial(halving, far=True)),
    "direct": at_once,
    "hierarchical_ring": hierarchical(ring),
    "hierarchical_ring_bidirectional": hierarchical(ring_bidirectional),
    "hierarchical_halving": hierarchical(halving),
    "multi_rail": multi_rail_reduce_scatter,
    "multi_ring": multi_ring,
}
"""Reduce-scatters; an all-gather is one backwards, an all-reduce both."""


TURNED = frozenset({"halving_doubling", "halving_doubling_far", "direct", "hierarchical_halving"})
"""Reduce-scatters whose all-gather sends the other way what they received."""


def _gather(name: str, scatter: Strategy) -> Strategy:
    return lambda network, groups: [
        backwards(stage, turned=name in TURNED) for stage in reversed(scatter(network, groups))
    ]


def _reduce(name: str, scatter: Strategy) -> Strategy:
    """Scatter through the stages, turn round in the last, gather back."""

    def strategy(network: Network, groups: IntArray) -> list[Stage]:
        stages = scatter(network, groups)
        if not stages:
            return []
        back = [backwards(stage, turned=name in TURNED) for stage in reversed(stages)]
        return [*stages[:-1], [*stages[-1], *back[0]], *back[1:]]

    return strategy


ALGORITHMS: dict[str, dict[str, Strategy]] = {
    "all_reduce": {
        **{name: _reduce(name, scatter) for name, scatter in REDUCE_SCATTERS.items()},
        "double_binary_tree": double_binary_tree,
        "nvls_tree": nvls_tree,
        "in_network": in_network,
    },
    "all_gather": {name: _gather(name, scatter) for name, scatter in REDUCE_SCATTERS.items()},
    "reduce_scatter": REDUCE_SCATTERS,
    "all_to_all": {
        "direct": at_once,
        "pairwise": one_by_one,
        "ring": everyone(ring_all_to_all),
        "hierarchical_direct": hierarchical_at_once,
        "hierarchical_pairwise": hierarchical(pairwise, scattered=False),
        "hierarchical_ring": hierarchical(ring_all_to_all, scattered=False),
    },
    "broadcast": {
        "chain": everyone(chain),
        "binary_tree": everyone(tree),
        "multi_rail": multi_rail_broadcast,
    },
    "point_to_point": {"direct": everyone(onwards)},
    "send_receive": {"direct": everyone(neighbours)},
}
"""Operation to algorithm to strategy."""

OPS = tuple(ALGORITHMS)


def check_op(op: str) -> None:
    """Refuse what is no collective."""
    require(op in ALGORITHMS, "op", "must be one of " + ", ".join(OPS), op, "choose one")


MOST_CROSSINGS = 20_000_000
"""Links that the flows of an exchange cross on a torus, where a flow crosses many."""

IN_NETWORK = frozenset({"nvls_tree", "in_network"})
"""Algorithms that need switches that reduce."""


def algorithm_stages(op: str, algorithm: str, network: Network, groups: IntArray) -> list[Stage]:
    """Stages of an algorithm for all groups at once; within a stage phases follow one another.

    Raises
    ------
    InputError
        For an unknown name, or where the algorithm does not suit fabric or groups.
    """
    check_op(op)
    algorithms = ALGORITHMS[op]
    require(
        algorithm in algorithms,
        "algorithm",
        f"must be one that {op} has: " + ", ".join(algorithms),
        algorithm,
        "choose one",
    )
    if network.torus is not None and algorithm in ("direct", "pairwise"):
        count, size = groups.shape
        crossings = count * size * (size - 1) * network.torus.diameter // 2
        require(
            crossings <= MOST_CROSSINGS,
            "algorithm",
            f"must not cross more than about {MOST_CROSSINGS:,} links",
            crossings,
            "use a hierarchical one, or smaller or fewer groups",
        )
    return algorithms[algorithm](network, groups)
