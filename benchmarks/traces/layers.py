"""The pieces that transformer layers share: norms, rotations, attention, dense MLPs.

Plain PyTorch; tensors are ``[micro_batch, sequence, hidden]``, per head
``[micro_batch, heads, sequence, head_dim]``. A module with ``fused = True`` is what training
frameworks run as one kernel; the tracer folds it into one node of its ``op`` and ``function``.
"""

import math
from collections import OrderedDict
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.traces.sizes import Sizes

__all__ = [
    "DROPOUT",
    "Add",
    "AlibiCore",
    "Attention",
    "CappedCore",
    "Core",
    "Gated",
    "LossLayer",
    "Merge",
    "RmsNorm",
    "Rope",
    "ScaleLayer",
    "SigmoidGate",
    "SinkCore",
    "SplitHeads",
    "SquaredRelu",
    "two_layer",
]

DROPOUT = 0.1


class Add(nn.Module):
    """A residual connection."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class ScaleLayer(nn.Module):
    """A constant multiplier."""

    fused, op, function = True, "elementwise", "scale"

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class RmsNorm(nn.Module):
    """Zhang and Sennrich 2019 (arXiv:1910.07467), statistics in fp32."""

    fused, op, function = True, "norm", "rmsnorm"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (wide * scale).to(x.dtype) * self.weight


class Rope(nn.Module):
    """Rotary position embedding (Su et al. 2021, arXiv:2104.09864) of ``[b, heads, s, d]``.

    ``share`` is the part of the width that is rotated; the rest passes through.
    """

    fused, op, function = True, "elementwise", "rope"

    def __init__(self, share: float = 1.0, base: float = 10_000.0) -> None:
        super().__init__()
        self.share, self.base = share, base

    def forward(self, x: Tensor) -> Tensor:
        half = int(x.shape[-1] * self.share) // 2
        steps = torch.arange(half, device=x.device, dtype=torch.float32)
        places = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)
        angle = torch.outer(places, self.base ** (-steps / half))
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)


class SplitHeads(nn.Module):
    """``[b, s, heads * d]`` to ``[b, heads, s, d]``, a view."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class Merge(nn.Module):
    """``[b, heads, s, d]`` back to ``[b, s, heads * d]``."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(-2)


class Core(nn.Module):
    """Scaled dot-product attention; key-value heads may be fewer than heads."""

    def __init__(self, causal: bool = True, dropout: bool = False) -> None:
        super().__init__()
        self.causal, self.dropout = causal, DROPOUT if dropout else 0.0

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal,
            enable_gqa=key.shape[1] != query.shape[1],
        )


class AlibiCore(nn.Module):
    """Attention with linear biases (Press et al. 2021, arXiv:2108.12409), causal.

    A head's bias falls by its slope with every token of distance; the slopes are those of a
    power of two of heads.
    """

    fused, op, function, causal = True, "attention", "alibi", True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        places = torch.arange(query.shape[-2], device=query.device)
        distance = places[:, None] - places[None, :]
        ranks = torch.arange(1, self.heads + 1, device=query.device)
        bias = -torch.pow(2.0, -8.0 * ranks / self.heads)[:, None, None] * distance
        bias = bias.masked_fill(distance < 0, float("-inf")).to(query.dtype)
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=bias,
            enable_gqa=key.shape[1] != query.shape[1],
        )


class CappedCore(nn.Module):
    """Grok-1's attention: scores pass through ``cap * tanh(score / cap)``, causal."""

    fused, op, function, causal, cap = True, "attention", "capped", True, 30.0

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = _scores(query, key)
        probabilities = torch.softmax(_masked(self.cap * torch.tanh(scores / self.cap)), dim=-1)
        return _mix(probabilities.to(value.dtype), value)


