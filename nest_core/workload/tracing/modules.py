"""Every family's distinct layers as plain PyTorch modules.

A family is a dictionary from the kind of a layer to a function that builds it at given sizes.
Modules hold the parameters of the published implementations and do their work; constants that
cost nothing (initial values, epsilons, rotary bases, groups of experts) are not followed. Fused
projections are written as separate ones, so that every dimension is a product of sizes.
Key-value heads may be fewer than heads in every family.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from nest_core.workload.tracing.experts import Experts
from nest_core.workload.tracing.latent import LatentAttention
from nest_core.workload.tracing.layers import (
    DROPOUT,
    Add,
    AlibiCore,
    Attention,
    CappedCore,
    Core,
    Gated,
    LossLayer,
    RmsNorm,
    ScaleLayer,
    SinkCore,
    SquaredRelu,
    two_layer,
)
from nest_core.workload.tracing.sizes import Sizes

__all__ = ["FAMILIES", "Build", "example"]

Build = Callable[[Sizes], nn.Module]
"""From sizes to one layer."""

Norm = Callable[[int], nn.Module]


class Positions(nn.Module):
    """Adds a learned embedding of each token's place."""

    fused, op, function = True, "position", ""

    def __init__(self, positions: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(positions, hidden) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[1]]


class TokenTypes(nn.Module):
    """Adds BERT's embedding of the segment, here the first for every token."""

    fused, op, function = True, "position", "token_type"

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, hidden) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        types = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
        return x + nn.functional.embedding(types, self.weight)


def _embedding(sizes: Sizes, **steps: nn.Module) -> nn.Module:
    """Return tokens ``[b, s]`` to the residual stream, through the given steps."""
    return nn.Sequential(OrderedDict(tokens=nn.Embedding(sizes.vocabulary, sizes.hidden), **steps))


class Head(nn.Module):
    """Residual stream and targets ``[b, s]`` to the loss, through steps before the logits."""

    def __init__(self, sizes: Sizes, *, bias: bool = False, **steps: nn.Module) -> None:
        logits = nn.Linear(sizes.hidden, sizes.vocabulary, bias=bias)
        super().__init__()
        for name, step in {**steps, "logits": logits, "loss": LossLayer()}.items():
            self.add_module(name, step)

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        *steps, loss = self.children()
        for step in steps:
            x = step(x)
        return cast(Tensor, loss(x, targets))


class Block(nn.Module):
    """Pre-norm: attention, then an MLP or experts, each added to the residual stream.

    Parameters
    ----------
    sizes : Sizes
    norm : callable
        From width to a norm.
    attention : nn.Module
    mlp, experts, shared : nn.Module or None
        A dense MLP; or experts, with those that every token passes through.
    dropout : bool
        After both halves.
    post_norm : bool
        A further norm after both halves (Grok-1).
    """

    def __init__(
        self,
        sizes: Sizes,
        norm: Norm,
        attention: nn.Module,
        mlp: nn.Module | None = None,
        *,
        experts: nn.Module | None = None,
        shared: nn.Module | None = None,
        dropout: bool = False,
        post_norm: bool = False,
    ) -> None:
        super().__init__()
        self.attention_norm = norm(sizes.hidden)
        self.attention = attention
        self.attention_post_norm = norm(sizes.hidden) if post_norm else nn.Identity()
        self.attention_dropout = nn.Dropout(DROPOUT) if dropout else nn.Identity()
        self.attention_residual = Add()
        self.mlp_norm = norm(sizes.hidden)
        self.mlp, self.experts = mlp, experts
        self.shared = shared
        self.shared_add = Add()
        self.mlp_post_norm = norm(sizes.hidden) if post_norm else nn.Identity()
        self.mlp_dropout = nn.Dropout(DROPOUT) if dropout else nn.Identity()
        self.mlp_residual = Add()

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_post_norm(self.attention(self.attention_norm(x)))
        x = self.attention_residual(x, self.attention_dropout(y))
        z = self.mlp_norm(x)
        y = self.mlp(z) if self.mlp is not None else self._mixture(z)
        return cast(Tensor, self.mlp_residual(x, self.mlp_dropout(self.mlp_post_norm(y))))

    def _mixture(self, z: Tensor) -> Tensor:
        y: Tensor = z if self.experts is None else self.experts(z)
        if self.shared is not None:
            y = self.shared_add(y, self.shared(z))
        return y


