"""Every family's distinct layers as plain PyTorch modules.

A family is the table ``[layers]`` of its file, which says what the parts here are put together to.
Modules hold the parameters of the published implementations and do their work; constants that
cost nothing (initial values, epsilons, rotary bases, groups of experts) are not followed. Fused
projections are written as separate ones, so that every dimension is a product of sizes.
Key-value heads may be fewer than heads in every family.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from benchmarks.traces.experts import Experts
from benchmarks.traces.latent import LatentAttention
from benchmarks.traces.layers import (
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
from benchmarks.traces.linear import DeltaAttention
from benchmarks.traces.sizes import PRIMES, Sizes
from nest_core.documents import load_toml, preset_names, preset_path
from nest_core.workload.tracing.tracer import trace

__all__ = ["FAMILIES", "Build", "builders", "example", "trace_family"]

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
    """Attention, then an MLP or experts, each added to the residual stream.

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
    order : {"pre", "sandwich", "inner", "parallel"}
        Norms before both halves; before and after them (Grok-1, Gemma); after them alone (OLMo 2);
        one norm for both halves, which run side by side (Cohere).
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
        order: str = "pre",
    ) -> None:
        super().__init__()
        before, after = order != "inner", order in ("sandwich", "inner")
        self.parallel = order == "parallel"
        self.attention_norm = norm(sizes.hidden) if before else nn.Identity()
        self.attention = attention
        self.attention_post_norm = norm(sizes.hidden) if after else nn.Identity()
        self.attention_dropout = nn.Dropout(DROPOUT) if dropout else nn.Identity()
        self.attention_residual = Add()
        self.mlp_norm = norm(sizes.hidden) if before and not self.parallel else nn.Identity()
        self.mlp, self.experts = mlp, experts
        self.shared = shared
        self.shared_add = Add()
        self.mlp_post_norm = norm(sizes.hidden) if after else nn.Identity()
        self.mlp_dropout = nn.Dropout(DROPOUT) if dropout else nn.Identity()
        self.mlp_residual = Add()

    def forward(self, x: Tensor) -> Tensor:
        z = self.attention_norm(x)
        y = self.attention_post_norm(self.attention(z))
        x = self.attention_residual(x, self.attention_dropout(y))
        if not self.parallel:
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


NORMS: Mapping[str, Norm] = {
    "rmsnorm": RmsNorm,
    "layernorm": nn.LayerNorm,
    "plain_layernorm": _plain_norm,
}
CORES: Mapping[str, Callable[[Sizes], nn.Module]] = {
    "plain": lambda sizes: Core(),
    "dropout": lambda sizes: Core(dropout=True),
    "both_ways": lambda sizes: Core(causal=False, dropout=True),
    "alibi": lambda sizes: AlibiCore(sizes.heads),
    "capped": lambda sizes: CappedCore(),
    "sinks": lambda sizes: SinkCore(sizes.heads),
}
STEPS: Mapping[str, Callable[[Sizes, Norm], nn.Module]] = {
    "positions": lambda sizes, _: Positions(sizes.positions, sizes.hidden),
    "token_types": lambda sizes, _: TokenTypes(sizes.hidden),
    "norm": lambda sizes, norm: norm(sizes.hidden),
    "scale": lambda sizes, _: ScaleLayer(sizes.hidden**0.5),
    "dropout": lambda sizes, _: nn.Dropout(DROPOUT),
    "transform": lambda sizes, _: nn.Linear(sizes.hidden, sizes.hidden),
    "activation": lambda sizes, _: nn.GELU(),
}


def _attention(sizes: Sizes, kind: str = "heads", core: str = "plain", **more: Any) -> nn.Module:
    if kind == "heads":
        return Attention(sizes, CORES[core](sizes), **more)
    return LatentAttention(sizes, **more) if kind == "latent" else DeltaAttention(sizes)


def _mlp(sizes: Sizes, kind: str = "swiglu", *, bias: bool = False) -> nn.Module:
    if kind in ("swiglu", "geglu"):
        return Gated(sizes.hidden, sizes.ffn, kind)
    activation = SquaredRelu() if kind == "relu2" else None
    return two_layer(sizes.hidden, sizes.ffn, bias=bias, activation=activation)


def _block(layers: Mapping[str, Any], kind: str, sizes: Sizes) -> nn.Module:
    local = layers["local"] if kind.startswith("local") else layers
    attention = _attention(sizes, **local.get("attention", {}))
    order = layers.get("order", "pre")
    if order == "post":
        return PostNormBlock(sizes, attention, _mlp(sizes, **layers["mlp"]))
    parts: dict[str, Any] = {"order": order, "dropout": layers.get("dropout", False)}
    if kind.endswith("moe_block"):
        parts["experts"] = Experts(sizes, **layers["experts"])
        if "shared" in layers:
            parts["shared"] = Gated(sizes.hidden, sizes.shared_ffn, **layers["shared"])
    else:
        parts["mlp"] = _mlp(sizes, **layers["mlp"])
    return Block(sizes, NORMS[layers.get("norm", "rmsnorm")], attention, **parts)


def _end(layers: Mapping[str, Any], kind: str, sizes: Sizes) -> nn.Module:
    norm = NORMS[layers.get("norm", "rmsnorm")]
    names = layers.get(kind, ["norm"] if kind == "head" else [])
    steps = {name: STEPS[name](sizes, norm) for name in names}
    if kind == "embedding":
        return _embedding(sizes, **steps)
    return Head(sizes, bias=layers.get("head_bias", False), **steps)


def builders(layers: Mapping[str, Any]) -> dict[str, Build]:
    """Return what builds each kind of layer of a family.

    Parameters
    ----------
    layers : mapping
        The table ``[layers]`` of its file.
    """
    kinds = [kind for kind, part in (("block", "mlp"), ("moe_block", "experts")) if part in layers]
    if "local" in layers:
        kinds += [f"local_{kind}" for kind in kinds]
    return {
        "embedding": partial(_end, layers, "embedding"),
        **{kind: partial(_block, layers, kind) for kind in kinds},
        "head": partial(_end, layers, "head"),
    }


FAMILIES: Mapping[str, Mapping[str, Build]] = {
    name: builders(file["layers"])
    for name in preset_names("families")
    if "layers" in (file := load_toml(preset_path("families", f"{name}.toml")))
}
"""Layers by kind, of every family."""


def trace_family(family: str) -> dict[str, list[dict[str, Any]]]:
    """Return the nodes of a family's distinct layers by kind, traced afresh."""
    layers = {}
    for kind, build in FAMILIES[family].items():
        with torch.device("meta"):
            module, inputs = build(PRIMES), example(kind, PRIMES)
        layers[kind] = trace(module, inputs, PRIMES.symbols)
    return layers


def example(kind: str, sizes: Sizes) -> tuple[Tensor, ...]:
    """Return inputs of a layer of a kind: tokens, or the residual stream, the head's with
    targets.
    """
    tokens = torch.zeros(sizes.micro_batch, sizes.sequence, dtype=torch.long)
    if kind == "embedding":
        return (tokens,)
    x = torch.randn(sizes.micro_batch, sizes.sequence, sizes.hidden)
    return (x, tokens) if kind == "head" else (x,)
