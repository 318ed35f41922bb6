"""Every family's modules: real ones, and truthfully traced.

The oracle is PyTorch: parameters, shapes and FLOP of the same modules at other sizes. Nothing
that evaluates a trace is taken from the core; the shipped JSON is read here.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents import load_toml, preset_names, preset_path

pytestmark = pytest.mark.usefixtures("torch_installed")

FAMILIES = [
    name
    for name in preset_names("families")
    if "layers" in load_toml(preset_path("families", f"{name}.toml"))
]
families = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="session")
def shipped(root) -> dict[str, Any]:
    """The trace files."""
    paths = (root / "presets" / "traces").glob("*.json")
    return {path.stem: json.loads(path.read_text()) for path in paths}


def extent(dim: list[Any], sizes: dict[str, int]) -> int:
    return math.prod(sizes[part] if isinstance(part, str) else part for part in dim)


def shape_of(dims: list[list[Any]], sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(extent(dim, sizes) for dim in dims)


@st.composite
def ordinary(draw: st.DrawFn) -> Any:
    """Sizes without any system, but that attention and routing accept."""
    from benchmarks.traces.sizes import Sizes

    def number(most: int) -> int:
        return draw(st.integers(1, most))

    batch, sequence, kv_heads, experts = number(4), number(48), number(4), number(8)
    return Sizes(
        micro_batch=batch, sequence=sequence, hidden=number(96), kv_heads=kv_heads,
        heads=kv_heads * number(4), head_dim=2 * number(16), ffn=number(128),
        vocabulary=number(200), positions=sequence + number(20), experts=experts,
        top_k=draw(st.integers(1, experts)), slots=draw(st.integers(1, batch * sequence)),
        expert_ffn=number(64), shared_ffn=number(64), q_rank=number(32), kv_rank=number(32),
        rope_dim=2 * number(8), value_dim=number(32), linear_key_heads=kv_heads,
        linear_value_heads=kv_heads * number(3), linear_key_dim=number(16),
        linear_value_dim=number(16), index_heads=number(4), index_dim=4 * number(8),
    )  # fmt: skip


def layers(family: str, sizes: Any, device: str = "meta") -> dict[str, tuple[Any, Any]]:
    """Module and inputs of every kind of layer."""
    import torch

    from benchmarks.traces.modules import FAMILIES as BUILDERS
    from benchmarks.traces.modules import example

    with torch.device(device):
        return {
            kind: (build(sizes), example(kind, sizes)) for kind, build in BUILDERS[family].items()
        }


def test_every_family_is_shipped(shipped):
    from benchmarks.traces.modules import FAMILIES as BUILDERS

    assert sorted(shipped) == sorted(BUILDERS) == FAMILIES


@pytest.mark.sampled(6)
@families
def test_tracing_again_gives_the_shipped_file(shipped, family):
    """A failure: run ``python -m benchmarks.traces`` after changing a module."""
    from benchmarks.traces.modules import trace_family

    assert trace_family(family) == shipped[family]["layers"]


@families
def test_a_trace_is_a_graph_of_known_symbols(shipped, family):
    """Names unique, inputs before their readers, no number but token types and taps."""
    from nest_core.workload.graph import SYMBOLS

    for nodes in shipped[family]["layers"].values():
        seen: list[str] = []
        for node in nodes:
            assert set(node.get("inputs", [])) <= set(seen)
            assert (node["op"] == "input") == ("inputs" not in node)
            seen.append(node["name"])
            for shape in (node["shape"], *node.get("weights", [])):
                parts = [part for dim in shape for part in dim]
                allowed = {2} if node["name"] == "token_types" else set()
                allowed |= {4} if node.get("function") == "convolution" else set()
                assert set(parts) <= set(SYMBOLS) | allowed
        assert len(seen) == len(set(seen))
        read = {name for node in nodes for name in node.get("inputs", [])}
        assert set(seen) - read == {nodes[-1]["name"]}


@pytest.mark.sampled(36)
@families
@settings(max_examples=4, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_symbols_evaluate_to_the_shapes_of_torch(shipped, family, data):
    """The module traced at other sizes has the shapes that its symbolic trace says."""
    from nest_core.workload.tracing.tracer import trace

    sizes = data.draw(ordinary())
    for kind, (module, inputs) in layers(family, sizes).items():
        concrete = trace(module, inputs)
        symbolic = shipped[family]["layers"][kind]
        assert [n["name"] for n in concrete] == [n["name"] for n in symbolic]
        for here, there in zip(concrete, symbolic, strict=True):
            assert shape_of(here["shape"], {}) == shape_of(there["shape"], sizes.symbols)
            assert [shape_of(w, {}) for w in here.get("weights", [])] == [
                shape_of(w, sizes.symbols) for w in there.get("weights", [])
            ]
            assert here.get("inputs") == there.get("inputs")


@families
@settings(max_examples=4, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_weights_are_the_parameters_of_torch(shipped, family, data):
    sizes = data.draw(ordinary())
    for kind, (module, _) in layers(family, sizes).items():
        nodes = shipped[family]["layers"][kind]
        counted = sum(
            math.prod(shape_of(weight, sizes.symbols))
            for node in nodes
            for weight in node.get("weights", [])
        )
        assert counted == sum(tensor.numel() for tensor in module.parameters())


def products(nodes: list[dict[str, Any]], sizes: dict[str, int]) -> int:
    """FLOP of projections and attention, causal or not, from a trace."""
    shapes = {node["name"]: shape_of(node["shape"], sizes) for node in nodes}
    total = 0
    for node in nodes:
        made = math.prod(shapes[node["name"]])
        if node["op"] in ("linear", "grouped_linear"):
            total += 2 * made * extent(node["weights"][0][-1], sizes)
        elif node["op"] == "attention":
            *keys, value = (shapes[name] for name in node["inputs"])
            batch, heads, queries, _ = keys[0]
            scored = sum(shape[-1] for shape in keys) // 2
            total += 2 * batch * heads * queries * value[-2] * (scored + value[-1])
    return total


@pytest.mark.sampled(6)
@families
@settings(max_examples=4, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_products_are_those_that_torch_counts(shipped, family, data):
    """Forward FLOP of the trace against PyTorch's counter on the modules."""
    from torch.utils.flop_counter import FlopCounterMode

    sizes = data.draw(ordinary())
    for kind, (module, inputs) in layers(family, sizes).items():
        with FlopCounterMode(display=False) as counter:
            module(*inputs)
        counted = products(shipped[family]["layers"][kind], sizes.symbols)
        assert counted == counter.get_total_flops()


