"""What nccl-tests print of a run, after the grammar of their version 2.17."""

from __future__ import annotations

from nest_core.calibration.acceptance.expected import MESSAGE_BYTES, Expected
from nest_core.network.collective import bus_factor

__all__ = ["log_of", "nccl_log"]


def nccl_log(
    program: str,
    ranks: list[tuple[str, int]],
    busbw_Bps: float,
    factor: float,
    largest: float = MESSAGE_BYTES,
) -> str:
    """The output of a program on ranks of (host, device) at one bus bandwidth."""
    lines = [
        f"# Collective test starting: {program}",
        "# nThread 1 nGpus 1 minBytes 536870912 maxBytes 4294967296 step: 2(factor) warmup iters: "
        "1 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
    ]
    lines += [
        f"#  Rank {rank:2d} Group  0 Pid {40_000 + rank} on {host:>10} device {device:2d} "
        f"[0000:1b:00] NVIDIA H100 80GB HBM3"
        for rank, (host, device) in enumerate(ranks)
    ]
    lines += [
        "#",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
        "     (us)  (GB/s)  (GB/s)       ",
    ]
    redop = "none" if program == "alltoall_perf" else "sum"
    for share in (8, 4, 2, 1):
        size = int(largest) // share // (4 * len(ranks)) * 4 * len(ranks)
        us = factor * size / busbw_Bps * 1e6
        algbw, busbw = size / us / 1e3, busbw_Bps / 1e9
        half = f"{us:8.1f} {algbw:7.2f} {busbw:7.2f}       0"
        lines.append(f"{size:12d} {size // 4:13d}     float {redop:>7}      -1 {half} {half}")
    lines += [
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {busbw_Bps / 1e9:.3f} ",
        "#",
    ]
    return "\n".join(lines) + "\n"


def log_of(test: Expected, busbw_Bps: float, largest: float = MESSAGE_BYTES) -> str:
    """The log of a command that ran at such a bus bandwidth."""
    scope = test.scope
    ranks = [
        (f"node{host:03d}", scope.device if scope.device is not None else device)
        for host in range(scope.hosts)
        for device in range(scope.per_host)
    ]
    program = {"all_reduce": "all_reduce_perf", "all_to_all": "alltoall_perf"}[scope.op]
    return nccl_log(program, ranks, busbw_Bps, bus_factor(scope.op, len(ranks)), largest)
