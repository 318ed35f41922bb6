"""Measuring the kernels of a model's layers with PyTorch: where profiles come from.

Every distinct kernel that the estimator would price (`nest_core.workload.operators`) runs alone:
operands are random and allocated once, a few runs warm up, a buffer larger than the caches is
written before each timed run, and the median of the repeats counts. CUDA events time a GPU's
work; the write keeps it busy while the host issues what is timed, so launching is not in it. On
a CPU `time.perf_counter` times both.

Products run as ``torch.mm`` and ``torch.bmm`` in the layouts of a linear layer's three products
(in fp8 ``torch._scaled_mm`` and what must be cast before it), attention as
``scaled_dot_product_attention`` and its gradient. Passes over memory run as the function itself
where PyTorch has it in one kernel, else as a copy of the same bytes, since the estimator's pass
is a fused one. What cannot run here is left out with its reason.
"""

import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from nest_core.documents.errors import InputError, require
from nest_core.hardware.profile_cases import ProfileCase
from nest_core.hardware.profiles import KernelMeasurement, Profile, SkippedKernel

__all__ = ["check_device", "device_name", "measure", "timer"]

WARM_UP = {"cuda": 5, "cpu": 1}
_FLUSH_BYTES = {"cuda": 2**30, "cpu": 2**26}
_DROPPED = 0.1
_FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
_TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.bfloat16,
}

Run = Callable[[], object]
Report = Callable[[str], None]
Timer = Callable[[Run, int], list[float]]

# Functions that PyTorch has in one kernel each way: how many tensors they read.
_POINTWISE: dict[str, tuple[int, Callable[..., Tensor]]] = {
    "gelu": (1, lambda x: F.gelu(x, approximate="tanh")),
    "silu": (1, F.silu),
    "relu": (1, F.relu),
    "sigmoid": (1, torch.sigmoid),
    "tanh": (1, torch.tanh),
    "softmax": (1, lambda x: x.softmax(-1)),
    "scale": (1, lambda x: x * 0.5),
    "dropout": (1, lambda x: F.dropout(x, _DROPPED)),
    "mul": (2, torch.mul),
    "add": (2, torch.add),
    "swiglu": (2, F.glu),
    "geglu": (2, F.glu),
}
_GATED = ("swiglu", "geglu")  # F.glu reads and writes as much, both halves in one tensor
_HANDED_ON = ("add",)  # autograd runs nothing where the estimator has a pass


class _Unmeasured(Exception):
    """A kernel that cannot run here; the message says why."""


def check_device(device: str) -> None:
    """Refuse a device that this machine or this PyTorch lacks."""
    require(
        device != "cuda" or torch.cuda.is_available(),
        "--device",
        "must be one that PyTorch finds here",
        "cuda",
        "cuda is not available here; use --device cpu",
    )


