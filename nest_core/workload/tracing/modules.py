"""Every family's distinct layers as plain PyTorch modules.

A family is a dictionary from the kind of a layer to a function that builds it at given sizes.
Modules hold the parameters of the published implementations and do their work; constants that
cost nothing (initial values, epsilons, rotary bases, groups of experts) are not followed. Fused
projections are written as separate ones, so that every dimension is a product of sizes.
Key-value heads may be fewer than heads in every family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from nest_core.workload.tracing.experts import Experts
from nest_core.workload.tracing.latent import LatentAttention
from nest_core.workload.tracing.layers import (
    Add,
    AlibiCore,
    Attention,
    CappedCore,
    Core,
    Dropout,
    Gated,
    LossLayer,
    RmsNorm,
    ScaleLayer,
    SinkCore,
    SquaredRelu,
    TwoLayer,
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


class Embedding(nn.Module):
    """Tokens ``[b, s]`` to the residual stream, through the given steps."""

    def __init__(self, sizes: Sizes, **steps: nn.Module) -> None:
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.steps = list(steps)
        for name, step in steps.items():
            setattr(self, name, step)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.tokens(tokens)
        for name in self.steps:
            x = getattr(self, name)(x)
        return x


class Head(nn.Module):
    """Residual stream and targets ``[b, s]`` to the loss, through steps before the logits."""

    def __init__(self, sizes: Sizes, *, bias: bool = False, **steps: nn.Module) -> None:
        super().__init__()
        self.steps = list(steps)
        for name, step in steps.items():
            setattr(self, name, step)
        self.logits = nn.Linear(sizes.hidden, sizes.vocabulary, bias=bias)
        self.loss = LossLayer()

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        for name in self.steps:
            x = getattr(self, name)(x)
        loss: Tensor = self.loss(self.logits(x), targets)
        return loss


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
        self.attention_dropout = Dropout() if dropout else nn.Identity()
        self.attention_residual = Add()
        self.mlp_norm = norm(sizes.hidden)
        self.mlp = mlp
        self.experts = experts
        self.shared = shared
        self.shared_add = Add()
        self.mlp_post_norm = norm(sizes.hidden) if post_norm else nn.Identity()
        self.mlp_dropout = Dropout() if dropout else nn.Identity()
        self.mlp_residual = Add()

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_post_norm(self.attention(self.attention_norm(x)))
        x = self.attention_residual(x, self.attention_dropout(y))
        z = self.mlp_norm(x)
        y = self.mlp(z) if self.mlp is not None else self._mixture(z)
        output: Tensor = self.mlp_residual(x, self.mlp_dropout(self.mlp_post_norm(y)))
        return output

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
        self.attention_dropout = Dropout()
        self.attention_residual = Add()
        self.attention_norm = nn.LayerNorm(sizes.hidden)
        self.mlp = mlp
        self.mlp_dropout = Dropout()
        self.mlp_residual = Add()
        self.mlp_norm = nn.LayerNorm(sizes.hidden)

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_dropout(self.attention(x))
        x = self.attention_norm(self.attention_residual(x, y))
        y = self.mlp_dropout(self.mlp(x))
        output: Tensor = self.mlp_norm(self.mlp_residual(x, y))
        return output


def _plain_norm(width: int) -> nn.Module:
    return nn.LayerNorm(width, bias=False)


def _rms_embedding(sizes: Sizes) -> nn.Module:
    return Embedding(sizes)


def _rms_head(sizes: Sizes) -> nn.Module:
    return Head(sizes, norm=RmsNorm(sizes.hidden))


def _layer_norm_head(sizes: Sizes) -> nn.Module:
    return Head(sizes, norm=nn.LayerNorm(sizes.hidden))


def _gpt_embedding(sizes: Sizes) -> nn.Module:
    return Embedding(sizes, positions=Positions(sizes.positions, sizes.hidden), dropout=Dropout())


def _gpt_block(sizes: Sizes) -> nn.Module:
    core = Core(dropout=True)
    return Block(
        sizes,
        nn.LayerNorm,
        Attention(sizes, core, bias=True, output_bias=True, rope=0),
        TwoLayer(sizes.hidden, sizes.ffn, bias=True),
        dropout=True,
    )


def _bert_embedding(sizes: Sizes) -> nn.Module:
    return Embedding(
        sizes,
        positions=Positions(sizes.positions, sizes.hidden),
        token_types=TokenTypes(sizes.hidden),
        norm=nn.LayerNorm(sizes.hidden),
        dropout=Dropout(),
    )


def _bert_block(sizes: Sizes) -> nn.Module:
    core = Core(causal=False, dropout=True)
    return PostNormBlock(
        sizes,
        Attention(sizes, core, bias=True, output_bias=True, rope=0),
        TwoLayer(sizes.hidden, sizes.ffn, bias=True),
    )


def _bert_head(sizes: Sizes) -> nn.Module:
    return Head(
        sizes,
        bias=True,
        transform=nn.Linear(sizes.hidden, sizes.hidden),
        activation=nn.GELU(),
        norm=nn.LayerNorm(sizes.hidden),
    )


def _llama_block(sizes: Sizes) -> nn.Module:
    return _gated_block(sizes, Attention(sizes, Core()))


def _qwen2_block(sizes: Sizes) -> nn.Module:
    return _gated_block(sizes, Attention(sizes, Core(), bias=True))


def _qwen3_block(sizes: Sizes) -> nn.Module:
    return _gated_block(sizes, Attention(sizes, Core(), head_norm=True))


def _latent_block(sizes: Sizes) -> nn.Module:
    return _gated_block(sizes, LatentAttention(sizes))


def _gated_block(sizes: Sizes, attention: nn.Module) -> nn.Module:
    return Block(sizes, RmsNorm, attention, Gated(sizes.hidden, sizes.ffn))


def _nemotron_block(sizes: Sizes) -> nn.Module:
    return Block(
        sizes,
        nn.LayerNorm,
        Attention(sizes, Core(), rope=0.5),
        TwoLayer(sizes.hidden, sizes.ffn, bias=False, activation=SquaredRelu()),
    )


def _mixtral_block(sizes: Sizes) -> nn.Module:
    return Block(sizes, RmsNorm, Attention(sizes, Core()), experts=Experts(sizes))


def _qwen3_moe_block(sizes: Sizes) -> nn.Module:
    attention = Attention(sizes, Core(), head_norm=True)
    return Block(sizes, RmsNorm, attention, experts=Experts(sizes))


def _deepseek_v2_moe_block(sizes: Sizes) -> nn.Module:
    return _shared_experts_block(sizes, Experts(sizes))


def _deepseek_v3_moe_block(sizes: Sizes) -> nn.Module:
    return _shared_experts_block(sizes, Experts(sizes, router="sigmoid", balance=True))


def _shared_experts_block(sizes: Sizes, experts: Experts) -> nn.Module:
    shared = Gated(sizes.hidden, sizes.shared_ffn)
    return Block(sizes, RmsNorm, LatentAttention(sizes), experts=experts, shared=shared)


def _grok_embedding(sizes: Sizes) -> nn.Module:
    return Embedding(sizes, scale=ScaleLayer(sizes.hidden**0.5))


def _grok_block(sizes: Sizes) -> nn.Module:
    experts = Experts(sizes, gate="geglu")
    attention = Attention(sizes, CappedCore())
    return Block(sizes, RmsNorm, attention, experts=experts, post_norm=True)


def _gpt_oss_block(sizes: Sizes) -> nn.Module:
    attention = Attention(sizes, SinkCore(sizes.heads), bias=True, output_bias=True)
    return Block(sizes, RmsNorm, attention, experts=Experts(sizes, bias=True))


def _mpt_block(sizes: Sizes) -> nn.Module:
    attention = Attention(sizes, AlibiCore(sizes.heads), rope=0)
    return Block(sizes, _plain_norm, attention, TwoLayer(sizes.hidden, sizes.ffn, bias=False))


def _mpt_head(sizes: Sizes) -> nn.Module:
    return Head(sizes, norm=_plain_norm(sizes.hidden))


def _bloom_embedding(sizes: Sizes) -> nn.Module:
    return Embedding(sizes, norm=nn.LayerNorm(sizes.hidden))


def _bloom_block(sizes: Sizes) -> nn.Module:
    attention = Attention(sizes, AlibiCore(sizes.heads), bias=True, output_bias=True, rope=0)
    mlp = TwoLayer(sizes.hidden, sizes.ffn, bias=True)
    return Block(sizes, nn.LayerNorm, attention, mlp)


def _rms_family(**blocks: Build) -> dict[str, Build]:
    return {"embedding": _rms_embedding, **blocks, "head": _rms_head}


FAMILIES: Mapping[str, Mapping[str, Build]] = {
    "gpt": {"embedding": _gpt_embedding, "block": _gpt_block, "head": _layer_norm_head},
    "bert": {"embedding": _bert_embedding, "block": _bert_block, "head": _bert_head},
    "llama": _rms_family(block=_llama_block),
    "qwen2": _rms_family(block=_qwen2_block),
    "qwen3": _rms_family(block=_qwen3_block),
    "nemotron": {"embedding": _rms_embedding, "block": _nemotron_block, "head": _layer_norm_head},
    "mixtral": _rms_family(moe_block=_mixtral_block),
    "qwen3_moe": _rms_family(moe_block=_qwen3_moe_block),
    "deepseek_v2": _rms_family(block=_latent_block, moe_block=_deepseek_v2_moe_block),
    "deepseek_v3": _rms_family(block=_latent_block, moe_block=_deepseek_v3_moe_block),
    "grok1": {"embedding": _grok_embedding, "moe_block": _grok_block, "head": _rms_head},
    "gpt_oss": _rms_family(moe_block=_gpt_oss_block),
    "mpt": {"embedding": _rms_embedding, "block": _mpt_block, "head": _mpt_head},
    "bloom": {"embedding": _bloom_embedding, "block": _bloom_block, "head": _layer_norm_head},
}
"""Layers by kind, of every family."""


def example(kind: str, sizes: Sizes) -> tuple[Tensor, ...]:
    """Inputs of a layer of a kind: tokens, or the residual stream, the head's with targets."""
    tokens = torch.zeros(sizes.micro_batch, sizes.sequence, dtype=torch.long)
    if kind == "embedding":
        return (tokens,)
    x = torch.randn(sizes.micro_batch, sizes.sequence, sizes.hidden)
    return (x, tokens) if kind == "head" else (x,)
