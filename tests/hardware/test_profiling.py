"""Measuring kernels, on the CPU at small sizes: that what runs is what the estimator prices."""

from __future__ import annotations

import json
import math

import pytest

from nest_core.documents.errors import InputError
from nest_core.hardware.profile_cases import cases, check_affordable
from nest_core.hardware.profiles import load_profile
from nest_core.workload import Model, Strategy
from nest_core.workload.model_files import load_model
from nest_studio.cli import run

pytestmark = pytest.mark.usefixtures("torch_installed")

COMMON = {"blocks": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "vocabulary": 128}
MODELS = {
    "gpt": Model("toy gpt", "gpt", **COMMON, ffn=256, positions=64),
    "llama": Model("toy llama", "llama", **{**COMMON, "kv_heads": 2}, ffn=96),
    "mixtral": Model(
        "toy mixtral", "mixtral", **COMMON, ffn=0, experts=4, top_k=2, expert_ffn=96
    ),
    "deepseek": Model(
        "toy deepseek", "deepseek_v3", **COMMON, ffn=96, experts=4, top_k=2, expert_ffn=32,
        shared_ffn=32, dense_blocks=1, q_rank=32, kv_rank=32, rope_dim=8, value_dim=16,
    ),
}  # fmt: skip


def strategies(**changes):
    return [Strategy(**{"tp": 2, "micro_batch": 2, "sequence": 32, "width": 4.0, **changes})]


def measured(found, precision="fp32", timed=None):
    from nest_core.hardware.profiling import measure

    return measure(found, "p", "cpu", precision, 3, "2026-01-31", timed=timed)


def counted(run):
    """FLOP of the products and attention that a call makes, as PyTorch counts them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def unfused(run):
    """The same of attention, whose fused kernel PyTorch does not count on a CPU."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return counted(run)


def each(found, look):
    """What ``look`` finds in the call of every case, in the cases' order."""
    seen = []

    def timed(run, repeats):
        seen.append(look(run))
        return [1.0] * repeats

    profile = measured(found, timed=timed)
    assert not profile.skipped
    return seen


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sampled(2)
def test_products_do_the_work_that_is_priced(name):
    """For both layouts of a product of activations and all three of a projection."""
    for attention in ("flash", "unfused"):
        found = [
            case
            for case in cases(MODELS[name], strategies(attention=attention))
            if case.kernel.unit in ("gemm", "batched")
        ]
        assert {case.kernel.unit for case in found} == (
            {"gemm"} if attention == "flash" else {"gemm", "batched"}
        )
        assert each(found, counted) == [case.kernel.flops for case in found]
        shapes = each(found, lambda run: tuple(run().shape))
        assert [math.prod(shape) for shape in shapes] == [
            math.prod(case.kernel.shape[:3]) for case in found
        ]


