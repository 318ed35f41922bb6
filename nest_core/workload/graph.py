"""Operator graphs of layers, symbolic in their sizes.

A `Graph` is one distinct layer of a model: its operators in execution order, each with the
tensors that it reads, the shape that it writes and the weights that it holds. A dimension is a
product of *symbols* (``hidden``, ``heads``, ``sequence``, …), so one traced graph serves every
model of a family, and a sub-graph strategy is a statement about symbols: tensor parallelism
divides ``heads`` and ``ffn``, sequence parallelism ``sequence``, expert parallelism ``experts``
(`nest_core.workload.strategies`).

Graphs come from ``presets/traces``, written by `nest_core.workload.tracing`; reading them needs
no torch.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nest_core.documents import kept_per_edition, preset_names, preset_path, read_text, require

__all__ = [
    "KINDS",
    "SORTED",
    "SUMMED",
    "SYMBOLS",
    "Dim",
    "Graph",
    "Node",
    "Sizes",
    "Split",
    "count",
    "extent",
    "families",
    "graph_of",
    "load_pattern",
    "load_trace",
    "weight_count",
]

KINDS = ("embedding", "block", "moe_block", "head")
"""Distinct layers in model order; a family has what it needs of them. Blocks may alternate with
``local_block`` and ``local_moe_block``, whose attention is linear or sees the model's window."""

SYMBOLS = (
    "micro_batch",
    "sequence",
    "keys",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn",
    "vocabulary",
    "positions",
    "experts",
    "top_k",
    "slots",
    "expert_ffn",
    "shared_ffn",
    "q_rank",
    "kv_rank",
    "rope_dim",
    "value_dim",
    "linear_key_heads",
    "linear_value_heads",
    "linear_key_dim",
    "linear_value_dim",
    "index_heads",
    "index_dim",
)
"""Names of sizes. ``keys``: tokens that a query may see, never divided among ranks; ``slots``:
tokens that one expert receives at capacity factor 1."""

Dim = tuple[str | int, ...]
"""A product of symbols and whole numbers; empty: 1."""

Sizes = Mapping[str, float]
"""A value for every symbol, and ``window`` (tokens that attention reaches back; 0: all)."""


@dataclass(frozen=True, slots=True)
class Split:
    """A rank holds ``1/ranks`` of a symbol on the node that says so.

    Parameters
    ----------
    symbol : str
    axis : {"tp", "cp", "ep", "etp", "load"}
        Whose ranks share it; ``load`` is what the hottest expert gets beyond its share.
    ranks : float
        Below 1 where a rank holds more than the original, as expert parallelism's slots.
    """

    symbol: str
    axis: str
    ranks: float


SORTED = "sorted"
"""The function of an expert's projection whose tokens are copied: of the first, from the order of
the ranks that they came from into the experts'; of the last, back."""

SUMMED = "summed"
"""The function of a combination whose probabilities scaled what the experts' last products read."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operator.

    Parameters
    ----------
    name : str
        Unique in its graph; a path of module names.
    op : str
        input, linear, grouped_linear, matmul, attention, embedding, position, norm,
        elementwise, dropout, softmax, reshape, dispatch, combine, loss or collective.
    function : str
        Which norm or element-wise function; ``dropout`` on attention that drops probabilities;
        `SORTED` or `SUMMED`.
    inputs : tuple of str
        Names of the nodes read.
    shape : tuple of Dim
        Of the output.
    weights : tuple of tuple of Dim
        Shapes of the parameters, the matrix ``(out, in)`` first.
    causal : bool
        Whether attention skips the upper triangle.
    split : tuple of Split
        What this rank holds only a part of, of every tensor that the node touches.
    axis : str
        Of a collective: tp, cp, ep or etp.
    forward, backward : tuple of str
        Of a collective: what runs in each pass.
    core : bool
        Whether selective recomputation runs it again instead of keeping its tensors
        (Korthikanti et al. 2022, section 5).
    together : str
        The earlier projection of the same input whose kernel it shares; empty: one of its own.
    full : bool
        Whether attention sees every token, whatever the model's window.
    """

    name: str
    op: str
    function: str = ""
    inputs: tuple[str, ...] = ()
    shape: tuple[Dim, ...] = ()
    weights: tuple[tuple[Dim, ...], ...] = ()
    causal: bool = False
    split: tuple[Split, ...] = ()
    axis: str = ""
    forward: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()
    core: bool = False
    together: str = ""
    full: bool = False

    @property
    def symbols(self) -> frozenset[str]:
        """Symbols of its output and weights."""
        return self.written.union(*map(_symbols, self.weights))

    @property
    def written(self) -> frozenset[str]:
        """Symbols of its output."""
        return _symbols(self.shape)

    @property
    def is_tokens(self) -> bool:
        """Whether it is an input of token numbers, which every rank has."""
        return self.op == "input" and self.function == "tokens"


