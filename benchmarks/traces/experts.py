"""Mixtures of experts with static shapes.

A router scores every token for every expert and keeps the ``top_k`` best; each expert takes
its ``slots`` highest-scored tokens, so that all experts together are one batched product per
projection. Tokens beyond an expert's slots are dropped; slots that no token wants weigh zero.
"""

from typing import cast

import torch
from torch import Tensor, nn

from benchmarks.traces.layers import Gate
from benchmarks.traces.sizes import Sizes

__all__ = ["Experts"]


class Router(nn.Module):
    """Scores ``[b, s, experts]`` to weights of the same shape, zero but for the top k.

    Parameters
    ----------
    sizes : Sizes
    function : {"softmax", "sigmoid"}
        Of the scores (DeepSeek-V3: sigmoid).
    balance : bool
        A learned bias that enters the choice and not the weight (DeepSeek-V3).
    """

    fused, op = True, "elementwise"

    def __init__(self, sizes: Sizes, function: str = "softmax", balance: bool = False) -> None:
        super().__init__()
        self.function, self.top_k = function, sizes.top_k
        self.bias = nn.Parameter(torch.zeros(sizes.experts)) if balance else None

    def forward(self, logits: Tensor) -> Tensor:
        wide = logits.float()
        scores = wide.sigmoid() if self.function == "sigmoid" else wide.softmax(-1)
        choice = scores if self.bias is None else scores + self.bias.float()
        best = choice.topk(self.top_k, dim=-1).indices
        gates = torch.zeros_like(scores).scatter(-1, best, scores.gather(-1, best))
        return (gates / (gates.sum(-1, keepdim=True) + 1e-9)).to(logits.dtype)


class DispatchLayer(nn.Module):
    """Tokens ``[b, s, hidden]`` to the experts' ``[experts, slots, hidden]``."""

    fused, op = True, "dispatch"

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        _, tokens = _choice(weights, self.slots)
        return x.flatten(0, 1)[tokens]


class Combine(nn.Module):
    """The experts' results, weighted and added up, back to ``[b, s, hidden]``."""

    fused, op = True, "combine"

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots

    def forward(self, y: Tensor, weights: Tensor) -> Tensor:
        weight, tokens = _choice(weights, self.slots)
        weighted = (y * weight.unsqueeze(-1)).flatten(0, 1)
        batch, sequence, _ = weights.shape
        total = y.new_zeros(batch * sequence, y.shape[-1])
        return total.index_add(0, tokens.flatten(), weighted).view(batch, sequence, -1)


def _choice(weights: Tensor, slots: int) -> tuple[Tensor, Tensor]:
    """Weight and token of every slot, both ``[experts, slots]``."""
    best = weights.flatten(0, 1).transpose(0, 1).topk(slots, dim=-1)
    return best.values, best.indices


class Stacked(nn.Module):
    """One projection per expert: ``[experts, slots, in]`` to ``[experts, slots, out]``."""

    def __init__(self, experts: int, inputs: int, outputs: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, outputs, inputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(experts, outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        transposed = self.weight.transpose(1, 2)
        return (
            torch.bmm(x, transposed)
            if self.bias is None
            else torch.baddbmm(self.bias.unsqueeze(1), x, transposed)
        )


class Experts(nn.Module):
    """Router, dispatch, gated experts, combine.

    Parameters
    ----------
    sizes : Sizes
    router : {"softmax", "sigmoid"}
    balance : bool
        See `Router`.
    gate : {"swiglu", "geglu"}
    bias : bool
        Of router and experts (gpt-oss).
    """

    def __init__(
        self,
        sizes: Sizes,
        *,
        router: str = "softmax",
        balance: bool = False,
        gate: str = "swiglu",
        bias: bool = False,
    ) -> None:
        super().__init__()
        experts, hidden, inner = sizes.experts, sizes.hidden, sizes.expert_ffn
        self.router = nn.Linear(hidden, experts, bias=bias)
        self.scores = Router(sizes, router, balance)
        self.dispatch = DispatchLayer(sizes.slots)
        self.gate = Stacked(experts, hidden, inner, bias)
        self.up = Stacked(experts, hidden, inner, bias)
        self.activation = Gate(gate)
        self.down = Stacked(experts, inner, hidden, bias)
        self.combine = Combine(sizes.slots)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.scores(self.router(x))
        slots = self.dispatch(x, weights)
        inner = self.down(self.activation(self.gate(slots), self.up(slots)))
        return cast(Tensor, self.combine(inner, weights))
