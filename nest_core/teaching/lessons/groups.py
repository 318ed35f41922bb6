"""Lessons on groups of devices: experts, tensor parallelism, oversubscription, collectives."""

from functools import cache

from nest_core.calibration.collectives.sweep import sweep
from nest_core.costs import MEGATRON_ORDER, Plan, Point, Report, even_cuts, links, price
from nest_core.documents.units import format_ratio, from_gbps_bytes, from_microseconds
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import Network, collapse, collective
from nest_core.planner import SearchSpace, search
from nest_core.teaching.lessons.figure import (
    NODE_GBPS,
    UPLINK_GBPS,
    Given,
    LessonFigure,
    Plans,
    Sweeps,
    problem,
)
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings
from nest_core.workload import load_model

__all__ = [
    "COLLECTIVES",
    "EXPERTS",
    "OVERSUBSCRIPTION",
    "TENSOR",
    "block_seconds",
    "crossing_bytes",
    "expert_buffer_bytes",
    "fastest_width",
    "spread_experts",
    "width_reports",
]

_BLOCK = 1  # the first layer after the embedding
_MIXTURE, _MIXTURE_NAME = "mixtral-8x7b", "Mixtral 8x7B"
_DEVICES, _STAGES, _REPLICAS, _BATCH, _TOKENS = 64, 4, 16, 256, 4096
_DEGREES = (1, 2, 4, 8)
_VALUE_BYTES = 2


@cache
def spread_experts(ep: int, node: int, imbalance: float) -> Report:
    """Price a degree: ``pp`` 4, ``dp`` 16, ZeRO 1, all communication exposed.

    Parameters
    ----------
    ep : int
    node : int
        Devices of a node.
    imbalance : float
        Load of the hottest device over the mean.
    """
    job = problem(_MIXTURE, _TOKENS, _BATCH, _DEVICES, node, imbalance=imbalance, overlap=False)
    point = Point(1, False, _REPLICAS, _STAGES, 1, 1, MEGATRON_ORDER, ep=ep)
    return price(job, Plan(point, even_cuts(job.layers, _STAGES), ("full",) * _STAGES))


@cache
def expert_buffer_bytes(ep: int, imbalance: float) -> float:
    """Return what the hottest device holds for one all-to-all, its own part included."""
    job = problem(_MIXTURE, _TOKENS, _BATCH, _DEVICES, 8, imbalance=imbalance, overlap=False)
    calls = job.table(1, False, 1, 1, ep, 1).calls["ep"]
    return float(calls.bytes[_BLOCK] / calls.number[_BLOCK])


def _buffer(given: Settings) -> float:
    return expert_buffer_bytes(int(given["ep"]), float(given["imbalance"]))


EXPERTS = LessonFigure(
    "experts",
    (
        Control("node", "Devices per node", (2, 4, 8), 8, "2, 4 or 8; ep goes up to 8."),
        Control(
            "imbalance",
            "Imbalance",
            (1.0, 1.25, 1.5, 2.0),
            1.0,
            "Load of the hottest device over the mean: 1 to 2.",
        ),
    ),
    lambda settings: Reveal(
        Plans(
            {
                f"ep {ep}": spread_experts(ep, int(settings["node"]), float(settings["imbalance"]))
                for ep in _DEGREES
            },
            ("memory", "time"),
        )
    ),
    {"ep": Given(8, 2, 8), "imbalance": Given(1.0, 1, 8), "node": Given(8, 2, 8)},
    {
        "name": lambda given: _MIXTURE_NAME,
        "devices": lambda given: _DEVICES,
        "pp": lambda given: _STAGES,
        "dp": lambda given: _REPLICAS,
        "tokens": lambda given: _TOKENS,
        "hidden": lambda given: load_model(_MIXTURE).hidden,
        "experts": lambda given: load_model(_MIXTURE).experts,
        "chosen": lambda given: load_model(_MIXTURE).top_k,
        "held": lambda given: load_model(_MIXTURE).experts // int(given["ep"]),
        "stays": lambda given: 1 / int(given["ep"]),
        "value_bytes": lambda given: _VALUE_BYTES,
        "seen": lambda given: load_model(_MIXTURE).top_k / int(given["ep"]),
        "leaves": lambda given: 1 - 1 / int(given["ep"]),
        "buffer": _buffer,
        "sent": lambda given: (1 - 1 / int(given["ep"])) * _buffer(given),
        "sent_mean": lambda given: (1 - 1 / int(given["ep"])) * _buffer({**given, "imbalance": 1}),
        "sent_stays": lambda given: _buffer(given) / int(given["ep"]),
    },
    slow=True,
)