class PostNormBlock(nn.Module):
    """BERT's: the norm follows the residual connection."""

    def __init__(self, sizes: Sizes, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.attention_dropout = nn.Dropout(DROPOUT)
        self.attention_residual = Add()
        self.attention_norm = nn.LayerNorm(sizes.hidden)
        self.mlp = mlp
        self.mlp_dropout = nn.Dropout(DROPOUT)
        self.mlp_residual = Add()
        self.mlp_norm = nn.LayerNorm(sizes.hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention_norm(
            self.attention_residual(x, self.attention_dropout(self.attention(x)))
        )
        return cast(Tensor, self.mlp_norm(self.mlp_residual(x, self.mlp_dropout(self.mlp(x)))))


def _plain_norm(width: int) -> nn.Module:
    return nn.LayerNorm(width, bias=False)


def _rms_head(sizes: Sizes) -> nn.Module:
    return Head(sizes, norm=RmsNorm(sizes.hidden))


def _layer_norm_head(sizes: Sizes) -> nn.Module:
    return Head(sizes, norm=nn.LayerNorm(sizes.hidden))


def _gated_block(sizes: Sizes, attention: nn.Module) -> nn.Module:
    return Block(sizes, RmsNorm, attention, Gated(sizes.hidden, sizes.ffn))


def _latent_block(sizes: Sizes) -> nn.Module:
    return _gated_block(sizes, LatentAttention(sizes))


def _experts_block(sizes: Sizes, attention: nn.Module, **experts: Any) -> nn.Module:
    return Block(sizes, RmsNorm, attention, experts=Experts(sizes, **experts))


def _shared_experts_block(sizes: Sizes, **experts: Any) -> nn.Module:
    shared = Gated(sizes.hidden, sizes.shared_ffn)
    attention = LatentAttention(sizes)
    return Block(sizes, RmsNorm, attention, experts=Experts(sizes, **experts), shared=shared)


def _rms_family(**blocks: Build) -> dict[str, Build]:
    return {"embedding": _embedding, **blocks, "head": _rms_head}


FAMILIES: Mapping[str, Mapping[str, Build]] = {
    "gpt": {
        "embedding": lambda s: _embedding(
            s, positions=Positions(s.positions, s.hidden), dropout=nn.Dropout(DROPOUT)
        ),
        "block": lambda s: Block(
            s,
            nn.LayerNorm,
            Attention(s, Core(dropout=True), bias=True, output_bias=True, rope=0),
            two_layer(s.hidden, s.ffn, bias=True),
            dropout=True,
        ),
        "head": _layer_norm_head,
    },
    "bert": {
        "embedding": lambda s: _embedding(
            s,
            positions=Positions(s.positions, s.hidden),
            token_types=TokenTypes(s.hidden),
            norm=nn.LayerNorm(s.hidden),
            dropout=nn.Dropout(DROPOUT),
        ),
        "block": lambda s: PostNormBlock(
            s,
            Attention(s, Core(causal=False, dropout=True), bias=True, output_bias=True, rope=0),
            two_layer(s.hidden, s.ffn, bias=True),
        ),
        "head": lambda s: Head(
            s,
            bias=True,
            transform=nn.Linear(s.hidden, s.hidden),
            activation=nn.GELU(),
            norm=nn.LayerNorm(s.hidden),
        ),
    },
    "llama": _rms_family(block=lambda s: _gated_block(s, Attention(s, Core()))),
    "qwen2": _rms_family(block=lambda s: _gated_block(s, Attention(s, Core(), bias=True))),
    "qwen3": _rms_family(block=lambda s: _gated_block(s, Attention(s, Core(), head_norm=True))),
    "nemotron": {
        "embedding": _embedding,
        "block": lambda s: Block(
            s,
            nn.LayerNorm,
            Attention(s, Core(), rope=0.5),
            two_layer(s.hidden, s.ffn, bias=False, activation=SquaredRelu()),
        ),
        "head": _layer_norm_head,
    },
    "mixtral": _rms_family(moe_block=lambda s: _experts_block(s, Attention(s, Core()))),
    "qwen3_moe": _rms_family(
        moe_block=lambda s: _experts_block(s, Attention(s, Core(), head_norm=True))
    ),
    "deepseek_v2": _rms_family(block=_latent_block, moe_block=_shared_experts_block),
    "deepseek_v3": _rms_family(
        block=_latent_block,
        moe_block=lambda s: _shared_experts_block(s, router="sigmoid", balance=True),
    ),
    "grok1": {
        "embedding": lambda s: _embedding(s, scale=ScaleLayer(s.hidden**0.5)),
        "moe_block": lambda s: Block(
            s,
            RmsNorm,
            Attention(s, CappedCore()),
            experts=Experts(s, gate="geglu"),
            post_norm=True,
        ),
        "head": _rms_head,
    },
    "gpt_oss": _rms_family(
        moe_block=lambda s: _experts_block(
            s, Attention(s, SinkCore(s.heads), bias=True, output_bias=True), bias=True
        )
    ),
    "mpt": {
        "embedding": _embedding,
        "block": lambda s: Block(
            s,
            _plain_norm,
            Attention(s, AlibiCore(s.heads), rope=0),
            two_layer(s.hidden, s.ffn, bias=False),
        ),
        "head": lambda s: Head(s, norm=_plain_norm(s.hidden)),
    },
    "bloom": {
        "embedding": lambda s: _embedding(s, norm=nn.LayerNorm(s.hidden)),
        "block": lambda s: Block(
            s,
            nn.LayerNorm,
            Attention(s, AlibiCore(s.heads), bias=True, output_bias=True, rope=0),
            two_layer(s.hidden, s.ffn, bias=True),
        ),
        "head": _layer_norm_head,
    },
}
"""Layers by kind, of every family."""


def example(kind: str, sizes: Sizes) -> tuple[Tensor, ...]:
    """Return inputs of a layer of a kind: tokens, or the residual stream, the head's with
    targets.
    """
    tokens = torch.zeros(sizes.micro_batch, sizes.sequence, dtype=torch.long)
    if kind == "embedding":
        return (tokens,)
    x = torch.randn(sizes.micro_batch, sizes.sequence, sizes.hidden)
    return (x, tokens) if kind == "head" else (x,)
