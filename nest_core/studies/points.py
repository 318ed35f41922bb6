"""What a sweep finds: its axes, its points, and where the plan changes between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nest_core.explain.interval import Interval, Span
from nest_core.studies.parameter import Value
from nest_core.units import to_gib

__all__ = ["Axis", "Outcome", "Status", "Sweep", "changes"]

Status = Literal["solved", "memory", "invalid", "time limit"]
_DEGREES = ("tp", "pp", "dp", "cp", "ep")
_NAMES = {
    "micro_batch": "micro-batch",
    "zero": "ZeRO",
    "recompute": "recompute",
    "schedule": "",
}


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter as a sweep varied it.

    Parameters
    ----------
    parameter, label, unit : str
    values : tuple of value
        In order.
    shown : tuple of str
        The same in words.
    present : value or None
        What the scenario has; None where the search chooses.
    doubling, fabric : bool
        See `SweepParameter`.
    """

    parameter: str
    label: str
    unit: str
    values: tuple[Value, ...]
    shown: tuple[str, ...]
    present: Value | None
    doubling: bool
    fabric: bool

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    def words(self, value: Value | None) -> str:
        """One of its values in words."""
        return dict(zip(self.values, self.shown, strict=True))[value] if value is not None else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One point of a sweep.

    Parameters
    ----------
    x, y : value
        Of the parameters; ``y`` is None with one parameter.
    status : {"solved", "memory", "invalid", "time limit"}
        Whether there is a plan; else that none fits, that the scenario breaks a rule, or that the
        time was over before any was found.
    reason : str
        Why there is none; empty where there is one.
    needed_bytes : float
        Memory per device that is enough for some plan; 0 where one fits, or unknown.
    proven : bool
        Whether the plan is the best.
    gap : float
        How far the plan may be from the best, relative.
    devices : int or None
    realised : tuple of str
        What the oversubscription ratios become in whole ports.
    iteration_s, samples_per_s, tokens_per_s, mfu, bubble : float or None
    memory_bytes, limit_bytes : float or None
        Of the fullest stage, and of a device.
    memory_parts : tuple of (str, float)
        What the fullest stage holds, bytes.
    words : str
        The plan as a sentence.
    plan : dict or None
        `Plan.to_json`.
    network_usd, network_W : float or None
        Typical price and power of the network; None where it cannot be priced.
    interval : Interval or None
        Where the plan's time will lie.
    """

    x: Value
    y: Value | None
    status: Status
    reason: str = ""
    needed_bytes: float = 0.0
    proven: bool = False
    gap: float = 0.0
    devices: int | None = None
    realised: tuple[str, ...] = ()
    iteration_s: float | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    mfu: float | None = None
    bubble: float | None = None
    memory_bytes: float | None = None
    limit_bytes: float | None = None
    memory_parts: tuple[tuple[str, float], ...] = ()
    words: str = ""
    plan: dict[str, Any] | None = None
    network_usd: float | None = None
    network_W: float | None = None
    interval: Interval | None = None

    @property
    def span(self) -> Span | None:
        """Between which throughputs it will lie, tokens/s."""
        if self.interval is None or self.tokens_per_s is None:
            return None
        return self.interval.around(self.tokens_per_s)

    @property
    def feasible(self) -> bool:
        """Whether there is a plan."""
        return self.status == "solved"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep's answer.

    Parameters
    ----------
    scenario : str
        Title of the scenario that was turned (`nest_core.scenario.titles`).
    x, y : Axis
        ``y`` is None with one parameter.
    points : tuple of Outcome
        Row by row: for every ``y`` all ``x``. All of them only if ``complete``.
    complete : bool
        False where it was given up on the way.
    """

    scenario: str
    x: Axis
    y: Axis | None
    points: tuple[Outcome, ...]
    complete: bool

    @property
    def axes(self) -> tuple[Axis, ...]:
        """One or two."""
        return (self.x,) if self.y is None else (self.x, self.y)

    def named(self, point: Outcome) -> str:
        """A point by its values: ``leaf oversubscription 2:1, ZeRO 3``."""
        found = [_named(self.x, point.x)]
        if self.y is not None:
            found.append(_named(self.y, point.y))
        return ", ".join(found)

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per point; units stand in the column names."""
        return [self._row(point) for point in self.points]

    def _row(self, point: Outcome) -> dict[str, Any]:
        memory, limit = point.memory_bytes, point.limit_bytes
        plan = point.plan or {}
        turned: dict[str, Any] = {self.x.title: point.x}
        if self.y is not None:
            turned[self.y.title] = point.y
        found = {
            "feasible": point.feasible,
            "reason": point.reason,
            "throughput, tokens/s": point.tokens_per_s,
            "throughput, sequences/s": point.samples_per_s,
            "iteration, s": point.iteration_s,
            "iteration, low, s": point.interval and point.interval.low_s,
            "iteration, high, s": point.interval and point.interval.high_s,
            "MFU": point.mfu,
            "bubble": point.bubble,
            "fullest stage, GiB": None if memory is None else to_gib(memory),
            "memory per device, GiB": None if limit is None else to_gib(limit),
            "devices": point.devices,
            **{name: plan.get(name) for name in _DEGREES},
            "micro-batch, sequences": plan.get("micro_batch"),
            "ZeRO": plan.get("zero"),
            "recomputation": plan.get("recompute"),
            "schedule": plan.get("schedule"),
            "network price, $": point.network_usd,
            "network power, W": point.network_W,
            "ratios become": "; ".join(point.realised),
            "proven": point.proven,
            "plan": point.words,
        }
        return turned | found | turned  # a parameter may be called like a result


def changes(before: Outcome, after: Outcome, turned: Collection[str] = ()) -> tuple[str, ...]:
    """What the plans of two points differ in: ``("tp 4 → 8", "pp 16 → 8")``; degrees first.

    Empty where they do the same or one has no plan; cuts alone are no difference, nor is what
    the parameters whose keys are ``turned`` pin.
    """
    if before.plan is None or after.plan is None:
        return ()
    found = [
        _change(key, _NAMES.get(key, key), before.plan, after.plan)
        for key in (*_DEGREES, *_NAMES)
        if key not in turned
    ]
    if before.plan["sp"] != after.plan["sp"]:
        found.append("with sp" if after.plan["sp"] else "without sp")
    return tuple(filter(None, found))


def _change(key: str, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return "" if before[key] == after[key] else f"{name} {before[key]} → {after[key]}".strip()


def _named(axis: Axis, value: Value | None) -> str:
    shown = axis.words(value)
    if shown.startswith("ZeRO"):
        return shown
    plain = axis.unit in ("", "down : up")
    return f"{axis.label} {shown}" if plain else f"{axis.label} {shown} {axis.unit}"