@families
def test_the_modules_compute(family):
    """Embedding, blocks and head on the processor: finite loss, a gradient for every weight."""
    import torch

    from benchmarks.traces.sizes import Sizes

    torch.manual_seed(5)
    sizes = Sizes(
        micro_batch=2, sequence=12, hidden=32, heads=4, kv_heads=2, head_dim=8, ffn=48,
        vocabulary=50, positions=16, experts=4, top_k=2, slots=12, expert_ffn=24, shared_ffn=20,
        q_rank=12, kv_rank=10, rope_dim=4, value_dim=6, linear_key_heads=2,
        linear_value_heads=4, linear_key_dim=6, linear_value_dim=10, index_heads=3, index_dim=8,
    )  # fmt: skip
    built = layers(family, sizes, "cpu")
    tokens = torch.randint(0, sizes.vocabulary, (2, 12))
    x = built["embedding"][0](tokens)
    for kind in built.keys() - {"embedding", "head"}:
        x = built[kind][0](x)
    loss = built["head"][0](x, tokens)
    loss.backward()
    assert 1.0 < loss.item() < 20.0
    for kind, (module, _) in built.items():
        for name, tensor in module.named_parameters():
            # DeepSeek's balancing bias enters a choice, which has no gradient.
            if (kind, name) != ("moe_block", "experts.scores.bias"):
                assert tensor.grad is not None, name
                assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"bert"}))
