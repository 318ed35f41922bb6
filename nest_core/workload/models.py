"""Transformer architectures, as their configuration files describe them.

A `Model` is the small set of numbers from which layers, parameters and operator counts
follow. Presets live in ``presets/models``; each names its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nest_core.errors import InputError

__all__ = ["Model"]


@dataclass(frozen=True, slots=True)
class Model:
    """A stack of identical transformer blocks between an embedding and a head.

    Parameters
    ----------
    name : str
    blocks, hidden, heads, kv_heads, head_dim, ffn, vocabulary : int
        ``ffn`` is one expert's inner width in a mixture of experts.
    positions : int
        Learned position embeddings; 0 for rotary ones.
    mlp : {"gelu", "swiglu"}
        Two or three projections.
    norm : {"layernorm", "rmsnorm"}
    bias : bool
        Whether projections carry biases.
    causal : bool
        Whether attention skips the upper triangle.
    dropout : bool
        Whether dropout masks are kept for the backward pass.
    tied : bool
        Whether the head shares the embedding's weights.
    head_transform : bool
        BERT's dense layer and norm before the vocabulary projection.
    experts, top_k : int
        1 and 1 for dense models.
    source : str
    """

    name: str
    blocks: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    positions: int = 0
    mlp: Literal["gelu", "swiglu"] = "swiglu"
    norm: Literal["layernorm", "rmsnorm"] = "rmsnorm"
    bias: bool = False
    causal: bool = True
    dropout: bool = False
    tied: bool = False
    head_transform: bool = False
    experts: int = 1
    top_k: int = 1
    source: str = ""

    def __post_init__(self) -> None:
        for field in ("blocks", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocabulary"):
            value = getattr(self, field)
            if value < 1:
                raise InputError(f"model.{field}", "must be at least 1", value, "correct it")
        if self.heads % self.kv_heads:
            raise InputError(
                "model.kv_heads",
                f"must divide model.heads = {self.heads}",
                self.kv_heads,
                "correct it",
            )
        if not 1 <= self.top_k <= self.experts:
            raise InputError(
                "model.top_k",
                f"must lie between 1 and experts = {self.experts}",
                self.top_k,
                "correct it",
            )

    @property
    def norm_parameters(self) -> int:
        """Parameters of one normalisation."""
        return self.hidden * (2 if self.norm == "layernorm" else 1)

    @property
    def attention_parameters(self) -> int:
        """Query, key, value and output projections of one block."""
        rows = (self.heads + 2 * self.kv_heads) * self.head_dim
        weights = self.hidden * rows + self.heads * self.head_dim * self.hidden
        return weights + (rows + self.hidden if self.bias else 0)

    @property
    def mlp_parameters(self) -> int:
        """Feed-forward projections of one block, all experts and the router."""
        gates = 2 if self.mlp == "swiglu" else 1
        bias = gates * self.ffn + self.hidden if self.bias else 0
        expert = (gates + 1) * self.hidden * self.ffn + bias
        router = self.experts * self.hidden if self.experts > 1 else 0
        return self.experts * expert + router

    @property
    def block_parameters(self) -> int:
        """One transformer block with its two norms."""
        return self.attention_parameters + self.mlp_parameters + 2 * self.norm_parameters

    @property
    def embedding_parameters(self) -> int:
        """Token and position embeddings."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def head_parameters(self) -> int:
        """Final norm and vocabulary projection, without the projection where it is tied."""
        transform = self.hidden * (self.hidden + 1) + self.vocabulary if self.head_transform else 0
        projection = 0 if self.tied else self.vocabulary * self.hidden
        return self.norm_parameters + transform + projection

    @property
    def parameters(self) -> int:
        """All parameters, tied ones once."""
        return (
            self.embedding_parameters + self.blocks * self.block_parameters + self.head_parameters
        )

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through (experts: the top k)."""
        projections = 3 if self.mlp == "swiglu" else 2
        idle = (self.experts - self.top_k) * projections * self.hidden * self.ffn
        return self.parameters - self.blocks * idle