class SinkCore(nn.Module):
    """Attention whose softmax has one learned logit per head that takes no value, causal."""

    fused, op, function, causal = True, "attention", "sinks", True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.sinks = nn.Parameter(torch.zeros(heads))

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = _masked(_scores(query, key))
        sinks = self.sinks.float().view(1, key.shape[1], -1, 1, 1)
        every = torch.cat((scores, sinks.expand(*scores.shape[:-1], 1)), dim=-1)
        return _mix(torch.softmax(every, dim=-1)[..., :-1].to(value.dtype), value)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """``[b, kv_heads, group, s, s]`` in fp32, scaled."""
    batch, heads, tokens, width = query.shape
    grouped = query.view(batch, key.shape[1], heads // key.shape[1], tokens, width)
    return (grouped @ key.unsqueeze(2).transpose(-1, -2)).float() / math.sqrt(width)


def _masked(scores: Tensor) -> Tensor:
    tokens = scores.shape[-1]
    later = torch.ones(tokens, tokens, device=scores.device, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, float("-inf"))


def _mix(probabilities: Tensor, value: Tensor) -> Tensor:
    """``[b, heads, s, d]``."""
    return (probabilities @ value.unsqueeze(2)).flatten(1, 2)


class Attention(nn.Module):
    """Projections to heads, the core, and the projection back.

    Parameters
    ----------
    sizes : Sizes
    core : nn.Module
        Of ``query, key, value`` per head.
    bias, output_bias : bool
        Of the projections into heads, and of the one back.
    head_norm : bool
        RMSNorm of every query and key head (Qwen3).
    whole_norm : bool
        RMSNorm of all query heads together, and of all key heads (OLMo 2).
    gate : bool
        A projection whose sigmoid weights what attention returns (Qwen3-Next).
    rope : float
        Share of a head that is rotated; 0: none.
    """

    def __init__(
        self,
        sizes: Sizes,
        core: nn.Module,
        *,
        bias: bool = False,
        output_bias: bool = False,
        head_norm: bool = False,
        whole_norm: bool = False,
        gate: bool = False,
        rope: float = 1.0,
    ) -> None:
        super().__init__()
        hidden, heads, kv_heads, width = sizes.hidden, sizes.heads, sizes.kv_heads, sizes.head_dim
        self.query = nn.Linear(hidden, heads * width, bias=bias)
        self.key = nn.Linear(hidden, kv_heads * width, bias=bias)
        self.value = nn.Linear(hidden, kv_heads * width, bias=bias)
        self.gate = nn.Linear(hidden, heads * width, bias=bias) if gate else None
        self.query_heads = SplitHeads(heads)
        self.key_heads = SplitHeads(kv_heads)
        self.value_heads = SplitHeads(kv_heads)
        norm = RmsNorm if head_norm or whole_norm else nn.Identity
        self.whole_norm = whole_norm
        self.query_norm = norm(heads * width if whole_norm else width)
        self.key_norm = norm(kv_heads * width if whole_norm else width)
        self.rope_query = Rope(rope) if rope else nn.Identity()
        self.rope_key = Rope(rope) if rope else nn.Identity()
        self.core = core
        self.merge = Merge()
        self.gating = SigmoidGate()
        self.output = nn.Linear(heads * width, hidden, bias=output_bias)

    def forward(self, x: Tensor) -> Tensor:
        query = self.rope_query(self._heads(self.query(x), self.query_norm, self.query_heads))
        key = self.rope_key(self._heads(self.key(x), self.key_norm, self.key_heads))
        mixed = self.merge(self.core(query, key, self.value_heads(self.value(x))))
        if self.gate is not None:
            mixed = self.gating(mixed, self.gate(x))
        return cast(Tensor, self.output(mixed))

    def _heads(self, x: Tensor, norm: nn.Module, split: nn.Module) -> Tensor:
        return cast(Tensor, split(norm(x)) if self.whole_norm else norm(split(x)))


class SigmoidGate(nn.Module):
    """A tensor times the sigmoid of another."""

    fused, op, function = True, "elementwise", "sigmoid_gate"

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        return x * gate.sigmoid()


class SquaredRelu(nn.Module):
    """Nemotron's activation."""

    fused, op, function = True, "elementwise", "relu2"

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


class Gate(nn.Module):
    """``activation(gate) * up``, one kernel."""

    fused, op = True, "elementwise"

    def __init__(self, function: str = "swiglu") -> None:
        super().__init__()
        self.function = function

    def forward(self, gate: Tensor, up: Tensor) -> Tensor:
        return (F.silu if self.function == "swiglu" else F.gelu)(gate) * up


class Gated(nn.Module):
    """An MLP with a gate: three projections (Shazeer 2020, arXiv:2002.05202).

    With ``weighted`` a further projection weights the result of every token (Qwen2-MoE's shared
    experts).
    """

    def __init__(
        self, hidden: int, inner: int, function: str = "swiglu", *, weighted: bool = False
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.activation = Gate(function)
        self.down = nn.Linear(inner, hidden, bias=False)
        self.weight = nn.Linear(hidden, 1, bias=False) if weighted else None
        self.weighting = SigmoidGate()

    def forward(self, x: Tensor) -> Tensor:
        y = self.down(self.activation(self.gate(x), self.up(x)))
        return cast(Tensor, y if self.weight is None else self.weighting(y, self.weight(x)))


def two_layer(
    hidden: int, inner: int, *, bias: bool, activation: nn.Module | None = None
) -> nn.Module:
    """Return an MLP of two projections."""
    up, down = nn.Linear(hidden, inner, bias=bias), nn.Linear(inner, hidden, bias=bias)
    return nn.Sequential(OrderedDict(up=up, activation=activation or nn.GELU(), down=down))


class LossLayer(nn.Module):
    """Mean cross-entropy over the vocabulary, in fp32."""

    fused, op, function = True, "loss", "cross_entropy"

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