@dataclass(frozen=True)
class Graph:
    """One layer: nodes in execution order, the last one its output.

    Parameters
    ----------
    kind : str
        One of `KINDS`, or a local one of them.
    nodes : tuple of Node
    """

    kind: str
    nodes: tuple[Node, ...]
    _index: dict[str, Node] = field(default_factory=dict, repr=False, compare=False, hash=False)

    def __getitem__(self, name: str) -> Node:
        """Return the node of a name; KeyError if there is none."""
        if not self._index:
            self._index.update((node.name, node) for node in self.nodes)
        return self._index[name]

    @cached_property
    def output(self) -> Node:
        """The node whose tensor leaves the layer."""
        return self.nodes[-1]

    def inputs(self, node: Node) -> list[Node]:
        """Return the nodes that a node reads."""
        return [self[name] for name in node.inputs]

    def behind(self, name: str, op: str) -> str:
        """Return the name of what an operation's chain of nodes, if it is one, passes on."""
        while self[name].op == op:
            name = self[name].inputs[0]
        return name

    def source(self, node: Node) -> Node:
        """Who made the bytes that a rank keeps of a node's tensor.

        Views pass them on; so do collectives that gather, since backward gathers again from a
        rank's own part. Sums and exchanged tokens are bytes of their own.
        """
        while node.op == "reshape" or (node.op == "collective" and set(node.forward) <= _GATHERS):
            node = self[node.inputs[0]]
        return node


_GATHERS = frozenset({"all_gather", "ring"})


def count(shape: Iterable[Dim], sizes: Sizes, split: Iterable[Split] = ()) -> float:
    """Elements of a tensor on one rank.

    Parameters
    ----------
    shape : iterable of Dim
    sizes : mapping of symbol to size
    split : iterable of Split
        Of the node that touches it.
    """
    return math.prod((extent(dim, sizes, split) for dim in shape), start=1.0)


def extent(dim: Dim, sizes: Sizes, split: Iterable[Split] = ()) -> float:
    """Length of one dimension on one rank."""
    length = 1.0
    for part in dim:
        if isinstance(part, str):
            length *= sizes[part]
            for entry in split:
                if entry.symbol == part:
                    length /= entry.ranks
        else:
            length *= part
    return length


def families() -> tuple[str, ...]:
    """Model families whose trace is shipped."""
    return preset_names("traces", ".json")


@kept_per_edition(64)
def load_trace(family: str) -> dict[str, Graph]:
    """Return the graphs of a family by kind of layer.

    Raises
    ------
    InputError
        If the family has no trace.
    """
    require(
        family in families(),
        "model.family",
        "must be one whose operators were traced",
        family,
        f"pick {', '.join(families())}, or trace its module with nest-studio trace",
    )
    document = json.loads(read_text(preset_path("traces", f"{family}.json")))
    return {kind: graph_of(kind, nodes) for kind, nodes in document["layers"].items()}


@kept_per_edition(64)
def load_pattern(family: str) -> dict[str, Graph]:
    """Return the graphs of a family whose blocks alternate: local ones, and those that see all."""
    graphs = load_trace(family)
    blocks = {kind: graph for kind, graph in graphs.items() if kind in ("block", "moe_block")}
    local = {f"local_{kind}": Graph(f"local_{kind}", blocks[kind].nodes) for kind in blocks}
    full = {
        kind: Graph(kind, tuple(replace(node, full=node.core) for node in graph.nodes))
        for kind, graph in blocks.items()
    }
    return local | graphs | full


def graph_of(kind: str, nodes: Iterable[Mapping[str, Any]]) -> Graph:
    """Return a graph from the entries of a trace file."""
    return Graph(kind, tuple(map(_node, nodes)))


def _node(entry: Mapping[str, Any]) -> Node:
    return Node(
        name=entry["name"],
        op=entry["op"],
        function=entry.get("function", ""),
        inputs=tuple(entry.get("inputs", ())),
        shape=_shape(entry.get("shape", ())),
        weights=tuple(_shape(weight) for weight in entry.get("weights", ())),
        causal=entry.get("causal", False),
        core=entry["op"] == "attention",
    )


def _symbols(shape: Iterable[Dim]) -> frozenset[str]:
    return frozenset(part for dim in shape for part in dim if isinstance(part, str))


def _shape(dims: Iterable[Iterable[str | int]]) -> tuple[Dim, ...]:
    return tuple(tuple(dim) for dim in dims)


def weight_count(node: Node, sizes: Sizes) -> float:
    """Parameters of a node on one rank."""
    return math.fsum(count(weight, sizes, node.split) for weight in node.weights)