_DENSE, _DENSE_NAME = "llama3-70b", "Llama 3 70B"
_WIDTHS = (1, 2, 4, 8, 16, 32)
_RATIOS = (1, 2, 4, 8)


@cache
def block_seconds(
    tp: int, per_node: int, ratio: int, tokens: int
) -> tuple[float, int, float, float]:
    """Price a block on one rank of a width, forward and backward of one micro-batch.

    Returns
    -------
    tuple of (float, int, float, float)
        Seconds of compute; collectives, bytes of the whole buffer of each, and seconds of each.
    """
    job = problem(_DENSE, tokens, _DEVICES, _DEVICES, per_node, ratio=float(ratio))
    table = job.table(tp, tp > 1, 1, 1, 1, tp)
    compute_s = float(table.compute_s[_BLOCK])
    if tp == 1:
        return compute_s, 0, 0.0, 0.0
    calls = table.calls["tp"]
    size = float(calls.bytes[_BLOCK] / calls.number[_BLOCK])
    times = links(job, Point(tp, True, _DEVICES // tp, 1, 1, 0, MEGATRON_ORDER)).time(
        "tp", calls.kind
    )
    return compute_s, round(float(calls.number[_BLOCK])), size, float(times.seconds(size)[0])


def _fabric(given: Settings) -> tuple[int, int, int]:
    return int(given["per_node"]), int(given["ratio"]), int(given["tokens"])


def _tensor(settings: Settings) -> Reveal:
    """Price a sequence through all blocks on one group of each width, nothing hidden."""
    per_node, ratio, tokens = _fabric(settings)
    job = problem(_DENSE, tokens, 1, _DEVICES, per_node, ratio=float(ratio), overlap=False)
    points = [Point(tp, tp > 1, 1, 1, 1, 0, MEGATRON_ORDER) for tp in _WIDTHS]
    reports = {
        _width_name(point.tp, per_node): price(job, Plan(point, (0, job.layers), ("none",)))
        for point in points
    }
    return Reveal(Plans(reports, ("time",)))


def _width_name(tp: int, per_node: int) -> str:
    nodes = max(tp // per_node, 1)
    return f"tp {tp}, {nodes} node{'' if nodes == 1 else 's'}"


def _one(given: Settings) -> float:
    return block_seconds(1, *_fabric(given))[0]


def _width(given: Settings) -> tuple[float, int, float, float]:
    return block_seconds(int(given["per_node"]), *_fabric(given))


def _sent_s(given: Settings) -> float:
    _, calls, _, seconds = _width(given)
    return calls * seconds


TENSOR = LessonFigure(
    "tensor",
    (
        Control("per_node", "Devices per node", (4, 8), 8, "4 or 8."),
        Control(
            "ratio",
            "Oversubscription, down : up",
            _RATIOS,
            1,
            "Of the nodes' uplinks: 1 to 8.",
            tuple(map(format_ratio, _RATIOS)),
        ),
        Control("tokens", "Tokens", (2048, 8192, 32768), 8192, "Of a sequence."),
    ),
    _tensor,
    {
        "per_node": Given(8, 4, 8),
        "ratio": Given(1, 1, 8),
        "tokens": Given(8192, 1024, 32768),
    },
    {
        "model": lambda given: _DENSE_NAME,
        "node_GBps": lambda given: NODE_GBPS,
        "uplink_GBps": lambda given: UPLINK_GBPS,
        "whole": _one,
        "share": lambda given: _one(given) / int(given["per_node"]),
        "twice": lambda given: 2 * _one(given) / int(given["per_node"]),
        "compute": lambda given: _width(given)[0],
        "calls": lambda given: _width(given)[1],
        "call": lambda given: _width(given)[2],
        "each": lambda given: _width(given)[3],
        "sent": _sent_s,
        "seconds": lambda given: _width(given)[0] + _sent_s(given),
        "part": lambda given: _sent_s(given) / (_width(given)[0] + _sent_s(given)),
        "over_compute": lambda given: _sent_s(given) / _width(given)[0],
        "one_call": lambda given: _width(given)[3] / (_width(given)[0] + _width(given)[3]),
        "faster": lambda given: _one(given) / (_width(given)[0] + _sent_s(given)),
    },
    slow=True,
)

_LARGE, _LARGE_NAME = "llama3.1-405b", "Llama 3.1 405B"
_LARGE_DEVICES, _LARGE_BATCH, _LARGE_TOKENS = 256, 512, 8192


@cache
def width_reports(per_node: int, ratio: int) -> dict[int, Report | None]:
    """Search the best plan of every tensor-parallel width; None where none fits.

    Cuts, depth, replicas and recomputation are free; micro-batches of one, ZeRO up to stage 1,
    no context parallelism.

    Parameters
    ----------
    per_node : int
        Devices of a node.
    ratio : int
        Oversubscription of the nodes' uplinks, down : up.
    """
    job = problem(_LARGE, _LARGE_TOKENS, _LARGE_BATCH, _LARGE_DEVICES, per_node, ratio=float(ratio))
    spaces = {
        tp: SearchSpace(
            tp=(tp,),
            sp=(tp > 1,),
            dp=tuple(2**power for power in range(9)),
            pp=(2, 4, 8, 16, 32),
            micro_batch=(1,),
            zero=(0, 1),
            recompute=("none", "full"),
            orders=(MEGATRON_ORDER,),
            idle_devices=False,
        )
        for tp in _WIDTHS
    }
    return {tp: search(job, space).best for tp, space in spaces.items()}


def fastest_width(per_node: int, ratio: int) -> int:
    """Return the width with the shortest iteration."""
    seconds = {
        tp: report.iteration_s
        for tp, report in width_reports(per_node, ratio).items()
        if report is not None
    }
    return min(seconds, key=seconds.__getitem__)


def _fastest(given: Settings, ratio: str) -> int:
    return fastest_width(int(given["node"]), int(given[ratio]))


def _right(given: Settings) -> str:
    before, after = _fastest(given, "before"), _fastest(given, "after")
    inside = after <= int(given["node"])
    return "a" if after == before else "c" if after > before else "b" if inside else "d"


def _to_one(ratio: int) -> str:
    """Return a ratio that no line breaks."""
    return f"{ratio}\u00a0:\u00a01"


def _uplink_seconds(given: Settings) -> float:
    """Return how long what every device of a node sends at once takes on their uplinks."""
    node, ratio = int(given["node"]), float(given["after"])
    job = problem(_LARGE, _LARGE_TOKENS, _LARGE_BATCH, _LARGE_DEVICES, node, ratio=ratio)
    return 1e6 * float(given["size_MB"]) / job.network.levels[-1].bandwidth_Bps


OVERSUBSCRIPTION = LessonFigure(
    "oversubscription",
    (
        Control(
            "after",
            "Oversubscription, down : up",
            (1, 2, 3, 4, 8),
            4,
            "Of the nodes' uplinks: 1 to 8.",
            tuple(map(format_ratio, (1, 2, 3, 4, 8))),
        ),
        Control("node", "Devices per node", (4, 8), 8, "4 or 8."),
    ),
    lambda settings: Reveal(
        Plans(
            {
                _width_name(tp, int(settings["node"])): report
                for tp, report in width_reports(
                    int(settings["node"]), int(settings["after"])
                ).items()
            },
            ("rate", "time"),
            _LARGE_TOKENS,
        )
    ),
    {
        "node": Given(8, 1, 16),
        "before": Given(1, 1, 64),
        "after": Given(4, 1, 64),
        "size_MB": Given(100.0, 1e-3, 1e6),
    },
    {
        "name": lambda given: _LARGE_NAME,
        "devices": lambda given: _LARGE_DEVICES,
        "node_GBps": lambda given: NODE_GBPS,
        "uplink_GBps": lambda given: UPLINK_GBPS,
        "one_to_one": lambda given: _to_one(1),
        "before_to_one": lambda given: _to_one(int(given["before"])),
        "after_to_one": lambda given: _to_one(int(given["after"])),
        "first": lambda given: _fastest(given, "before"),
        "then": lambda given: _fastest(given, "after"),
        "nodes": lambda given: _fastest(given, "before") // int(given["node"]),
        "right": _right,
        "left_GBps": lambda given: UPLINK_GBPS / int(given["after"]),
        "uplink": _uplink_seconds,
        "uplink_whole": lambda given: _uplink_seconds({**given, "after": 1}),
        "uplink_again": lambda given: int(given["node"]) * _uplink_seconds(given),
    },
    slow=True,
)

_PORT_GBPS = 50.0
_ENDLESS_BYTES = 2.0**40
_ALGORITHMS = ("ring", "double_binary_tree")


@cache
def _switch(devices: int, latency_us: float) -> Network:
    port = (from_gbps_bytes(_PORT_GBPS), from_microseconds(latency_us))
    return collapse(Hierarchical("one switch", (Tier("switch", devices, *port, "device"),)))


def _all_reduce_s(algorithm: str, size_bytes: float, given: Settings) -> float:
    devices = int(given["devices"])
    network = _switch(devices, float(given["latency_us"]))
    return collective(network, "all_reduce", size_bytes, devices, algorithm=algorithm).time_s


def crossing_bytes(devices: int, latency_us: float) -> float:
    """Return the size from which on a ring beats a tree; infinite where the tree always does."""
    given = {"devices": devices, "latency_us": latency_us}
    ring_s, tree_s = (_all_reduce_s(name, 0.0, given) for name in _ALGORITHMS)
    ring_end_s, tree_end_s = (_all_reduce_s(name, _ENDLESS_BYTES, given) for name in _ALGORITHMS)
    slower = (tree_end_s - tree_s - ring_end_s + ring_s) / _ENDLESS_BYTES
    return max((ring_s - tree_s) / slower, 0.0) if slower > 0 else float("inf")


def _early_bytes(given: Settings) -> float:
    """Return where the steps that the tree saves weigh as much as all of the ring's bytes."""
    ring_s, tree_s = (_all_reduce_s(name, 0.0, given) for name in _ALGORITHMS)
    return (
        (ring_s - tree_s) * _ENDLESS_BYTES / (_all_reduce_s("ring", _ENDLESS_BYTES, given) - ring_s)
    )


def _steps(algorithm: str, given: Settings) -> int:
    latency_s = from_microseconds(float(given["latency_us"]))
    return round(_all_reduce_s(algorithm, 0.0, given) / latency_s)


COLLECTIVES = LessonFigure(
    "collectives",
    (
        Control("devices", "Devices (n)", (4, 8, 16, 64, 256), 16, "In one group: 4 to 256."),
        Control("latency_us", "Latency, µs", (1, 2, 5, 20), 2, "Of one step: 1 to 20 µs."),
    ),
    lambda settings: Reveal(
        Sweeps(
            tuple(
                sweep(
                    _switch(int(settings["devices"]), float(settings["latency_us"])),
                    "all_reduce",
                    int(settings["devices"]),
                    algorithm=name,
                )
                for name in _ALGORITHMS
            )
        )
    ),
    {
        "devices": Given(16, 2, 4096),
        "latency_us": Given(2.0, 0.01, 1000),
        "size_MB": Given(100.0, 1e-3, 1e6),
    },
    {
        "port_GBps": lambda given: _PORT_GBPS,
        "crosses": lambda given: crossing_bytes(int(given["devices"]), float(given["latency_us"])),
        "doubled": lambda given: crossing_bytes(
            2 * int(given["devices"]), float(given["latency_us"])
        ),
        "growth": lambda given: (
            crossing_bytes(2 * int(given["devices"]), float(given["latency_us"]))
            / crossing_bytes(int(given["devices"]), float(given["latency_us"]))
        ),
        "early": _early_bytes,
        "ring_steps": lambda given: _steps("ring", given),
        "tree_steps": lambda given: _steps("double_binary_tree", given),
        "at_once": lambda given: (
            _all_reduce_s("ring", 1e6 * float(given["size_MB"]), given)
            - _all_reduce_s("ring", 0.0, given)
        ),
        "ring": lambda given: _all_reduce_s("ring", 1e6 * float(given["size_MB"]), given),
        "tree": lambda given: _all_reduce_s(
            "double_binary_tree", 1e6 * float(given["size_MB"]), given
        ),
    },
    slow=True,
)
