"""The same blocks from plain torch.nn on the meta device: parameters and FLOP, exactly.

Nothing here is taken from the core but the configuration. PyTorch's counter counts every
matrix product that really runs, forward and backward; element-wise work it leaves out, as the
closed forms do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nest_core.costs.tables import model_flops
from nest_core.workload import Layer, Model, Operator, Strategy, chain

if TYPE_CHECKING:
    from torch import Tensor, nn

pytestmark = pytest.mark.usefixtures("torch_installed")

LLAMA = Model("llama", blocks=2, hidden=96, heads=12, kv_heads=4, head_dim=8, ffn=160,
              vocabulary=200, causal=False)  # fmt: skip
MULTI_QUERY = Model("mqa", blocks=1, hidden=64, heads=8, kv_heads=2, head_dim=16, ffn=96,
                    vocabulary=50, causal=False)  # fmt: skip
QWEN = Model("biased", blocks=1, hidden=64, heads=8, kv_heads=2, head_dim=16, ffn=96,
             vocabulary=50, bias=True, causal=False)  # fmt: skip
GPT = Model("gpt", blocks=3, hidden=80, heads=8, kv_heads=8, head_dim=10, ffn=320, vocabulary=120,
            positions=64, mlp="gelu", norm="layernorm", bias=True, causal=False, dropout=True,
            tied=True)  # fmt: skip
BERT = Model("bert", blocks=1, hidden=48, heads=4, kv_heads=4, head_dim=12, ffn=192, vocabulary=90,
             positions=32, mlp="gelu", norm="layernorm", bias=True, causal=False, dropout=True,
             tied=True, head_transform=True)  # fmt: skip
MOE = Model("moe", blocks=1, hidden=64, heads=8, kv_heads=2, head_dim=8, ffn=112, vocabulary=50,
            experts=4, top_k=2, causal=False)  # fmt: skip
DENSE = [LLAMA, MULTI_QUERY, QWEN, GPT, BERT]
BATCH, TOKENS = 2, 24


def norm(model: Model) -> nn.Module:
    from torch import nn

    kind = nn.LayerNorm if model.norm == "layernorm" else nn.RMSNorm
    return kind(model.hidden)


def mlp(model: Model) -> nn.Module:
    """Two or three projections, of one expert."""
    from torch import nn

    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            h, f, bias = model.hidden, model.ffn, model.bias
            self.up = nn.Linear(h, f, bias=bias)
            self.gate = nn.Linear(h, f, bias=bias) if model.mlp == "swiglu" else None
            self.down = nn.Linear(f, h, bias=bias)

        def forward(self, x: Tensor) -> Tensor:
            if self.gate is None:
                return self.down(nn.functional.gelu(self.up(x)))
            return self.down(nn.functional.silu(self.gate(x)) * self.up(x))

    return Mlp()


def block(model: Model) -> nn.Module:
    """Pre-norm attention and MLP; grouped queries share their keys and values."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            h, d = model.hidden, model.head_dim
            self.norms = nn.ModuleList([norm(model), norm(model)])
            self.query = nn.Linear(h, model.heads * d, bias=model.bias)
            self.key = nn.Linear(h, model.kv_heads * d, bias=model.bias)
            self.value = nn.Linear(h, model.kv_heads * d, bias=model.bias)
            self.output = nn.Linear(model.heads * d, h, bias=model.bias)
            self.router = nn.Linear(h, model.experts, bias=False) if model.experts > 1 else None
            self.mlps = nn.ModuleList(mlp(model) for _ in range(model.experts))

        def forward(self, x: Tensor) -> Tensor:
            y = self.norms[0](x)
            q, k, v = (
                part.unflatten(-1, (-1, model.head_dim)).transpose(1, 2)
                for part in (self.query(y), self.key(y), self.value(y))
            )
            group = model.heads // model.kv_heads
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            scores = torch.softmax(q @ k.transpose(-1, -2) / model.head_dim**0.5, -1)
            x = x + self.output((scores @ v).transpose(1, 2).flatten(-2))
            y = self.norms[1](x)
            if self.router is None:
                return x + self.mlps[0](y)
            # Balanced routing: every expert gets its equal share of the copies.
            gates = self.router(y).mean() * 0
            copies = y.flatten(0, 1).repeat(model.top_k, 1).chunk(model.experts)
            routed = torch.cat([f(c) for f, c in zip(self.mlps, copies, strict=True)])
            return x + gates + routed.unflatten(0, (model.top_k, *x.shape[:2])).sum(0)

    return Block()