def test_later_tokens_change_no_earlier_output(family):
    """Causal blocks; with room for every token, experts are no exception."""
    import torch

    from benchmarks.traces.sizes import Sizes

    torch.manual_seed(7)
    sizes = Sizes(
        micro_batch=1, sequence=10, hidden=24, heads=4, kv_heads=4, head_dim=6, ffn=20,
        vocabulary=30, positions=10, experts=3, top_k=2, slots=10, expert_ffn=12, shared_ffn=8,
        q_rank=8, kv_rank=8, rope_dim=4, value_dim=6, linear_key_heads=2, linear_value_heads=4,
        linear_key_dim=6, linear_value_dim=10, index_heads=3, index_dim=8,
    )  # fmt: skip
    built = layers(family, sizes, "cpu")
    x = torch.randn(1, 10, 24)
    changed = x.clone()
    changed[:, 6:] += 1.0
    for kind in built.keys() - {"embedding", "head"}:
        block = built[kind][0].eval()
        before, after = block(x), block(changed)
        torch.testing.assert_close(before[:, :6], after[:, :6])
        assert not torch.allclose(before[:, 6:], after[:, 6:])


def test_experts_with_room_are_the_weighted_sum_of_their_choices():
    """Static slots against the definition, token by token."""
    import torch

    from benchmarks.traces.experts import Experts
    from benchmarks.traces.sizes import Sizes

    torch.manual_seed(3)
    sizes = Sizes(hidden=8, experts=5, top_k=2, slots=14, expert_ffn=6)
    experts = Experts(sizes)
    x = torch.randn(2, 7, 8)
    got = experts(x)
    scores = torch.softmax(experts.router(x), dim=-1)
    for b in range(2):
        for s in range(7):
            best = scores[b, s].topk(2)
            expected = torch.zeros(8)
            for weight, expert in zip(best.values, best.indices, strict=True):
                gate, up, down = (
                    each.weight[expert] for each in (experts.gate, experts.up, experts.down)
                )
                inner = torch.nn.functional.silu(gate @ x[b, s]) * (up @ x[b, s])
                expected = expected + weight / best.values.sum() * (down @ inner)
            torch.testing.assert_close(got[b, s], expected, rtol=1e-4, atol=1e-5)


def test_primes_tell_every_symbol_apart():
    """No two products of up to three symbols are equal but those of other names of one product."""
    from itertools import combinations

    from benchmarks.traces.sizes import PRIMES
    from nest_core.workload.tracing.entries import symbolise

    sizes = PRIMES.symbols
    for number in (1, 2, 3):
        for names in combinations(sizes, number):
            assert symbolise(math.prod(sizes[name] for name in names), sizes) == list(names)


def sized(**sizes: int) -> dict[str, int]:
    return sizes


