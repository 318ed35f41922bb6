"""Transformer architectures: the sizes from which everything else follows.

A `Model` says how large a model is; what norm, activation, bias or causality it has is its
family's business, and stands in the family's trace. Parameters are counted by evaluating that
trace at the model's sizes. Presets lie in ``presets/models``; each names its source.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from nest_core.documents.errors import InputError
from nest_core.workload.graph import KINDS, Graph, load_trace

__all__ = ["LARGEST_SIZE", "MOST_BLOCKS", "TRACED", "Model", "sizes"]

MOST_BLOCKS = 1998
"""Blocks of a model; with embedding and head it has at most 2,000 layers."""

TRACED = "traced"
"""Family of models whose layers are those of a person's own trace."""

LARGEST_SIZE = 10_000_000
"""No width, count or vocabulary is larger."""

_AT_LEAST_ONE = (
    "blocks",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "vocabulary",
    "experts",
    "top_k",
    "expert_groups",
    "top_groups",
)
_LATENT = ("q_rank", "kv_rank", "rope_dim", "value_dim")
_FAMILY_SIZES = ("ffn", "positions", "expert_ffn", "shared_ffn", *_LATENT)


@dataclass(frozen=True, slots=True)
class Model:
    """A stack of transformer blocks between an embedding and a head.

    Parameters
    ----------
    name : str
    family : str
        The trace it uses: a file of ``presets/traces`` without its ending.
    blocks : int
        All transformer blocks.
    hidden : int
        Width of the residual stream.
    heads, kv_heads, head_dim : int
        Query heads, key-value heads and the width of one. Under latent attention ``head_dim``
        is the part of a query's head without position.
    ffn : int
        Inner width of a dense MLP; 0 where no block has one.
    vocabulary : int
    positions : int
        Learned position embeddings; 0 for rotary ones and ALiBi.
    tied : bool
        Whether the head shares the embedding's weights.
    window : int
        Tokens that sliding-window attention sees; 0 for all.
    experts, top_k : int
        Experts of a block, and how many of them a token visits; 1 and 1 for dense models.
    expert_ffn : int
        Inner width of one expert.
    shared_ffn : int
        Inner width of all shared experts together.
    expert_groups, top_groups : int
        Equal groups of experts, and how many of them hold the experts of one token at most
        (node-limited routing; DeepSeek-AI 2024, arXiv:2412.19437, section 2.1.2).
    dense_blocks : int
        Leading blocks with a dense MLP in a mixture of experts.
    q_rank, kv_rank, rope_dim, value_dim : int
        Latent attention: ranks of the query's and the key-value projections, width of a head's
        part with position, width of a value head. All or none are given.
    source : str
    graphs : tuple of Graph
        Layers of a person's own trace, by kind; empty: its family's. A size that they do not name
        says nothing: it is 1, or 0 where models may lack it.

    Raises
    ------
    InputError
        If a size is out of range or sizes contradict one another.
    """

    name: str
    family: str
    blocks: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    positions: int = 0
    tied: bool = False
    window: int = 0
    experts: int = 1
    top_k: int = 1
    expert_ffn: int = 0
    shared_ffn: int = 0
    dense_blocks: int = 0
    q_rank: int = 0
    kv_rank: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    expert_groups: int = 1
    top_groups: int = 1
    source: str = ""
    graphs: tuple[Graph, ...] = ()

    def __post_init__(self) -> None:
        self._check_ranges()
        if self.graphs:
            return
        if self.heads % self.kv_heads:
            _refuse(self, "kv_heads", f"must divide model.heads = {self.heads}")
        if self.top_k > self.experts:
            _refuse(self, "top_k", f"must not exceed model.experts = {self.experts}")
        if self.experts % self.expert_groups:
            _refuse(self, "expert_groups", f"must divide model.experts = {self.experts}")
        if self.top_groups > self.expert_groups:
            _refuse(
                self, "top_groups", f"must not exceed model.expert_groups = {self.expert_groups}"
            )
        if self.top_k > self.experts // self.expert_groups * self.top_groups:
            _refuse(self, "top_groups", f"must hold model.top_k = {self.top_k} experts")
        self._check_mlps()
        self._check_latent()

    def _check_ranges(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type != "int":
                continue
            least = 1 if field.name in _AT_LEAST_ONE else 0
            most = MOST_BLOCKS if field.name == "blocks" else LARGEST_SIZE
            if isinstance(value, bool) or not isinstance(value, int):
                _refuse(self, field.name, "must be a whole number")
            if value < least:
                _refuse(self, field.name, f"must be at least {least}")
            if value > most:
                _refuse(self, field.name, f"must be at most {most:,}")

    def _check_mlps(self) -> None:
        if self.experts == 1:
            for name in ("expert_ffn", "shared_ffn", "dense_blocks"):
                if getattr(self, name):
                    _refuse(self, name, "must be 0 in a model of one expert", "give model.experts")
        else:
            if not self.expert_ffn:
                _refuse(self, "expert_ffn", f"must be at least 1 with {self.experts} experts")
            if self.dense_blocks >= self.blocks:
                _refuse(self, "dense_blocks", f"must be fewer than model.blocks = {self.blocks}")
        if self.plain_blocks and not self.ffn:
            _refuse(self, "ffn", f"must be at least 1 for {self.plain_blocks} dense blocks")
        if self.ffn and not self.plain_blocks:
            _refuse(
                self,
                "ffn",
                "must be 0 where no block has a dense MLP",
                "give model.expert_ffn, or model.dense_blocks",
            )

    def _check_latent(self) -> None:
        given = [name for name in _LATENT if getattr(self, name)]
        missing = [name for name in _LATENT if not getattr(self, name)]
        if given and missing:
            _refuse(
                self,
                missing[0],
                f"must be at least 1 beside model.{given[0]}",
                f"latent attention needs all of {', '.join(_LATENT)}",
            )
        if given and self.kv_heads != self.heads:
            _refuse(self, "kv_heads", f"must equal model.heads = {self.heads} in latent attention")

    def check_family(self) -> None:
        """Compare the sizes with those that the family's trace knows.

        Raises
        ------
        InputError
            If the family has no trace, lacks a kind of block, needs a size that is not given or
            does not know one that is.
        """
        trace = self.trace
        for kind, _ in self.runs:
            if kind not in trace:
                what = "mixture-of-experts blocks" if kind == "moe_block" else "dense blocks"
                _refuse(self, "family", f"must be one that has {what}", "change the sizes or it")
        needs = {
            symbol for kind, _ in self.runs for node in trace[kind].nodes for symbol in node.symbols
        }
        for name in _FAMILY_SIZES:
            if name in needs and not getattr(self, name):
                _refuse(self, name, f"must be at least 1 in a model of family {self.family}")
            if name not in needs and getattr(self, name):
                _refuse(self, name, f"must be 0 in a model of family {self.family}")

    @property
    def trace(self) -> Mapping[str, Graph]:
        """Operators of distinct layers by kind: its own, or its family's."""
        return {graph.kind: graph for graph in self.graphs} or load_trace(self.family)

    @property
    def plain_blocks(self) -> int:
        """Blocks with a dense MLP."""
        sparse = "moe_block" in self._kinds if self.graphs else self.experts > 1
        return self.dense_blocks if sparse else self.blocks

    @property
    def runs(self) -> tuple[tuple[str, int], ...]:
        """Layers from first to last: kinds of its trace, and how many follow on."""
        counts = (1, self.plain_blocks, self.blocks - self.plain_blocks, 1)
        return tuple(
            (kind, count)
            for kind, count in zip(KINDS, counts, strict=True)
            if count and kind in self._kinds
        )

    @property
    def _kinds(self) -> tuple[str, ...]:
        return tuple(graph.kind for graph in self.graphs) or KINDS

    @property
    def parameters(self) -> int:
        """All parameters, tied ones once."""
        return sum(count * self.layer_parameters(kind) for kind, count in self.runs)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through: of the experts, the top k."""
        return sum(
            count * (self.layer_parameters(kind) - _idle(self, kind)) for kind, count in self.runs
        )

    def layer_parameters(self, kind: str) -> int:
        """Parameters of one layer; a tied head's projection is the embedding's.

        Parameters
        ----------
        kind : {"embedding", "block", "moe_block", "head"}
        """
        return sum(count for _, count in _weights(self, kind))


def sizes(model: Model, micro_batch: int, sequence: int) -> dict[str, float]:
    """What the symbols stand for in a model with micro-batches of so many sequences."""
    return {
        "micro_batch": micro_batch,
        "sequence": sequence,
        "keys": sequence,
        "hidden": model.hidden,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "ffn": model.ffn,
        "vocabulary": model.vocabulary,
        "positions": model.positions,
        "experts": model.experts,
        "top_k": model.top_k,
        "slots": micro_batch * sequence * model.top_k / model.experts,
        "expert_ffn": model.expert_ffn,
        "shared_ffn": model.shared_ffn,
        "q_rank": model.q_rank,
        "kv_rank": model.kv_rank,
        "rope_dim": model.rope_dim,
        "value_dim": model.value_dim,
        "window": model.window,
    }


def _refuse(model: Model, field: str, rule: str, remedy: str = "correct it") -> None:
    raise InputError(f"model.{field}", rule, getattr(model, field), remedy)


def _idle(model: Model, kind: str) -> int:
    """Parameters of the experts of one layer that a token does not visit."""
    expert_weights = sum(count for op, count in _weights(model, kind) if op == "grouped_linear")
    return expert_weights // model.experts * (model.experts - model.top_k)


@functools.lru_cache(maxsize=1024)
def _weights(model: Model, kind: str) -> tuple[tuple[str, int], ...]:
    """Operator and elements of every weight that a layer has to itself."""
    size = sizes(model, 1, 1)
    counts = []
    for node in model.trace[kind].nodes:
        for weight in node.weights:
            if model.tied and kind == "head" and weight == (("vocabulary",), ("hidden",)):
                continue
            factors = [size[part] if isinstance(part, str) else part for d in weight for part in d]
            counts.append((node.op, round(math.prod(factors))))
    return tuple(counts)
