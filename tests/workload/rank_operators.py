"""What a rank computes by itself: every operator of a graph, with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["Operators", "Rank", "Value"]

CAP = 30.0


@dataclass(frozen=True)
class Rank:
    """Coordinates."""

    tp: int
    cp: int
    ep: int


@dataclass
class Value:
    """A rank's tensor, and which tokens of the sequence lie along its token axis."""

    data: Tensor
    places: Tensor | None = None


class Operators:
    """Rules of operators; who inherits says what a rank holds (`length`, `_weight`)."""

    sizes: dict[str, int]
    nodes: dict[str, Any]
    scale: float
    causal: bool

    def length(self, dim: Sequence[str | int], split: Sequence[Any]) -> int:
        """Of one dimension on one rank."""
        raise NotImplementedError

    def _weight(self, node: Any, rank: Rank, number: int = 0) -> Tensor:
        raise NotImplementedError

    def _compute(self, node: Any, rank: Rank, read: list[Value]) -> Value:
        x, places = read[0].data, read[0].places
        if node.op in ("linear", "grouped_linear"):
            y = x @ self._weight(node, rank).transpose(-1, -2)
            if len(node.weights) > 1 and not (self._sums(node) and rank.tp):
                bias = self._weight(node, rank, 1)
                y = y + (bias.unsqueeze(1) if node.op == "grouped_linear" else bias)
            return Value(y, places)
        if node.op == "norm":
            centred = x - x.mean(-1, keepdim=True) if node.function == "layernorm" else x
            small = 1e-5 if node.function == "layernorm" else 1e-6
            y = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + small)
            y = y * self._weight(node, rank)
            return Value(y + self._weight(node, rank, 1) if len(node.weights) > 1 else y, places)
        if node.op == "reshape":
            return Value(self._reshaped(node, x), places)
        if node.op == "embedding":
            table = self._weight(node, rank)
            first = rank.tp * table.shape[0] if table.shape[0] < self.sizes["vocabulary"] else 0
            mine = (x >= first) & (x < first + table.shape[0])
            return Value(table[(x - first) * mine] * mine.unsqueeze(-1), places)
        if node.op == "position":
            table = self._weight(node, rank)
            rows = torch.zeros_like(places) if table.shape[0] == 2 else places
            return Value(x + table[rows], places)
        if node.op in ("elementwise", "dropout"):
            return Value(self._elementwise(node, rank, read), places)
        if node.op == "attention":
            return self._attention(node, rank, read)
        if node.op == "matmul" and node.core:
            return self._core_product(node, read)
        if node.op == "softmax" and node.core:
            return Value(self._masked(x * self.scale, places).softmax(-1), places)
        if node.op == "dispatch":
            rows = self._rows(x.shape[:2], places)
            return Value(x.flatten(0, 1)[rows], places)
        if node.op == "combine":
            return self._combine(read[0].data, read[1])
        raise AssertionError(f"no rule for {node.op}")

    def _sums(self, node: Any) -> bool:
        """Whether this product's result is a partial sum."""
        summed = node.weights[0][-1]
        return any(entry.axis == "tp" and entry.symbol in summed for entry in node.split)

    def _reshaped(self, node: Any, x: Tensor) -> Tensor:
        before = self.nodes[node.inputs[0]].shape
        atoms = [part for dim in before for part in dim]
        wanted = [part for dim in node.shape for part in dim]
        x = x.reshape([self.length([part], node.split) for part in atoms])
        x = x.permute([atoms.index(part) for part in wanted])
        return x.reshape([self.length(dim, node.split) for dim in node.shape])

    def _elementwise(self, node: Any, rank: Rank, read: list[Value]) -> Tensor:
        functions = (node.function or node.op).split("+")
        x = read[0].data
        if set(functions) <= {"add", "dropout"}:  # dropout as in evaluation
            total = x
            for other in read[1:]:
                total = total + other.data
            return total
        if functions[0] == "sigmoid_gate":
            return x * read[1].data.sigmoid()
        (function,) = functions
        if function == "rope":
            return _rotated(x, read[0].places)
        if function in ("swiglu", "geglu"):
            act = torch.nn.functional.silu if function == "swiglu" else torch.nn.functional.gelu
            return act(x) * read[1].data
        if function == "gelu":
            return torch.nn.functional.gelu(x)
        if function == "relu2":
            return x.relu().square()
        if function == "scale":
            return x * self.sizes["hidden"] ** 0.5
        if function in ("softmax", "sigmoid"):  # a router's; its balance enters the choice only
            return x.softmax(-1) if function == "softmax" else x.sigmoid()
        raise AssertionError(f"no rule for {function}")

    def _masked(self, scores: Tensor, places: Tensor) -> Tensor:
        if not self.causal:
            return scores
        later = torch.arange(self.sizes["sequence"])[None, :] > places[:, None]
        return scores.masked_fill(later, float("-inf"))

    def _attention(self, node: Any, rank: Rank, read: list[Value]) -> Value:
        queries, keys = (read[:2], read[2:4]) if len(read) == 5 else (read[:1], read[1:2])
        places = read[0].places
        scores: Any = 0.0
        for query, key in zip(queries, keys, strict=True):
            assert torch.equal(query.places, places)
            scores = scores + query.data @ _grouped(_sorted(key), query).transpose(-1, -2)
        scores = scores * self.scale
        local = scores.shape[1]
        heads = torch.arange(1, self.sizes["heads"] + 1)
        if local < len(heads):
            heads = heads[rank.tp * local : (rank.tp + 1) * local]
        if node.function == "alibi":
            slopes = torch.pow(2.0, -8.0 * heads.double() / self.sizes["heads"])
            distance = places[:, None] - torch.arange(self.sizes["sequence"])[None, :]
            scores = scores - slopes[:, None, None] * distance
        if node.function == "capped":
            scores = CAP * torch.tanh(scores / CAP)
        scores = self._masked(scores, places)
        if node.function == "sinks":
            sink = self._weight(node, rank)[None, :, None, None].expand(*scores.shape[:-1], 1)
            shares = torch.cat((scores, sink), -1).softmax(-1)[..., :-1]
        else:
            shares = scores.softmax(-1)
        return Value(shares @ _grouped(_sorted(read[-1]), Value(shares)), places)

    def _core_product(self, node: Any, read: list[Value]) -> Value:
        left, right = read
        other = _grouped(_sorted(right), left)
        if "keys" in node.shape[-1]:
            other = other.transpose(-1, -2)
        return Value(left.data @ other, left.places)

    def _rows(self, shape: Sequence[int], places: Tensor) -> Tensor:
        """Rows of the tokens of every expert, ``[experts, slots]``."""
        batch, tokens = shape
        experts, top_k = self.sizes["experts"], self.sizes["top_k"]
        found: list[list[int]] = [[] for _ in range(experts)]
        for sequence in range(batch):
            for number, place in enumerate(places.tolist()):
                for choice in range(top_k):
                    expert = (place * top_k + choice) % experts
                    found[expert].append(sequence * tokens + number)
        return torch.tensor(found)

    def _combine(self, y: Tensor, scores: Value) -> Value:
        batch, tokens, _ = scores.data.shape
        rows = self._rows((batch, tokens), scores.places)
        flat = scores.data.flatten(0, 1)
        gates = torch.stack([flat[row, expert] for expert, row in enumerate(rows)])
        total = torch.zeros(batch * tokens, y.shape[-1], dtype=y.dtype)
        total = total.index_add(0, rows.flatten(), (y * gates.unsqueeze(-1)).flatten(0, 1))
        return Value(total.view(batch, tokens, -1), scores.places)


def _sorted(value: Value) -> Tensor:
    """Keys or values in the order of the sequence."""
    order = value.places.argsort()
    return value.data[:, :, order]


def _grouped(keys: Tensor, queries: Value) -> Tensor:
    return keys.repeat_interleave(queries.data.shape[1] // keys.shape[1], 1)


def _rotated(x: Tensor, places: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = places.to(x.dtype)[:, None] * rates
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)
