"""HolisticTraceAnalysis beside our reading of the same traces: idle time, hidden communication.

It is asked twice, as it is by default, with times rounded to whole microseconds, and with its
variable that leaves them as they are.
"""

import json
import random
from pathlib import Path

from benchmarks.outside.tool import BUILD, Row, Tool
from nest_core.calibration.logs.traces import read_trace

TOOL = Tool("HolisticTraceAnalysis", "0.5.0", ("HolisticTraceAnalysis==0.5.0",))
EXACT = {"HTA_DISABLE_NS_ROUNDING": "1"}
SEED, TRACES, KERNELS = 41, 8, 400
NEAR = 0.01
"""Percent, of which HolisticTraceAnalysis says two decimals."""
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Kernel = tuple[str, int, int, int]


def event(name: str, begins_ns: int, taken_ns: int, stream: int) -> str:
    """Return a kernel as PyTorch's profiler writes it, microseconds with three decimals."""
    times = [f"{ns // 1000}.{ns % 1000:03d}" for ns in (begins_ns, taken_ns)]
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream},'
        f' "ts": {times[0]}, "dur": {times[1]}, "args": {{"stream": {stream},'
        f' "correlation": {begins_ns}}}}}'
    )


def launched(begins_ns: int, correlation: int) -> str:
    """Return the call that launched one, without which no kernel counts there."""
    times = [f"{ns // 1000}.{ns % 1000:03d}" for ns in (begins_ns, 500)]
    return (
        '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,'
        f' "ts": {times[0]}, "dur": {times[1]}, "args": {{"correlation": {correlation}}}}}'
    )


def stream_of_short_kernels() -> list[Kernel]:
    """Return kernels of 1.9 us end to end, and an all-reduce of 1 ms beside them."""
    kernels = [("gemm", 1_000_300 + 1_900 * number, 1_900, 7) for number in range(1000)]
    return [*kernels, (ALL_REDUCE, 1_450_400, 1_000_900, 20)]


def drawn(rng: random.Random) -> list[Kernel]:
    """Return kernels of two streams, with gaps."""
    kernels = []
    for name, stream in (("gemm", 7), (ALL_REDUCE, 20)):
        clock = 1_000_000
        for _ in range(KERNELS):
            taken = rng.randint(200, 9_000)
            kernels.append((name, clock, taken, stream))
            clock += taken + rng.choice([0, 0, 150, 4_000])
    return kernels


def written(file: Path, kernels: list[Kernel]) -> Path:
    """Return a file with a trace."""
    events = [event(*kernel) for kernel in kernels]
    events += [launched(kernel[1] - 900_000, kernel[1]) for kernel in kernels]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(events) + "\n]}")
    return file


def shares(file: Path) -> tuple[float, float]:
    """Return what we read: percent idle, and percent of communication that is hidden."""
    trace = read_trace(file)
    idle = 100 * trace.seconds["idle"] / sum(trace.seconds.values())
    return idle, 100 * (trace.hidden_share or 0.0)


def rows() -> list[Row]:
    """Return how many traces both read alike."""
    rng = random.Random(SEED)
    runs = [stream_of_short_kernels(), *(drawn(rng) for _ in range(TRACES - 1))]
    folder = BUILD / "plans" / "hta"
    files = [written(folder / f"{n}.json", kernels) for n, kernels in enumerate(runs)]
    ours = [shares(file) for file in files]
    result = []
    for what, more in (("by default", {}), ("times left as they are", EXACT)):
        theirs = json.loads(TOOL.run("hta_breakdown.py", *files, environment=more).splitlines()[-1])
        alike = [
            all(abs(a - b) <= NEAR for a, b in zip(*pair, strict=True))
            for pair in zip(ours, theirs, strict=True)
        ]
        (idle, hidden), (idle_there, hidden_there) = ours[0], theirs[0]
        remark = (
            f"kernels of 1.9 us without a gap: idle {idle_there:.3g} %, ours {idle:.3g} %; an "
            f"all-reduce beside them: hidden {hidden_there:.3g} %, ours {hidden:.3g} %"
        )
        result.append(TOOL.row(f"idle and hidden shares, {what}", len(runs), sum(alike), remark))
    return result
