"""Runs an operator graph with numbers, on all ranks at once, forward and backward.

Shares no code with the strategies: a graph is a list of operators that say what a rank holds a
part of (``split``) and what is exchanged (collectives). Every rank computes with its own tensors
and its own slices of the weights, and sees others only through the graph's collectives, which do
in either pass what the node says and nothing more. So where a collective is missing, superfluous
or of the wrong kind, an output or a gradient differs from the original graph's, run on one rank.

Ranks have coordinates (tp, cp, ep). Context-parallel ranks hold the chunks ``r`` and
``2 cp - 1 - r`` of the sequence, sequence-parallel ones a part of that. Expert-parallel ranks
have batches of their own. Tokens choose experts in turn, so that all experts get equally many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from rank_operators import Operators, Rank, Value
from torch import Tensor

__all__ = ["Machine"]


class _Exchange(torch.autograd.Function):
    """All ranks' tensors through one function forward, their gradients through another."""

    @staticmethod
    def forward(ctx: Any, forth: Callable, back: Callable, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.back = back
        return tuple(part.clone() for part in forth(list(parts)))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return (None, None, *(part.clone() for part in ctx.back(list(gradients))))


class Machine(Operators):
    """Ranks that run graphs of one model.

    Parameters
    ----------
    sizes : dict of str to int
        By symbol.
    tp, cp, ep : int
    """

    def __init__(self, sizes: dict[str, int], tp: int = 1, cp: int = 1, ep: int = 1) -> None:
        self.sizes = sizes
        self.degrees = {"tp": tp, "cp": cp, "ep": ep}
        self.ranks = [Rank(*at) for at in product(range(tp), range(cp), range(ep))]

    def run(
        self,
        nodes: Sequence[Any],
        weights: dict[tuple[str, int], Tensor],
        inputs: Callable[[int], Tensor],
        targets: Callable[[int], Tensor],
        scale: float,
        causal: bool,
    ) -> list[Value]:
        """The output of every rank.

        Parameters
        ----------
        nodes : sequence of nodes
        weights : dict
            Whole ones by node and number; `slices` afterwards holds what each rank took.
        inputs, targets : callable
            From ep rank to its batch: ``[b, s, hidden]`` or tokens ``[b, s]``; token numbers.
        scale : float
            Of the scores of attention.
        causal : bool
        """
        self.nodes = {node.name: node for node in nodes}
        self.weights, self.targets = weights, targets
        self.scale, self.causal = scale, causal
        self.slices: dict[tuple[str, int], dict[Rank, tuple[tuple[slice, ...], Tensor]]] = {}
        self.entered: dict[Rank, Value] = {}
        made: dict[str, dict[Rank, Value]] = {}
        waiting = [node for node in nodes if node.name.partition(".")[0] != "loss"]
        for node in waiting:
            if node.op == "collective":
                made[node.name] = self._collective(node, made[node.inputs[0]])
                continue
            made[node.name] = {}
            for rank in self.ranks:
                if node.op == "input":
                    value = self._input(node, rank, inputs(rank.ep))
                    self.entered[rank] = value
                else:
                    read = [made[name][rank] for name in node.inputs]
                    value = self._compute(node, rank, read)
                if value.data.is_floating_point():
                    self._check(node, tuple(value.data.shape), node.shape)
                made[node.name][rank] = value
        if "loss" in self.nodes:
            made["loss"] = self._loss(self.nodes["loss"], made)
        return [made[nodes[-1].name][rank] for rank in self.ranks]

    # What a rank holds -----------------------------------------------------------------------

    def length(self, dim: Sequence[str | int], split: Sequence[Any]) -> int:
        """Of one dimension on one rank."""
        total = 1.0
        for part in dim:
            total *= part if isinstance(part, int) else self.sizes[part]
            for entry in split:
                total /= entry.ranks if entry.symbol == part else 1.0
        assert total == int(total), (dim, total)
        return int(total)

    def _check(self, node: Any, found: tuple[int, ...], shape: Sequence[Any]) -> None:
        expected = tuple(self.length(dim, node.split) for dim in shape)
        assert found == expected, f"{node.name}: {found}, but its node says {expected}"

    def _weight(self, node: Any, rank: Rank, number: int = 0) -> Tensor:
        whole = self.weights[node.name, number]
        cut = []
        for dim, size in zip(node.weights[number], whole.shape, strict=True):
            pieces, at = 1, 0
            for entry in node.split:
                if entry.symbol in dim and entry.axis in ("tp", "ep"):
                    assert dim[0] == entry.symbol, "only the major part of a dimension is divided"
                    degree, pieces = self.degrees[entry.axis], int(entry.ranks)
                    at = getattr(rank, entry.axis) * pieces // degree
            cut.append(slice(at * size // pieces, (at + 1) * size // pieces))
        held = self.slices.setdefault((node.name, number), {})
        if rank not in held:
            held[rank] = (tuple(cut), whole[tuple(cut)].detach().clone().requires_grad_())
        return held[rank][1]

    def _places(self, rank: Rank, split: Sequence[Any]) -> Tensor:
        places = torch.arange(self.sizes["sequence"])
        axes = {entry.axis for entry in split if entry.symbol == "sequence"}
        if "cp" in axes:
            chunks = places.chunk(2 * self.degrees["cp"])
            places = torch.cat((chunks[rank.cp], chunks[-1 - rank.cp]))
        return places.chunk(self.degrees["tp"])[rank.tp] if "tp" in axes else places

    def _input(self, node: Any, rank: Rank, whole: Tensor) -> Value:
        split = node.split
        if whole.dtype == torch.long:  # every tensor-parallel rank has all token numbers
            places = self._places(rank, [entry for entry in split if entry.axis != "tp"])
            return Value(whole[:, places], places)
        places = self._places(rank, split)
        return Value(whole[:, places].detach().clone().requires_grad_(), places)

    # Collectives -----------------------------------------------------------------------------

    def _collective(self, node: Any, read: dict[Rank, Value]) -> dict[Rank, Value]:
        axis = next(
            (
                number
                for number, dim in enumerate(node.shape)
                if "sequence" in dim or "slots" in dim
            ),
            None,
        )
        groups: dict[tuple[int, ...], list[Rank]] = {}
        for rank in self.ranks:
            others = tuple(getattr(rank, name) for name in ("tp", "cp", "ep") if name != node.axis)
            groups.setdefault(others, []).append(rank)
        made: dict[Rank, Value] = {}
        sent = tuple(next(iter(read.values())).data.shape)
        forth = self._pass(node.forward, axis)
        back = self._gradient(node, axis)
        for members in groups.values():
            parts = [read[rank].data for rank in members]
            places = [read[rank].places for rank in members]
            results = _Exchange.apply(forth, back, *parts)
            kinds = set(node.forward)
            for at, rank in enumerate(members):
                where = places[at]
                if where is not None and kinds & {"all_gather", "ring"}:
                    where = torch.cat([each for each in places if each is not None])
                elif where is not None and "reduce_scatter" in kinds:
                    where = where.chunk(len(members))[at]
                made[rank] = Value(results[at], where)
        # A node's size is the whole buffer: what is gathered, or what is reduced.
        received = tuple(next(iter(made.values())).data.shape)
        gathers = set(node.forward) & {"all_gather", "ring"} or "reduce_scatter" in node.backward
        buffer = math.prod(received if gathers else sent)
        expected = math.prod(self.length(dim, node.split) for dim in node.shape)
        assert buffer == expected, f"{node.name}: {buffer} elements, but its node says {expected}"
        return made

    def _pass(self, names: Sequence[str], axis: int | None) -> Callable:
        def run(parts: list[Tensor]) -> list[Tensor]:
            for name in names:
                parts = self._exchange(name, parts, axis)
            return parts

        return run

    def _gradient(self, node: Any, axis: int | None) -> Callable:
        """What the backward pass does to gradients; context parallelism also fetches again."""
        names = list(node.backward)
        if node.axis == "cp":
            again, names = names[:-1], names[-1:]
            assert again == list(node.forward), "keys and values are fetched again"
            if names == ["ring"]:  # gradients travel on with the keys, and are summed on the way
                names = ["reduce_scatter"]
        return self._pass(names, axis)

    def _exchange(self, name: str, parts: list[Tensor], axis: int | None) -> list[Tensor]:
        ranks = len(parts)
        if name == "all_reduce":
            return [torch.stack(parts).sum(0)] * ranks
        if name in ("all_gather", "ring"):
            return [torch.cat(parts, axis)] * ranks
        if name == "reduce_scatter":
            return list(torch.stack(parts).sum(0).chunk(ranks, axis))
        if name == "all_to_all":
            if parts[0].shape[0] == self.sizes["experts"]:
                chunks = [part.chunk(ranks, 0) for part in parts]
                return [torch.cat([chunk[at] for chunk in chunks], 1) for at in range(ranks)]
            chunks = [part.chunk(ranks, 1) for part in parts]
            return [torch.cat([chunk[at] for chunk in chunks], 0) for at in range(ranks)]
        raise AssertionError(f"no collective {name}")

    def _loss(self, node: Any, made: dict[str, dict[Rank, Value]]) -> dict[Rank, Value]:
        """Mean cross-entropy; over a divided vocabulary from what the collectives exchange."""
        read = made[node.inputs[0]]
        divided = [entry for entry in node.split if entry.symbol == "vocabulary"]
        exchanges = {each.name for each in self.nodes.values() if each.inputs == ("loss",)}
        wanted = {"loss.maximum", "loss.sum", "loss.target"} if divided else set()
        assert exchanges == wanted
        results: dict[Rank, Value] = {}
        for rank in self.ranks:
            group = (
                [other for other in self.ranks if (other.cp, other.ep) == (rank.cp, rank.ep)]
                if divided
                else [rank]
            )
            peak = torch.stack([read[other].data.detach().amax(-1) for other in group]).amax(0)
            # Others' parts are constants here: the collectives do nothing backward.
            total: Any = 0.0
            chosen: Any = 0.0
            for number, other in enumerate(group):
                logits = read[other].data
                logits = logits if other == rank else logits.detach()
                goal = self.targets(rank.ep)[:, read[rank].places] - number * logits.shape[-1]
                mine = (goal >= 0) & (goal < logits.shape[-1])
                total = total + (logits - peak.unsqueeze(-1)).exp().sum(-1)
                picked = logits.gather(-1, (goal * mine).unsqueeze(-1)).squeeze(-1)
                chosen = chosen + picked * mine
            results[rank] = Value((total.log() + peak - chosen).mean())
        for name in exchanges:
            (each,) = (other for other in self.nodes.values() if other.name == name)
            assert each.forward == ("all_reduce",)
            assert not each.backward
            self._check(each, tuple(goal.shape), each.shape)
        return results