LLAMA3 = sized(hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocabulary=128256)
PUBLISHED = {
    # Sums over the published checkpoints' tensors; blocks: dense, then of experts.
    "Llama 3 8B": ("llama", 32, 0, False, 8_030_261_248, LLAMA3),
    "Llama 2 7B": ("llama", 32, 0, False, 6_738_415_616, sized(
        hidden=4096, heads=32, kv_heads=32, head_dim=128, ffn=11008, vocabulary=32000)),
    "Llama 3.1 405B": ("llama", 126, 0, False, 405_853_388_800, sized(
        hidden=16384, heads=128, kv_heads=8, head_dim=128, ffn=53248, vocabulary=128256)),
    "Mistral 7B": ("llama", 32, 0, False, 7_241_732_096, sized(
        hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocabulary=32000)),
    "Qwen2 7B": ("qwen2", 28, 0, False, 7_615_616_512, sized(
        hidden=3584, heads=28, kv_heads=4, head_dim=128, ffn=18944, vocabulary=152064)),
    "Qwen3 8B": ("qwen3", 36, 0, False, 8_190_735_360, sized(
        hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=12288, vocabulary=151936)),
    "Qwen3 30B-A3B": ("qwen3_moe", 0, 48, False, 30_532_122_624, sized(
        hidden=2048, heads=32, kv_heads=4, head_dim=128, expert_ffn=768, experts=128,
        vocabulary=151936)),
    "GPT-2 small": ("gpt", 12, 0, True, 124_439_808, sized(
        hidden=768, heads=12, kv_heads=12, head_dim=64, ffn=3072, vocabulary=50257,
        positions=1024)),
    "BERT-large, masked language model": ("bert", 24, 0, True, 335_174_458, sized(
        hidden=1024, heads=16, kv_heads=16, head_dim=64, ffn=4096, vocabulary=30522,
        positions=512)),
    "Mixtral 8x7B": ("mixtral", 0, 32, False, 46_702_792_704, sized(
        hidden=4096, heads=32, kv_heads=8, head_dim=128, expert_ffn=14336, experts=8,
        vocabulary=32000)),
    "DeepSeek-V3 without its prediction module": ("deepseek_v3", 3, 58, False, 671_026_419_200,
        sized(hidden=7168, heads=128, head_dim=128, ffn=18432, expert_ffn=2048, shared_ffn=2048,
              experts=256, q_rank=1536, kv_rank=512, rope_dim=64, value_dim=128,
              vocabulary=129280)),
    "DeepSeek-V2": ("deepseek_v2", 1, 59, False, 235_741_434_880, sized(
        hidden=5120, heads=128, head_dim=128, ffn=12288, expert_ffn=1536, shared_ffn=3072,
        experts=160, q_rank=1536, kv_rank=512, rope_dim=64, value_dim=128, vocabulary=102400)),
    "MPT 7B": ("mpt", 32, 0, True, 6_649_286_656, sized(
        hidden=4096, heads=32, kv_heads=32, head_dim=128, ffn=16384, vocabulary=50432)),
    "BLOOM": ("bloom", 70, 0, True, 176_247_271_424, sized(
        hidden=14336, heads=112, kv_heads=112, head_dim=128, ffn=57344, vocabulary=250880)),
    "gpt-oss-20b": ("gpt_oss", 0, 24, False, 20_914_757_184, sized(
        hidden=2880, heads=64, kv_heads=8, head_dim=64, expert_ffn=2880, experts=32,
        vocabulary=201088)),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_add_up_to_the_published_count(shipped, name):
    """A failure: a family lacks a weight, or has one too many."""
    family, dense, sparse, tied, expected, sizes = PUBLISHED[name]
    times = {"embedding": 1, "block": dense, "moe_block": sparse, "head": 1}
    total = 0
    for kind, nodes in shipped[family]["layers"].items():
        for node in nodes if times[kind] else []:
            if not (tied and node["name"] == "logits"):
                for weight in node.get("weights", []):
                    total += times[kind] * math.prod(shape_of(weight, sizes))
            elif node["name"] == "logits":
                for weight in node["weights"][1:]:
                    total += math.prod(shape_of(weight, sizes))
    assert total == expected


def test_grok_1_has_its_314_billion(shipped):
    """Released as 314 B; with the embedding the released sizes give 0.5 % more."""
    sizes = sized(hidden=6144, heads=48, kv_heads=8, head_dim=128, expert_ffn=32768, experts=8,
                 vocabulary=131072)  # fmt: skip
    block = sum(
        math.prod(shape_of(weight, sizes))
        for node in shipped["grok1"]["layers"]["moe_block"]
        for weight in node.get("weights", [])
    )
    embedding = 131072 * 6144
    total = 64 * block + embedding + 6144
    assert total == 315_684_820_992
    assert (total - embedding) / 1e9 == pytest.approx(314.9, abs=0.05)
