"""Lessons on a cluster over a month: failures and saves, and neighbours on one fabric."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from nest_core.costs.parse import read_plan
from nest_core.documents import DAY_S, format_ratio, from_gbps_bytes
from nest_core.documents.failures import load_failures
from nest_core.documents.schema import checked
from nest_core.documents.schema.mix import MixFile
from nest_core.reliability.checkpoint import availability_s, young_s
from nest_core.reliability.goodput import GoodputEstimate, estimate
from nest_core.reliability.process import Shares, effective_shares
from nest_core.scenario import Scenario, fabric_document, scenario_document
from nest_core.studies.mixes import MixResult, play_mix
from nest_core.teaching.lessons.figure import UPLINK_GBPS, Given, LessonFigure
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings

__all__ = [
    "FAILURES",
    "NEIGHBOURS",
    "PlacedJobs",
    "SaveShares",
    "estimated",
    "neighbours",
    "shares",
]

_LARGE, _LARGE_FABRIC, _LARGE_NAME = "llama3.1-405b-8192-h100", "meta-3tier-7to1", "Llama 3.1 405B"
_REPLICA = 128
_SMALL, _SMALL_FABRIC, _EACH, _BATCH = "llama2-7b-64-h100", "h100-spine-leaf-64", 32, 128
MONTH_DAYS = 30


class SaveShares(NamedTuple):
    """Where the time goes by minutes between saves, and at the best interval."""

    devices: int
    minutes: tuple[float, ...]
    shares: tuple[Shares, ...]
    best_s: float
    best: Shares


@cache
def estimated(devices: int) -> GoodputEstimate:
    """Return what failures leave of a plan: replicas of tp 8 and pp 16, failures of Llama 3."""
    document, _ = scenario_document(_LARGE)
    values = Scenario({**document, "fabric": fabric_document(_LARGE_FABRIC)}, {}).values
    problem = values.problem()
    words = f"dp={devices // _REPLICA},tp=8,pp=16,micro_batch=1,zero=1"
    plan = read_plan(words, problem.layers, devices)
    return estimate(problem, values.fabric, plan, load_failures())


def shares(devices: int, faster: float, interval_s: float = 0.0) -> tuple[float, Shares]:
    """Return from save to save, the best or as given, and where the time goes.

    ``faster`` divides what a recovery takes.
    """
    of = estimated(devices)
    restart_s = of.process.restart_s / faster
    interval_s = interval_s or availability_s(of.mtbf_s, of.saving, restart_s)
    work_s = interval_s - of.saving.blocking_s
    return interval_s, effective_shares(replace(of.process, restart_s=restart_s, work_s=work_s))


def _saves(settings: Settings) -> Reveal:
    devices, faster = int(settings["devices"]), float(settings["faster"])
    minutes = tuple(np.geomspace(1.0, 360.0, 60).tolist())
    lines = tuple(shares(devices, faster, 60 * number)[1] for number in minutes)
    return Reveal(SaveShares(devices, minutes, lines, *shares(devices, faster)))


def _share(given: Settings, part: int | None = None, interval_s: float = 0.0) -> float:
    of = shares(int(given["devices"]), float(given["faster"]), interval_s)[1]
    return of.effective if part is None else of.losses[part]


FAILURES = LessonFigure(
    "failures",
    (
        Control("devices", "Devices", (1024, 4096, 8192, 16384), 16384, "That one job uses."),
        Control(
            "faster",
            "Recovery, times as fast",
            (1, 2, 4),
            1,
            "Detection, restart and reading the last save.",
        ),
    ),
    _saves,
    {
        "devices": Given(16384, 128, 16384),
        "faster": Given(1.0, 1, 100),
        "hours": Given(3.0, 0.1, 1000),
        "save": Given(3.0, 0.1, 1000),
    },
    {
        "name": lambda given: _LARGE_NAME,
        "month": lambda given: MONTH_DAYS,
        "mtbf": lambda given: estimated(int(given["devices"])).mtbf_s,
        "failures": lambda given: MONTH_DAYS * DAY_S / estimated(int(given["devices"])).mtbf_s,
        "recovery": lambda given: (
            estimated(int(given["devices"])).process.restart_s / float(given["faster"])
        ),
        "write": lambda given: estimated(int(given["devices"])).saving.write_s,
        "bytes": lambda given: estimated(int(given["devices"])).state.total_bytes,
        "interval": lambda given: shares(int(given["devices"]), float(given["faster"]))[0],
        "effective": _share,
        "lost": lambda given: 1 - _share(given),
        "days": lambda given: MONTH_DAYS * _share(given),
        "saves": lambda given: _share(given, 0),
        "work": lambda given: _share(given, 1),
        "down": lambda given: _share(given, 2),
        "rare": lambda given: _share(given, None, estimated(int(given["devices"])).mtbf_s),
        "small": lambda given: _share({**given, "devices": 1024}),
        "few": lambda given: 1024,
        "young": lambda given: young_s(3600 * float(given["hours"]), float(given["save"])),
        "rooted": lambda given: young_s(1800 * float(given["hours"]), float(given["save"])),
        "all": lambda given: 3600 * float(given["hours"]),
    },
    slow=True,
)


class PlacedJobs(NamedTuple):
    """Two jobs packed and spread."""

    results: tuple[MixResult, ...]


@cache
def neighbours(ratio: float, zero: int) -> PlacedJobs:
    """Play two jobs of 32 H100 on leaves of 32, packed and spread, as ``nest-studio mix`` does."""
    fabric = fabric_document(_SMALL_FABRIC)
    fabric["clos"] = {**fabric["clos"], "oversubscription": [ratio]}
    run = {
        "scenario": _SMALL,
        "overrides": {"workload.global_batch_sequences": _BATCH},
        "devices": _EACH,
        "plan": f"dp={_EACH},tp=1,pp=1,micro_batch=1,zero={zero}",
    }
    jobs = [{**run, "name": "yours"}, {**run, "name": "the neighbour"}]
    file = {"schema": 1, "name": "Two jobs", "fabric": fabric, "job": jobs}
    placed = (checked(MixFile, {**file, "placement": how}) for how in ("packed", "spread"))
    return PlacedJobs(tuple(map(play_mix, placed)))


def _yours(given: Settings, number: int) -> tuple[float, float, float]:
    """Return seconds undisturbed, beside the neighbour and at most; packed 0, spread 1."""
    job = neighbours(float(given["ratio"]), int(given["zero"])).results[number].jobs[0]
    return job.undisturbed_s, job.seconds, job.most_s


def _over(given: Settings, which: int) -> float:
    times = _yours(given, 1)
    return times[which] / times[0] - 1


def _uplink_s(given: Settings, jobs: float) -> float:
    rate_GBps = min(UPLINK_GBPS, UPLINK_GBPS / float(given["ratio"]) * jobs)
    return 1e6 * float(given["size_MB"]) / from_gbps_bytes(rate_GBps)


_RATIOS = (1, 2, 4, 8)
NEIGHBOURS = LessonFigure(
    "neighbours",
    (
        Control(
            "ratio",
            "Oversubscription, down : up",
            _RATIOS,
            4,
            "Of the leaves' uplinks: 1 to 8.",
            tuple(map(format_ratio, _RATIOS)),
        ),
        Control("zero", "ZeRO stage", (2, 3), 3, "Stage 3 gathers weights in every layer."),
    ),
    lambda settings: Reveal(neighbours(float(settings["ratio"]), int(settings["zero"]))),
    {
        "ratio": Given(4.0, 1, 64),
        "zero": Given(3, 2, 3),
        "jobs": Given(2, 2, 8),
        "size_MB": Given(100.0, 1e-3, 1e6),
    },
    {
        "each": lambda given: _EACH,
        "to_one": lambda given: format_ratio(float(given["ratio"])),
        "packed": lambda given: _yours(given, 0)[1],
        "alone": lambda given: _yours(given, 1)[0],
        "beside": lambda given: _yours(given, 1)[1],
        "most": lambda given: _yours(given, 1)[2],
        "slower": lambda given: _over(given, 1),
        "bound": lambda given: _over(given, 2),
        "twice": lambda given: 1.0,
        "nic_GBps": lambda given: UPLINK_GBPS,
        "left_GBps": lambda given: UPLINK_GBPS / float(given["ratio"]),
        "together": lambda given: _uplink_s(given, 1),
        "own": lambda given: _uplink_s(given, float(given["jobs"])),
        "whole": lambda given: 1e6 * float(given["size_MB"]) / from_gbps_bytes(UPLINK_GBPS),
    },
    slow=True,
)
