"""The tracer on small modules: what becomes a node, under which name, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nest_core.documents.errors import InputError

torch = pytest.importorskip("torch", reason="torch is not installed")
nn, F = torch.nn, torch.nn.functional
trace = pytest.importorskip("nest_core.workload.tracing.tracer").trace

X = torch.zeros(3, 5, 7)


class Runs(nn.Module):
    """A module of parameters and a forward given as a function."""

    def __init__(self, forward: Any, **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = forward

    def forward(self, *inputs: Any) -> Any:
        return self.run(self, *inputs)


def nodes(forward: Any, *inputs: Any, **parts: Any) -> list[dict[str, Any]]:
    return trace(Runs(forward, **parts), inputs or (X,))


def brief(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(node["op"], node.get("function", "")) for node in found[1:]]


def weight(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(*shape))


PRODUCTS = {
    "linear": (lambda m, x: F.linear(x, m.w, m.b), (4, 7), (4,), "linear"),
    "matmul": (lambda m, x: x @ m.w, (7, 4), None, "linear"),
    "transposed": (lambda m, x: x @ m.w.t(), (4, 7), None, "linear"),
    "mm": (lambda m, x: x[0] @ m.w, (7, 4), None, "linear"),
    "addmm": (lambda m, x: torch.addmm(m.b, x[0], m.w), (7, 4), (4,), "linear"),
    "bmm": (lambda m, x: torch.bmm(x, m.w), (3, 7, 4), None, "grouped_linear"),
    "baddbmm": (
        lambda m, x: torch.baddbmm(m.b[:, None], x, m.w),
        (3, 7, 4),
        (3, 4),
        "grouped_linear",
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_parameters_are_projections(name):
    """The matrix is (out, in) however it is stored, and the bias has no broadcast axes."""
    forward, stored, bias, op = PRODUCTS[name]
    parts = {"w": weight(*stored), **({"b": weight(*bias)} if bias else {})}
    last = nodes(forward, **parts)[-1]
    groups = stored[:-2]
    expected = [[[n] for n in (*groups, 4, 7)], *([[[n] for n in bias]] if bias else [])]
    assert (last["op"], last["weights"]) == (op, expected)


def test_products_of_activations_keep_their_order():
    found = nodes(lambda m, x: F.softmax(x @ x.transpose(1, 2), -1) @ x)
    assert brief(found) == [("reshape", ""), ("matmul", ""), ("softmax", "softmax"), ("matmul", "")]
    assert found[2]["inputs"] == ["input", "reshape"]
    assert found[4]["inputs"] == ["softmax", "input"]


FUNCTIONS = [
    (lambda m, x: F.gelu(x), ("elementwise", "gelu")),
    (lambda m, x: F.silu(x), ("elementwise", "silu")),
    (lambda m, x: x.exp(), ("elementwise", "exp")),
    (lambda m, x: x + x, ("elementwise", "add")),
    (lambda m, x: x.clone().mul_(2), ("elementwise", "mul")),
    (lambda m, x: x.mean(-1), ("elementwise", "mean")),
    (lambda m, x: x.sum(), ("elementwise", "sum")),
    (lambda m, x: x.half(), ("elementwise", "cast")),
    (lambda m, x: torch.cat((x, x), -1), ("elementwise", "cat")),
    (lambda m, x: F.softmax(x, -1), ("softmax", "softmax")),
    (lambda m, x: F.layer_norm(x, (7,)), ("norm", "layernorm")),
    (lambda m, x: F.rms_norm(x, (7,)), ("norm", "rmsnorm")),
    (lambda m, x: F.dropout(x, 0.5, True), ("dropout", "")),
    (lambda m, x: x.transpose(1, 2), ("reshape", "")),
    (lambda m, x: x.flatten(), ("reshape", "")),
    (lambda m, x: x.chunk(2, -1)[1], ("reshape", "")),
]


@pytest.mark.parametrize(("forward", "expected"), FUNCTIONS)
def test_operators_have_their_canonical_name(forward, expected):
    assert brief(nodes(forward)) == [expected]


NOTHING = [
    lambda m, x: x.float() * 1,
    lambda m, x: F.dropout(x, 0.0, True) * 1,
    lambda m, x: F.dropout(x, 0.5, False) * 1,
    lambda m, x: x.contiguous().view(3, 5, 7) * 1,
    lambda m, x: x.detach() * 1,
]


@pytest.mark.parametrize("forward", NOTHING)
def test_what_does_nothing_is_no_node(forward):
    assert brief(nodes(forward)) == [("elementwise", "mul")]


def test_successive_views_are_one_and_constants_none():
    def forward(m: Any, x: Any) -> Any:
        mask = torch.ones(5, 5).tril().log()
        return x.view(3, 5, 7, 1).transpose(1, 2).flatten(1) + mask.sum()

    found = nodes(forward)
    assert brief(found) == [("reshape", ""), ("elementwise", "add")]
    assert found[1]["inputs"] == ["input"]
    assert found[1]["shape"] == [[3], [35]]


def test_a_view_with_another_reader_stays():
    def forward(m: Any, x: Any) -> Any:
        y = x.transpose(1, 2)
        return y.flatten(1).sum() + y.exp().sum()

    assert brief(nodes(forward))[:2] == [("reshape", ""), ("reshape", "")]


def test_in_place_work_is_read_by_who_comes_after():
    def forward(m: Any, x: Any) -> Any:
        y = x * 2
        y.add_(1)
        return y.exp()

    found = nodes(forward)
    assert brief(found) == [("elementwise", name) for name in ("mul", "add", "exp")]
    assert found[3]["inputs"] == ["add"]


def test_writing_into_a_part_changes_the_whole():
    """A failure: what fills a prepared tensor is taken for a constant and dropped."""

    def forward(m: Any, x: Any) -> Any:
        y = torch.zeros(3, 10, 7)
        y[:, :5] = x * 2
        y[:, 5:].copy_(x.exp())
        return y.sum(-1)

    found = nodes(forward)
    assert brief(found) == [("elementwise", name) for name in ("mul", "copy", "exp", "copy", "sum")]
    assert [node["shape"] for node in found[2:5:2]] == [[[3], [10], [7]]] * 2
    assert set(found[4]["inputs"]) == {"exp", "copy"}
    assert found[5]["inputs"] == ["copy_2"]


def test_attention_says_what_it_masks_and_drops():
    def forward(m: Any, x: Any) -> Any:
        return F.scaled_dot_product_attention(x, x * 2, x * 3, dropout_p=0.1, is_causal=True)

    last = nodes(forward)[-1]
    assert (last["op"], last["function"], last["causal"]) == ("attention", "dropout", True)
    assert last["inputs"] == ["input", "mul", "mul_2"]
    plain = nodes(lambda m, x: F.scaled_dot_product_attention(x, x, x))[-1]
    assert "causal" not in plain
    assert plain["inputs"] == ["input"] * 3


def test_names_are_those_of_modules():
    """A leaf by its path, work between modules by path and function, repeated calls numbered."""
    inner = Runs(lambda m, x: m.up(x) + m.up(x), up=nn.Linear(7, 7))
    found = nodes(lambda m, x: m.mlp(x).exp(), mlp=inner)
    assert [node["name"] for node in found] == ["input", "mlp.up", "mlp.up_2", "mlp.add", "exp"]


class Fused(Runs):
    fused, op, function = True, "norm", "own"


def test_a_fused_module_is_one_node_per_call():
    part = Fused(lambda m, x, y: (x.float() * m.w).exp() + y, w=weight(7))
    found = nodes(lambda m, x: m.part(m.part(x * 2, x), x), part=part)
    assert [node["name"] for node in found] == ["input", "mul", "part", "part_2"]
    assert found[2] == {
        "name": "part",
        "op": "norm",
        "function": "own",
        "inputs": ["mul", "input"],
        "shape": [[3], [5], [7]],
        "weights": [[[7]]],
    }
    assert found[3]["inputs"] == ["part", "input"]


def test_a_fused_module_returns_one_tensor():
    part = Fused(lambda m, x: (x * 2, x * 3))
    with pytest.raises(InputError, match=r"fused module part must return one tensor, but is '2 "):
        nodes(lambda m, x: sum(m.part(x)), part=part)


def test_what_the_input_becomes_inside_a_fused_module_is_still_the_input():
    """A cast that does nothing is shared by export with whoever reads the tensor next."""
    found = nodes(lambda m, x: x + m.part(x), part=Fused(lambda m, x: x.float().exp()))
    assert found[-1]["inputs"] == ["input", "part"]


def test_tied_weights_stand_at_both_places():
    shared = nn.Linear(7, 7, bias=False)
    found = nodes(lambda m, x: m.a(m.b(x)), a=shared, b=shared)
    assert sum(node.get("weights") == [[[7], [7]]] for node in found) == 2


REFUSED = [
    (lambda m, x: torch.einsum("bsh,bth->bst", x, x), "einsum"),
    (lambda m, x: torch.linalg.inv(x[:, :3, :3]), "linalg_inv"),
    (lambda m, x: F.conv1d(x, m.w), "conv1d"),
    (lambda m, x: torch.fft.fft(x).real, "fft"),
]


@pytest.mark.parametrize(("forward", "name"), REFUSED)
def test_other_operators_are_refused_by_name(forward, name):
    with pytest.raises(InputError, match=name) as caught:
        nodes(forward, w=weight(4, 5, 1))
    assert str(caught.value).endswith("give its module fused = True and an op.")
    assert "\n" not in str(caught.value)


def test_what_export_cannot_follow_is_refused_in_one_sentence():
    with pytest.raises(
        InputError, match=r"module Runs must be traceable by torch\.export"
    ) as caught:
        nodes(lambda m, x: x if x.sum() > 0 else -x)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="must be traceable"):
        nodes(lambda m, x: x @ torch.zeros(3, 3))


def test_a_constant_output_is_refused():
    with pytest.raises(InputError, match="must return a tensor that depends on its input"):
        nodes(lambda m, x: torch.ones(3))


def test_the_module_is_left_as_it_was():
    """Its values, device and identity; no copy of a large module is made."""
    module = nn.Linear(7, 4)
    before, values = module.weight, module.weight.detach().clone()
    trace(module, (X,))
    assert module.weight is before
    assert torch.equal(module.weight, values)


def test_half_precision_and_buffers():
    module = nn.BatchNorm1d(7).half()
    module.register_buffer("table", torch.zeros(7).half())
    holder = Runs(lambda m, x: x + m.norm.table, norm=module)
    assert brief(trace(holder, (X.half(),))) == [("elementwise", "add")]


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, []), (6, [6]), (5, ["a"]), (35, ["a", "b"]), (385, ["a", "b", "c"]), (15, [3, "a"]),
     (105, [3, "a", "b"]), (45, [45]), (0, [0])],
)  # fmt: skip
def test_lengths_become_products_of_symbols(length, expected):
    from nest_core.workload.tracing.entries import symbolise

    assert symbolise(length, {"a": 5, "b": 7, "c": 11}) == expected
