"""Transformer architectures: the sizes from which everything else follows.

A `Model` says how large a model is; what norm, activation, bias or causality it has is its
family's business, and stands in the family's trace. Parameters are counted by evaluating that
trace at the model's sizes. Presets lie in ``presets/models``; each names its source.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, get_args, get_type_hints

from pydantic import Field

from nest_core.documents import InputError, require, summed
from nest_core.documents.schema import Name, label
from nest_core.workload.graph import Graph, load_pattern, load_trace

__all__ = ["LARGEST_SIZE", "MOST_BLOCKS", "TRACED", "Model", "sizes"]

MOST_BLOCKS = 1998
"""Blocks of a model; with embedding and head it has at most 2,000 layers."""

TRACED = "traced"
"""Family of models whose layers are those of a person's own trace."""

LARGEST_SIZE = 10_000_000
"""No width, count or vocabulary is larger."""

_OF_EXPERTS = {"expert_ffn": 0, "shared_ffn": 0, "dense_blocks": 0, "moe_every": 1}
Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
MaybeSize = Annotated[int, Field(ge=0, le=LARGEST_SIZE)]
_LATENT = ("q_rank", "kv_rank", "rope_dim", "value_dim")
_LINEAR = ("linear_key_heads", "linear_value_heads", "linear_key_dim", "linear_value_dim")
_INDEX = ("index_heads", "index_dim")
_FAMILY_SIZES = ("ffn", "positions", "expert_ffn", "shared_ffn", *_LATENT, *_LINEAR, *_INDEX)


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
        Tokens that sliding-window attention sees, or that an indexer picks; 0 for all.
    full_every : int
        Every so many blocks attention sees all tokens; those between are local: they see the
        window, or their attention is linear. 0: all blocks are alike.
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
    moe_every : int
        Every so many blocks have experts, those between a dense MLP.
    q_rank, kv_rank, rope_dim, value_dim : int
        Latent attention: ranks of the query's and the key-value projections, width of a head's
        part with position, width of a value head. All or none are given, but for the query's.
    linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim : int
        Linear attention of local blocks: heads of keys and queries, of values, and their widths.
    index_heads, index_dim : int
        Heads of an indexer that picks the tokens that attention sees, and their width.
    source : str
    graphs : tuple of Graph
        Layers of a person's own trace, by kind; empty: its family's. A size that they do not name
        says nothing: it is 1, or 0 where models may lack it.

    Raises
    ------
    InputError
        If a size is out of range or sizes contradict one another.
    """

    name: Name
    family: Name
    blocks: Annotated[int, Field(ge=1, le=MOST_BLOCKS), label("blocks", unit="layers")]
    hidden: Annotated[Size, label("hidden width", unit="elements")]
    heads: Annotated[Size, label("query heads", unit="per block")]
    kv_heads: Annotated[Size, label("KV heads", unit="per block")]
    head_dim: Annotated[Size, label("head width", unit="elements")]
    ffn: Annotated[MaybeSize, label("MLP width", "Inner width of a dense MLP.", "elements")]
    vocabulary: Annotated[Size, label("vocabulary", unit="tokens")]
    positions: Annotated[MaybeSize, label("learned positions", unit="tokens")] = 0
    tied: bool = False
    window: Annotated[
        MaybeSize, label("window", "What attention sees; 0: everything.", "tokens")
    ] = 0
    experts: Annotated[Size, label("experts", unit="per block")] = 1
    top_k: Annotated[Size, label("top k", unit="experts")] = 1
    expert_ffn: Annotated[
        MaybeSize, label("expert width", "Inner width of one expert.", "elements")
    ] = 0
    shared_ffn: Annotated[
        MaybeSize, label("shared width", "Of all shared experts together.", "elements")
    ] = 0
    dense_blocks: Annotated[
        MaybeSize, label("dense blocks", "The first ones: an MLP and no experts.", "layers")
    ] = 0
    q_rank: Annotated[MaybeSize, label("query rank", unit="elements")] = 0
    kv_rank: Annotated[MaybeSize, label("key-value rank", unit="elements")] = 0
    rope_dim: Annotated[MaybeSize, label("rotary width", unit="elements")] = 0
    value_dim: Annotated[MaybeSize, label("value width", unit="elements")] = 0
    full_every: Annotated[
        MaybeSize, label("full attention", "Every so many blocks; 0: in all of them.", "layers")
    ] = 0
    moe_every: Annotated[
        Size, label("experts every", "So many blocks; those between are dense.", "layers")
    ] = 1
    linear_key_heads: Annotated[MaybeSize, label("linear key heads", unit="per block")] = 0
    linear_value_heads: Annotated[MaybeSize, label("linear value heads", unit="per block")] = 0
    linear_key_dim: Annotated[MaybeSize, label("linear key width", unit="elements")] = 0
    linear_value_dim: Annotated[MaybeSize, label("linear value width", unit="elements")] = 0
    index_heads: Annotated[MaybeSize, label("indexer heads", unit="per block")] = 0
    index_dim: Annotated[MaybeSize, label("indexer width", unit="elements")] = 0
    expert_groups: Annotated[
        Size, label("expert groups", "Of which a token picks some.", "per block")
    ] = 1
    top_groups: Annotated[
        Size, label("top groups", "That hold a token's experts at most.", "groups")
    ] = 1
    source: Annotated[str, Field(max_length=1000)] = ""
    graphs: tuple[Graph, ...] = ()

    def __post_init__(self) -> None:
        self._check_ranges()
        if self.graphs:
            return
        _require(
            self.heads % self.kv_heads == 0,
            self,
            "kv_heads",
            f"must divide model.heads = {self.heads}",
        )
        _require(
            self.top_k <= self.experts,
            self,
            "top_k",
            f"must not exceed model.experts = {self.experts}",
        )
        _require(
            self.experts % self.expert_groups == 0,
            self,
            "expert_groups",
            f"must divide model.experts = {self.experts}",
        )
        _require(
            self.top_groups <= self.expert_groups,
            self,
            "top_groups",
            f"must not exceed model.expert_groups = {self.expert_groups}",
        )
        _require(
            self.top_k <= self.experts // self.expert_groups * self.top_groups,
            self,
            "top_groups",
            f"must hold model.top_k = {self.top_k} experts",
        )
        self._check_mlps()
        self._check_latent()

    def _check_ranges(self) -> None:
        for name, (least, most) in _ranges().items():
            value = getattr(self, name)
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            _require(is_whole, self, name, "must be a whole number")
            _require(value >= least, self, name, f"must be at least {least}")
            _require(value <= most, self, name, f"must be at most {most:,}")

    def _check_mlps(self) -> None:
        if self.experts == 1:
            for name, none in _OF_EXPERTS.items():
                _require(
                    getattr(self, name) == none,
                    self,
                    name,
                    f"must be {none} in a model of one expert",
                    "give model.experts",
                )
        else:
            _require(
                self.expert_ffn,
                self,
                "expert_ffn",
                f"must be at least 1 with {self.experts} experts",
            )
            _require(
                self.dense_blocks < self.blocks,
                self,
                "dense_blocks",
                f"must be fewer than model.blocks = {self.blocks}",
            )
            _require(
                self.moe_every == 1 or (self.moe_every <= self.blocks and not self.dense_blocks),
                self,
                "moe_every",
                "must be 1 beside model.dense_blocks, and at most the blocks",
            )
        _require(
            not self.plain_blocks or self.ffn,
            self,
            "ffn",
            f"must be at least 1 for {self.plain_blocks} dense blocks",
        )
        _require(
            not self.ffn or self.plain_blocks,
            self,
            "ffn",
            "must be 0 where no block has a dense MLP",
            "give model.expert_ffn, or model.dense_blocks",
        )

    def _check_latent(self) -> None:
        given = [name for name in _LATENT if getattr(self, name)]
        missing = [name for name in _LATENT[1:] if not getattr(self, name)]
        if given and missing:
            raise InputError(
                f"model.{missing[0]}",
                f"must be at least 1 beside model.{given[0]}",
                0,
                f"latent attention needs all of {', '.join(_LATENT[1:])}",
            )
        _require(
            not given or self.kv_heads == self.heads,
            self,
            "kv_heads",
            f"must equal model.heads = {self.heads} in latent attention",
        )

    def check_family(self) -> None:
        """Compare the sizes with those that the family's trace knows.

        Raises
        ------
        InputError
            If the family has no trace, lacks a kind of block, needs a size that is not given or
            does not know one that is.
        """
        trace = self.trace
        for kind in self.kinds:
            what = "mixture-of-experts blocks" if kind.endswith("moe_block") else "dense blocks"
            _require(
                kind in trace,
                self,
                "family",
                f"must be one that has {what}",
                "change the sizes or it",
            )
        needs = {
            symbol for kind in self.kinds for node in trace[kind].nodes for symbol in node.symbols
        }
        for name in _FAMILY_SIZES:
            _require(
                name not in needs or getattr(self, name),
                self,
                name,
                f"must be at least 1 in a model of family {self.family}",
            )
            _require(
                name in needs or not getattr(self, name),
                self,
                name,
                f"must be 0 in a model of family {self.family}",
            )

    @property
    def trace(self) -> Mapping[str, Graph]:
        """Operators of distinct layers by kind: its own, or its family's."""
        if self.graphs:
            return {graph.kind: graph for graph in self.graphs}
        return load_pattern(self.family) if self.full_every else load_trace(self.family)

    @property
    def plain_blocks(self) -> int:
        """Blocks with a dense MLP."""
        return sum(count for kind, count in self.kinds.items() if kind in ("block", "local_block"))

    @property
    def runs(self) -> tuple[tuple[str, int], ...]:
        """Layers from first to last: kinds of its trace, and how many follow on."""
        traced = [graph.kind for graph in self.graphs]
        sparse = "moe_block" in traced if traced else self.experts > 1
        first = self.dense_blocks if sparse else self.blocks
        blocks = _block_runs(self.blocks, first, self.moe_every, self.full_every)
        return tuple(
            run
            for run in (("embedding", 1), *blocks, ("head", 1))
            if not traced or run[0] in traced
        )

    @property
    def kinds(self) -> dict[str, int]:
        """Kinds of its layers, in the order of their first ones, and how many there are of each."""
        return summed(self.runs)

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
        kind : str
            A key of `kinds`.
        """
        return sum(count for _, count in _weights(self, kind))


def sizes(model: Model, micro_batch: int, sequence: int) -> dict[str, float]:
    """Return what the symbols stand for in a model with micro-batches of so many sequences."""
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
        **{name: getattr(model, name) for name in (*_LINEAR, *_INDEX)},
        "window": model.window,
    }


@functools.lru_cache(maxsize=1024)
def _block_runs(
    blocks: int, dense_blocks: int, moe_every: int, full_every: int
) -> tuple[tuple[str, int], ...]:
    """Return kinds of blocks in their order, and how many follow on."""
    kinds = [
        ("local_" if full_every and place % full_every else "")
        + ("block" if place <= dense_blocks or place % moe_every else "moe_block")
        for place in range(1, blocks + 1)
    ]
    return tuple((kind, len(list(run))) for kind, run in itertools.groupby(kinds))


def _require(
    holds: object, model: Model, field: str, rule: str, remedy: str = "correct it"
) -> None:
    require(holds, f"model.{field}", rule, getattr(model, field), remedy)


@functools.cache
def _ranges() -> dict[str, tuple[int, int]]:
    """Return the least and the largest value of every size of `Model`, as its fields state them."""
    hints = get_type_hints(Model, include_extras=True).items()
    bounds = {
        name: hint.__metadata__[0].metadata for name, hint in hints if get_args(hint)[:1] == (int,)
    }
    return {name: (low.ge, high.le) for name, (low, high) in bounds.items()}


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