def whole(model: Model) -> nn.Module:
    """Embeddings, blocks, final norm and projection."""
    import torch
    from torch import nn

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            h, v = model.hidden, model.vocabulary
            self.tokens = nn.Embedding(v, h)
            self.positions = nn.Embedding(model.positions, h) if model.positions else None
            self.blocks = nn.ModuleList(block(model) for _ in range(model.blocks))
            self.transform = nn.Linear(h, h) if model.head_transform else None
            self.norm = norm(model)
            self.head = nn.Linear(h, v, bias=model.head_transform)
            if model.tied:
                self.head.weight = self.tokens.weight

        def forward(self, ids: Tensor) -> Tensor:
            x = self.tokens(ids)
            if self.positions is not None:
                x = x + self.positions(torch.arange(ids.shape[1], device=ids.device))
            for each in self.blocks:
                x = each(x)
            if self.transform is not None:
                x = self.transform(x)
            return self.head(self.norm(x))

    return Whole()


def parameters(module: nn.Module) -> int:
    """Every tensor once, tied ones too."""
    return sum(tensor.numel() for tensor in module.parameters())


def counted(module: nn.Module, *inputs: Any, backward: bool) -> int:
    """FLOP of the products that run."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        result = module(*inputs)
        if backward:
            result.sum().backward()
    return int(counter.get_total_flops())


def layers(model: Model, attention: Any, tp: int = 1) -> dict[str, Layer]:
    strategy = Strategy(tp, False, BATCH, TOKENS, attention=attention)
    return {layer.kind: layer for layer, _ in chain(model, strategy).runs}


def flops(operators: tuple[Operator, ...], *, backward: bool) -> float:
    forward = sum(entry.flops for entry in operators)
    return forward + (sum(entry.backward_flops for entry in operators) if backward else 0)


@pytest.mark.parametrize("model", [*DENSE, MOE], ids=lambda model: model.name)
def test_parameters_are_those_of_torch(model):
    """A failure: a projection, norm or bias is forgotten, or counted twice."""
    import torch

    with torch.device("meta"):
        assert parameters(block(model)) == model.block_parameters
        assert parameters(whole(model)) == model.parameters
    assert layers(model, "flash")["block"].parameters == model.block_parameters


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "both passes"])
@pytest.mark.parametrize("model", [*DENSE, MOE], ids=lambda model: model.name)
def test_products_of_a_block_are_those_of_torch(model, backward):
    """Projections, scores, experts and router, exactly. A failure: compute time is wrong."""
    import torch

    with torch.device("meta"):
        x = torch.empty(BATCH, TOKENS, model.hidden, requires_grad=True)
        expected = counted(block(model), x, backward=backward)
    assert flops(layers(model, "unfused")["block"].operators, backward=backward) == expected


@pytest.mark.parametrize("model", DENSE, ids=lambda model: model.name)
def test_fused_attention_does_the_same_forward(model):
    """Half of it with a causal mask."""
    import torch

    with torch.device("meta"):
        x = torch.empty(BATCH, TOKENS, model.hidden)
        expected = counted(block(model), x, backward=False)
    assert flops(layers(model, "flash")["block"].operators, backward=False) == expected
    masked = layers(replace(model, causal=True), "flash")["block"].operators
    scores = 4 * BATCH * TOKENS**2 * model.heads * model.head_dim
    assert flops(masked, backward=False) == expected - scores / 2


@pytest.mark.parametrize("tp", [2, 4])
@pytest.mark.parametrize("model", [LLAMA, GPT], ids=lambda model: model.name)
def test_a_rank_of_a_tensor_parallel_block_is_a_narrower_block(model, tp):
    """Heads and inner width divided; the residual stream whole."""
    import torch

    narrow = replace(
        model, heads=model.heads // tp, kv_heads=model.kv_heads // tp, ffn=model.ffn // tp
    )
    with torch.device("meta"):
        x = torch.empty(BATCH, TOKENS, model.hidden, requires_grad=True)
        module = block(narrow)
        expected = counted(module, x, backward=True)
    rank = layers(model, "unfused", tp)["block"]
    assert flops(rank.operators, backward=True) == expected
    assert rank.parameters == parameters(module)


@pytest.mark.parametrize("model", DENSE, ids=lambda model: model.name)
def test_model_flops_are_one_forward_and_one_backward_pass(model):
    """What MFU divides by: one sequence, head included, nothing recomputed."""
    import torch

    with torch.device("meta"):
        ids = torch.zeros(1, TOKENS, dtype=torch.long)
        assert model_flops(model, TOKENS) == counted(whole(model), ids, backward=True)
