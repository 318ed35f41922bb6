"""Strategies as rewrites: any order, once or twice, one's own among them; and their errors.

That the rewritten graphs are right is shown in `test_equivalence`, what they cost in
`test_shares` and `test_collectives`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from small_models import DENSE, KINDS, small
from strategy_cases import BATCH, TOKENS, Run, strategy_of

from nest_core.documents.errors import InputError
from nest_core.workload import Graph, Node, Split, Strategy, chain, layer_graph, load_trace
from nest_core.workload.models import sizes
from nest_core.workload.strategies import STRATEGIES, connected, register, rewritten


def _as_set(graph: Graph) -> tuple[frozenset[Node], str]:
    """Nodes whatever their order, and that of the names of what they divide."""

    def key(entry: Split) -> tuple[str, str, float]:
        return entry.symbol, entry.axis, entry.ranks

    nodes = (replace(node, split=tuple(sorted(node.split, key=key))) for node in graph.nodes)
    return frozenset(nodes), graph.output.name


ORDER_CASES = [
    {"tp": 2, "sp": True, "cp": 2, "ep": 2},
    {"tp": 4, "cp": 2, "ep": 2, "attention": "unfused"},
    {"tp": 2, "sp": True, "ep": 4, "etp": 1, "attention": "unfused"},
    {"tp": 2, "ep": 2, "cp": 2, "imbalance": 1.5, "context": "all_gather"},
    {"sp": True, "tp": 4, "ep": 2, "capacity": 1.25},
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_any_order_of_strategies_gives_the_same_graph(family, kind):
    """All orders of the divisions; the kernels' rewrites, in both orders, move through them."""
    model = small(family)
    at = sizes(model, BATCH, TOKENS)
    trace = load_trace(family)[kind]
    divisions = ("tp", "sp", "cp", "ep")
    kernels = tuple(name for name in STRATEGIES if name not in divisions)
    for number, case in enumerate(ORDER_CASES):
        strategy = strategy_of(case)
        orders = [
            order[:cut] + kernels[:: 1 if turn % 2 else -1] + order[cut:]
            for turn, order in enumerate(permutations(divisions))
            for cut in [(turn + number) % 5]
        ]
        expected = _as_set(rewritten(trace, strategy, at))
        for order in orders:
            graph = trace
            for name in order:
                graph = STRATEGIES[name](graph, strategy, at)
            assert _as_set(graph) == expected, order


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_connecting_twice_changes_nothing(family, kind):
    for case in ORDER_CASES:
        strategy = strategy_of(case)
        graph = layer_graph(small(family), kind, strategy)
        assert connected(graph, strategy.context) == graph


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_one_rank_runs_the_original(family, kind):
    """No degree above 1: no splits, no collectives, and with separate kernels the trace itself."""
    alone = strategy_of({"fused": False, "joined": False})
    assert layer_graph(small(family), kind, alone) == small(family).trace[kind]
    for node in layer_graph(small(family), kind, strategy_of({"sp": True})).nodes:
        assert node.op != "collective"
        assert not node.split


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_graphs_stay_in_order(family, kind):
    """Every node stands after what it reads, but for a loss's exchanges; names are unique."""
    for case in ORDER_CASES:
        graph = layer_graph(small(family), kind, strategy_of(case))
        seen: set[str] = set()
        for node in graph.nodes:
            if not node.name.startswith("loss."):
                assert set(node.inputs) <= seen, node.name
            assert node.name not in seen
            seen.add(node.name)
        read = {name for node in graph.nodes for name in node.inputs}
        idle = {node.name for node in graph.nodes} - read - {graph.output.name}
        assert idle <= {"loss.maximum", "loss.sum", "loss.target"}


@pytest.fixture
def own_strategy() -> Iterator[str]:
    """A registered strategy that halves the vocabulary and nothing else."""

    def halved(graph: Graph, strategy: Strategy, at: Any) -> Graph:
        split = (Split("vocabulary", "tp", 2.0),)
        nodes = tuple(
            replace(node, split=split)
            if "vocabulary" in node.symbols or node.op == "loss"
            else node
            for node in graph.nodes
        )
        return connected(Graph(graph.kind, nodes), strategy.context)

    register("halved vocabulary", halved)
    yield "halved vocabulary"
    STRATEGIES.pop("halved vocabulary", None)


def test_a_strategy_of_ones_own_counts_from_when_it_is_registered(request):
    """Graphs and chains that were made before do not stand in for those that come after."""
    model, strategy = small("llama"), strategy_of({})
    before, chained = layer_graph(model, "head", strategy), chain(model, strategy)
    request.getfixturevalue("own_strategy")
    assert layer_graph(model, "head", strategy) != before
    assert chain(model, strategy) != chained
    del STRATEGIES["halved vocabulary"]
    assert layer_graph(model, "head", strategy) == before
    assert chain(model, strategy) == chained


@pytest.mark.usefixtures("torch_installed")
def test_a_strategy_of_ones_own_is_applied_and_connected(own_strategy):
    """Registered under a name, it runs last and gets its collectives; the result is right."""
    assert list(STRATEGIES)[-1] == own_strategy
    for kind in ("embedding", "head"):
        run = Run("llama", kind)
        at = sizes(run.model, BATCH, TOKENS)
        graph = rewritten(run.original, strategy_of({}), at)
        assert any(node.op == "collective" for node in graph.nodes)
        run.compare(graph, strategy_of({"tp": 2}))


# Errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "changes", "case", "message"),
    [
        ("llama", {}, {"tp": 3}, "tp must divide the model's 4 heads, but is 3: choose a divisor."),
        (
            "llama", {"heads": 12, "kv_heads": 6}, {"tp": 4},
            "tp must divide the model's 6 key and value heads or be a multiple of them, "
            "but is 4: choose another degree.",
        ),
        ("gpt", {}, {"cp": 3}, "cp must divide the sequence of 16 tokens, but is 3: choose a "
                               "divisor."),
        ("mixtral", {}, {"ep": 3}, "ep must divide the model's 4 experts, but is 3: choose a "
                                   "divisor."),
    ],
)  # fmt: skip
def test_degrees_that_do_not_divide_are_refused_in_one_sentence(family, changes, case, message):
    with pytest.raises(InputError) as caught:
        chain(small(family, **changes), strategy_of(case))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({name: 0}, f"strategy.{name} must be at least 1, but is 0: correct it.")
            for name in ("tp", "cp", "ep", "micro_batch", "sequence")
        ),
        ({"tp": -2}, "strategy.tp must be at least 1, but is -2: correct it."),
        ({"imbalance": 0.5}, "strategy.imbalance must be at least 1, but is 0.5: 1 is balanced."),
        (
            {"capacity": -1.0},
            "strategy.capacity must be 0 or at least 0.01, but is -1.0: 0 is dropless.",
        ),
        (
            {"capacity": 1e-320},
            "strategy.capacity must be 0 or at least 0.01, but is 1e-320: 0 is dropless.",
        ),
    ],
)
def test_strategies_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError) as caught:
        Strategy(**changes)
    assert str(caught.value) == message


def test_dense_layers_ignore_expert_parallelism():
    """Its ranks have batches of their own; a dense layer is as it was."""
    for family in DENSE:
        for kind in ("embedding", "block", "head"):
            graph = layer_graph(small(family), kind, strategy_of({"ep": 2}))
            assert not any(entry.axis == "ep" for node in graph.nodes for entry in node.split)
