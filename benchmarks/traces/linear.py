"""Linear attention: the gated delta rule (Yang et al. 2024, arXiv:2412.06464) of Qwen3-Next.

Every head carries a matrix of ``linear_key_dim`` by ``linear_value_dim`` from token to token. The
core here is the quadratic form without the correction of earlier entries: it has the operands, the
shapes and the causality of the rule, and is not its value.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.traces.layers import Merge, SplitHeads
from benchmarks.traces.sizes import Sizes

__all__ = ["DeltaAttention"]

TAPS = 4


class ShortConvolution(nn.Module):
    """A causal convolution of every channel over its last tokens, and SiLU."""

    fused, op, function = True, "elementwise", "convolution"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, TAPS) / TAPS)

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, TAPS - 1, 0))
        tokens = x.shape[1]
        taps = [padded[:, tap : tap + tokens] * self.weight[:, tap] for tap in range(TAPS)]
        return F.silu(torch.stack(taps).sum(0))


class Decay(nn.Module):
    """What a head keeps of its state at every token, applied to keys ``[b, heads, s, d]``."""

    fused, op, function = True, "elementwise", "decay"

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.zeros(heads))
        self.bias = nn.Parameter(torch.zeros(heads))

    def forward(self, key: Tensor, step: Tensor) -> Tensor:
        share = torch.exp(-self.rate.exp() * F.softplus(step + self.bias))
        repeats = share.shape[-1] // key.shape[1]
        repeated = key.unsqueeze(2).expand(-1, -1, repeats, -1, -1).flatten(1, 2)
        return repeated * share.transpose(1, 2).unsqueeze(-1)


class Write(nn.Module):
    """Values ``[b, heads, s, d]`` times how much of each is written."""

    fused, op, function = True, "elementwise", "sigmoid_gate"

    def forward(self, value: Tensor, strength: Tensor) -> Tensor:
        return value * strength.sigmoid().transpose(1, 2).unsqueeze(-1)


class DeltaCore(nn.Module):
    """Causal products of queries and keys, without softmax."""

    fused, op, function, causal = True, "attention", "delta", True

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-1, -2)).tril()
        return scores @ value


class GatedNorm(nn.Module):
    """RMSNorm of every head, times SiLU of a gate."""

    fused, op, function = True, "norm", "gated_rmsnorm"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (x.float() * scale).to(x.dtype) * self.weight * F.silu(gate)


class Repeat(nn.Module):
    """Key heads ``[b, key_heads, s, d]`` as often as there are value heads, a view."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        return x.unsqueeze(2).expand(-1, -1, self.times, -1, -1).flatten(1, 2)


class DeltaAttention(nn.Module):
    """Projections, short convolutions, the rule, a gated norm and the projection back."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        hidden, heads, values = sizes.hidden, sizes.linear_key_heads, sizes.linear_value_heads
        keys_width = heads * sizes.linear_key_dim
        values_width = values * sizes.linear_value_dim
        self.query = nn.Linear(hidden, keys_width, bias=False)
        self.key = nn.Linear(hidden, keys_width, bias=False)
        self.value = nn.Linear(hidden, values_width, bias=False)
        self.gate = nn.Linear(hidden, values_width, bias=False)
        self.step = nn.Linear(hidden, values, bias=False)
        self.strength = nn.Linear(hidden, values, bias=False)
        self.query_convolution = ShortConvolution(keys_width)
        self.key_convolution = ShortConvolution(keys_width)
        self.value_convolution = ShortConvolution(values_width)
        self.query_heads, self.key_heads = SplitHeads(heads), SplitHeads(heads)
        self.value_heads, self.gate_heads = SplitHeads(values), SplitHeads(values)
        self.query_repeat = Repeat(values // heads)
        self.decay = Decay(values)
        self.write = Write()
        self.core = DeltaCore()
        self.norm = GatedNorm(sizes.linear_value_dim)
        self.merge = Merge()
        self.output = nn.Linear(values_width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        query = self.query_repeat(self.query_heads(self.query_convolution(self.query(x))))
        key = self.key_heads(self.key_convolution(self.key(x)))
        value = self.value_heads(self.value_convolution(self.value(x)))
        key = self.decay(key, self.step(x))
        value = self.write(value, self.strength(x))
        mixed = self.norm(self.core(query, key, value), self.gate_heads(self.gate(x)))
        return cast(Tensor, self.output(self.merge(mixed)))