def device_name(device: str) -> str:
    """Return what the device is called."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return (names or [""])[0] or platform.processor() or "CPU"


def measure(
    profiled: Sequence[ProfileCase],
    name: str,
    device: Literal["cuda", "cpu"],
    precision: str,
    repeats: int,
    date: str,
    report: Report = lambda line: None,
    timed: Timer | None = None,
) -> Profile:
    """Measure kernels.

    Parameters
    ----------
    profiled : sequence of ProfileCase
    name : str
        Of the profile.
    device : {"cuda", "cpu"}
    precision : {"fp32", "tf32", "bf16", "fp16", "fp8"}
        Products with weights run in it, the rest in bf16 under fp8.
    repeats : int
        Timed runs of each kernel.
    date : str
        ISO 8601.
    report : callable
        Gets a line per kernel.
    timed : callable, optional
        ``(run, repeats)`` to seconds of each run; the device's own without it.

    Raises
    ------
    InputError
        If not one of them could run.
    """
    measured: list[KernelMeasurement] = []
    skipped: list[SkippedKernel] = []
    timed = timed or timer(device)
    with _products_in(precision):
        for number, case in enumerate(profiled, start=1):
            at = f"{number}/{len(profiled)} {case.operators[0]}, {case.signature.direction}"
            try:
                times, how = _times(case, device, precision, repeats, timed)
            except (_Unmeasured, RuntimeError, ValueError) as error:  # PyTorch raises the latter
                # two for lack of memory, kernel or type.
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:400]
                skipped.append(SkippedKernel(case.signature, case.function, case.operators, reason))
                report(f"{at}: left out, {reason}")
                continue
            middle = statistics.median(times)
            measured.append(
                KernelMeasurement(
                    case.signature,
                    case.function,
                    case.operators,
                    max(middle, 1e-9),
                    _spread(times, middle),
                    repeats,
                    how,
                )
            )
            report(f"{at}: {middle * 1e6:.4g} µs")
    if profiled and not measured:
        raise InputError(
            "--precision",
            "must be one that the device computes in",
            precision,
            f"choose another ({skipped[0].reason[:200].rstrip('.')})",
        )
    return Profile(
        name,
        device_name(device),
        device,
        precision,
        torch.__version__,
        (torch.version.cuda or "") if device == "cuda" else "",
        date,
        tuple(measured),
        tuple(skipped),
    )


def _times(
    case: ProfileCase, device: str, precision: str, repeats: int, timed: Timer
) -> tuple[list[float], str]:
    operands = _Operands(device, _TYPES[precision])
    if case.kernel.unit == "memory":
        run, how = _pass(case, operands)
    elif case.kernel.unit.endswith("attention"):
        run, how = _attention(case, operands)
    else:
        run, how = _product(case, operands, eight=precision == "fp8" and case.kernel.unit == "gemm")
    return timed(run, repeats), how


@dataclass(frozen=True, slots=True)
class _Operands:
    """Random tensors on a device, of one type."""

    device: str
    dtype: torch.dtype

    def random(self, *shape: int, gradient: bool = False) -> Tensor:
        return torch.randn(shape, dtype=self.dtype, device=self.device, requires_grad=gradient)

    def tokens(self, shape: tuple[int, ...], vocabulary: int) -> Tensor:
        return torch.randint(vocabulary, shape, device=self.device)


def _product(case: ProfileCase, operands: _Operands, *, eight: bool) -> tuple[Run, str]:
    """Forward ``a b^T`` as a linear layer stores ``b``; then the gradients of ``a`` and ``b``."""
    count, m, n, k = (math.ceil(size) for size in case.kernel.shape)
    forward = case.signature.direction == "forward"
    left_turned = not forward and case.index == 1
    right_turned = case.transposed if forward else (not case.transposed and case.index == 0)
    if eight:
        loose = operands.random(math.ceil(case.kernel.cast))
        return _eight_bits(operands.random(count, m, k), operands.random(count, n, k), loose)
    first = operands.random(count, k, m).mT if left_turned else operands.random(count, m, k)
    second = operands.random(count, n, k).mT if right_turned else operands.random(count, k, n)
    if count == 1:
        a, b = first[0], second[0]
        flat = torch.empty(m, n, dtype=operands.dtype, device=operands.device)
        return lambda: torch.mm(a, b, out=flat), "torch.mm"
    out = torch.empty(count, m, n, dtype=operands.dtype, device=operands.device)
    return lambda: torch.bmm(first, second, out=out), "torch.bmm"


def _eight_bits(first: Tensor, second: Tensor, loose: Tensor) -> tuple[Run, str]:
    """Return what must be cast first, and the product; one after the other where there are
    several.
    """
    unit = torch.ones((), device=first.device)
    pairs = [
        (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t())
        for a, b in zip(first, second, strict=True)
    ]

    def run() -> None:
        if loose.numel():
            loose.to(torch.float8_e4m3fn)
        for a, b in pairs:
            torch._scaled_mm(a, b, unit, unit, out_dtype=first.dtype)

    return run, "cast and torch._scaled_mm" if loose.numel() else "torch._scaled_mm"


def _attention(case: ProfileCase, operands: _Operands) -> tuple[Run, str]:
    if case.function not in ("", "dropout", "mla"):
        raise _Unmeasured(f"PyTorch's fused attention has no {case.function}")
    if 0 < case.window < case.keys:
        raise _Unmeasured("PyTorch's fused attention has no sliding window")
    *others, value = case.inputs
    batch, heads, rows = others[0][:3]
    width = others[0][-1] + (others[1][-1] if len(others) == 4 else 0)
    groups = value[1]
    query = operands.random(batch, heads, rows, width, gradient=True)
    key = operands.random(batch, groups, case.keys, width, gradient=True)
    values = operands.random(batch, groups, case.keys, value[-1], gradient=True)
    dropped = _DROPPED if case.function == "dropout" else 0.0

    def forward() -> Tensor:
        with sdpa_kernel(_FUSED) if operands.device == "cuda" else nullcontext():
            return F.scaled_dot_product_attention(
                query,
                key,
                values,
                is_causal=case.causal,
                dropout_p=dropped,
                enable_gqa=groups != heads,
            )

    return _either(case, forward, (query, key, values), "scaled_dot_product_attention")


def _pass(case: ProfileCase, make: _Operands) -> tuple[Run, str]:
    op, function = case.signature.op, case.function or case.signature.op
    if op == "embedding":
        return _embedding(case, make)
    if op == "loss":
        return _loss(case, make)
    if op == "norm" and function in ("layernorm", "rmsnorm"):
        return _norm(case, make)
    reads, apply = _POINTWISE.get(function, (0, torch.clone))
    alike = [math.prod(shape) == math.prod(case.output) for shape in case.inputs]
    handed_on = case.signature.direction == "backward" and function in _HANDED_ON
    if len(alike) != reads or not all(alike) or handed_on:
        return _copy(case, make)
    *rows, columns = case.output
    if function in _GATED:
        reads, shape = 1, (*rows, 2 * columns)
    else:
        shape = case.output
    operands = tuple(make.random(*shape, gradient=True) for _ in range(reads))
    how = "torch.nn.functional.glu" if function in _GATED else f"torch {function}"
    return _either(case, lambda: apply(*operands), operands, how)


def _norm(case: ProfileCase, make: _Operands) -> tuple[Run, str]:
    width = case.output[-1:]
    x = make.random(*case.output, gradient=True)
    scale = make.random(*width, gradient=True)
    if case.function == "rmsnorm":
        return _either(case, lambda: F.rms_norm(x, width, scale), (x, scale), "torch rms_norm")
    shift = make.random(*width, gradient=True)
    return _either(
        case, lambda: F.layer_norm(x, width, scale, shift), (x, scale, shift), "torch layer_norm"
    )


def _embedding(case: ProfileCase, operands: _Operands) -> tuple[Run, str]:
    table = operands.random(*case.weight, gradient=True)
    tokens = operands.tokens(case.output[:-1], case.weight[0])
    return _either(case, lambda: F.embedding(tokens, table), (table,), "torch embedding")


def _loss(case: ProfileCase, operands: _Operands) -> tuple[Run, str]:
    *rows, classes = case.inputs[0]
    logits = operands.random(math.prod(rows), classes, gradient=True)
    target = operands.tokens((math.prod(rows),), classes)
    return _either(
        case, lambda: F.cross_entropy(logits.float(), target), (logits,), "torch cross_entropy"
    )


def _copy(case: ProfileCase, operands: _Operands) -> tuple[Run, str]:
    source = operands.random(math.ceil(case.kernel.bytes / 2 / operands.dtype.itemsize))
    target = torch.empty_like(source)
    return lambda: target.copy_(source), "copy of the same bytes"


def _either(
    case: ProfileCase, forward: Callable[[], Tensor], operands: tuple[Tensor, ...], how: str
) -> tuple[Run, str]:
    """Return the forward pass, or the gradient of one that ran before."""
    if case.signature.direction == "forward":
        return forward, how
    written = forward()
    gradient = torch.randn_like(written)

    def backward() -> object:
        return torch.autograd.grad(written, operands, gradient, retain_graph=True)

    return backward, f"gradient of {how}"


def timer(device: str) -> Timer:
    """Return a function ``(run, repeats) -> seconds of each`` that empties the caches before
    each.
    """
    size = _FLUSH_BYTES[device]
    if device == "cuda":
        size = min(size, torch.cuda.get_device_properties("cuda").total_memory // 8)
    flush = torch.empty(size, dtype=torch.int8, device=device)

    def on_cuda(run: Run, repeats: int) -> list[float]:
        for _ in range(WARM_UP["cuda"]):
            run()
        pairs = []
        for _ in range(repeats):
            start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # PyTorch's
            end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # likewise
            flush.zero_()
            start.record()
            run()
            end.record()
            pairs.append((start, end))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairs]

    def on_cpu(run: Run, repeats: int) -> list[float]:
        for _ in range(WARM_UP["cpu"]):
            run()
        times = []
        for _ in range(repeats):
            flush.zero_()
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return times

    return on_cuda if device == "cuda" else on_cpu


@contextmanager
def _products_in(precision: str) -> Iterator[None]:
    """fp32 products whole, or their operands rounded to tf32; as before afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _spread(times: Sequence[float], middle: float) -> float:
    """Difference of the quartiles over the median."""
    if len(times) < 2 or not middle:
        return 0.0
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / middle