def order(run):
    """Whether each operand of a product has its last dimension contiguous."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(tuple(operand.stride(-1) == 1 for operand in args[:2]))
            return function(*args, **(kwargs or {}))

    with Watch():
        run()
    return seen


def test_operands_lie_as_they_do_in_training():
    """x W^T, dy W and dy^T x of a projection; q k^T and p v with their gradients."""
    found = cases(MODELS["gpt"], strategies(attention="unfused", sequence=48))
    products = [case for case in found if case.kernel.unit in ("gemm", "batched")]
    plain, right, left = [(True, True)], [(True, False)], [(False, True)]
    projection, values = (right, plain, left), (plain, right, left)
    for case, seen in zip(products, each(products, order), strict=True):
        expected = values if case.operators[0].endswith("attention.core") else projection
        which = 0 if case.signature.direction == "forward" else case.index + 1
        assert seen == expected[which], case


@pytest.mark.parametrize("name", MODELS)
def test_attention_has_the_shape_that_is_priced(name):
    """PyTorch counts the whole score matrix where a causal kernel is priced at half of it."""
    found = [case for case in cases(MODELS[name], strategies()) if case.signature.op == "attention"]
    forward = [case for case in found if case.signature.direction == "forward"]
    assert len(forward) * 2 == len(found)
    halves = [2.0 if case.causal else 1.0 for case in forward]
    expected = [case.kernel.flops * half for case, half in zip(forward, halves, strict=True)]
    assert each(forward, unfused) == expected


@pytest.mark.parametrize("name", MODELS)
def test_passes_write_what_is_priced(name):
    """A forward function its output; a gradient one tensor per operand; a copy half its bytes."""
    found = [case for case in cases(MODELS[name], strategies()) if case.kernel.unit == "memory"]
    hows = {entry.how for entry in measured(found, timed=lambda run, n: [1.0] * n).measured}
    assert {"torch embedding", "torch cross_entropy", "copy of the same bytes"} <= hows
    profile = measured(found, timed=lambda run, n: [1.0] * n)
    results = each(found, lambda run: run())
    for case, entry, result in zip(found, profile.measured, results, strict=True):
        if entry.how == "copy of the same bytes":
            assert result.numel() * 4 == pytest.approx(case.kernel.bytes / 2, abs=4)
        elif entry.how.startswith("gradient"):
            assert all(grad.is_floating_point() for grad in result)
        elif case.signature.op == "loss":
            assert result.shape == ()
        else:
            assert tuple(result.shape) == case.output


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_is_measured(name):
    found = cases(MODELS[name], [*strategies(), *strategies(tp=1, micro_batch=1)])
    profile = measured(found)
    assert not profile.skipped
    assert [entry.signature for entry in profile.measured] == [case.signature for case in found]
    assert all(entry.seconds > 0 and entry.repeats == 3 for entry in profile.measured)
    assert (profile.backend, profile.cuda, profile.date) == ("cpu", "", "2026-01-31")


def test_the_median_and_the_quartiles_are_kept():
    found = cases(MODELS["llama"], strategies())[:1]
    entry = measured(found, timed=lambda run, repeats: [4.0, 1.0, 2.0]).measured[0]
    assert entry.seconds == 2.0
    assert entry.spread == (3.0 - 1.5) / 2.0


def test_runs_before_the_timed_ones_warm_up():
    from nest_core.hardware.profiling import WARM_UP, timer

    calls = []
    times = timer("cpu")(lambda: calls.append(1), 4)
    assert len(times) == 4
    assert len(calls) == 4 + WARM_UP["cpu"]


def test_a_kernel_that_cannot_run_is_left_out_with_its_reason():
    found = cases(MODELS["llama"], strategies())
    calls = []

    def timed(run, repeats):
        calls.append(run)
        if len(calls) == 2:
            raise RuntimeError("out of memory\nand more")
        return [1.0] * repeats

    profile = measured(found, timed=timed)
    assert [entry.reason for entry in profile.skipped] == ["out of memory"]
    assert profile.skipped[0].signature == found[1].signature
    assert len(profile.measured) == len(found) - 1

    def never(run, repeats):
        raise RuntimeError("no such type")

    with pytest.raises(InputError, match=r"--precision must be .* but is 'fp32': .*no such type"):
        measured(found, timed=never)


@pytest.mark.parametrize(
    ("preset", "reason"), [("mistral-7b", "sliding window"), ("mpt-7b", "has no alibi")]
)
def test_attention_that_pytorch_lacks_is_left_out(preset, reason):
    known = load_model(preset)
    found = [
        case
        for case in cases(known, [Strategy(tp=32, sequence=8192 if known.window else 64)])
        if case.signature.op == "attention" or case.signature.op == "norm"
    ]
    profile = measured(found, timed=lambda run, repeats: [1.0] * repeats)
    assert [entry.signature.op for entry in profile.skipped] == ["attention"] * 2
    assert all(reason in entry.reason for entry in profile.skipped)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16", "fp8"])
@pytest.mark.sampled(3)
def test_every_precision_is_measured_or_explained(precision):
    import torch

    before = torch.get_float32_matmul_precision()
    width = 4.0 if precision in ("fp32", "tf32") else 2.0
    found = cases(MODELS["llama"], strategies(width=width))
    profile = measured(found, precision)
    assert len(profile.measured) + len(profile.skipped) == len(found)
    assert all(entry.reason for entry in profile.skipped)
    if precision != "fp8":
        assert not profile.skipped
    assert torch.get_float32_matmul_precision() == before


def test_large_kernels_are_refused_on_a_cpu():
    found = cases(load_model("llama3-8b"), [Strategy(sequence=2048)])
    with pytest.raises(InputError, match=r"must have at most 200 GFLOP and 4 GB to be measured"):
        check_affordable(found, "cpu")
    check_affordable(found, "cuda")


def test_a_missing_gpu_is_said(capsys, tmp_path, monkeypatch):
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    monkeypatch.chdir(tmp_path)
    assert run(["profile", "gpt3-125m", "--device", "cuda"]) == 2
    err = capsys.readouterr().err
    assert err.endswith("cuda is not available here; use --device cpu.\n")
    assert not list(tmp_path.iterdir())


def test_the_command_measures_saves_and_adds(capsys, tmp_path):
    target = tmp_path / "mine.json"
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
                "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
                "vocab_size": 128, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
                "hidden_act": "silu", "tie_word_embeddings": False,
            }
        )
    )  # fmt: skip
    common = [
        "profile",
        str(config),
        "--device",
        "cpu",
        "--sequence",
        "32",
        "--precision",
        "fp32",
        "--repeat",
        "2",
        "--output",
        str(target),
        "--json",
    ]
    assert run([*common, "--tp", "1,2"]) == 0
    out, err = capsys.readouterr()
    fields = json.loads(out)
    assert out.count("\n") == 1
    assert err.count("\n") == len(fields["operators"])
    saved = load_profile(target.name, target.parent)
    assert fields["output"] == str(target)
    assert (saved.precision, saved.name) == ("fp32", "mine")
    assert len(saved.measured) == fields["kernels"] == len(fields["operators"])
    assert {entry["seconds"] for entry in fields["operators"]} == {
        entry.seconds for entry in saved.measured
    }
    assert run([*common, "--micro-batch", "3", "--append"]) == 0
    more = json.loads(capsys.readouterr().out)
    known = {(entry.signature, entry.function) for entry in saved.measured}
    again = load_profile(target.name, target.parent)
    assert known < {(entry.signature, entry.function) for entry in again.measured}
    assert len(again.measured) == more["kernels"] > len(more["operators"])
