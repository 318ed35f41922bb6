"""Rows of studies: what planning a scenario comes to, the table of all points, and its file."""

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

import numpy as np

from nest_core.bill.bill import bill
from nest_core.bill.prices import Prices
from nest_core.costs import Interval, Problem
from nest_core.documents import InputError, require, to_gib
from nest_core.planner import SearchResult
from nest_core.report.explain.summary import fullest, plan_in_words
from nest_core.scenario import ScenarioValues
from nest_core.studies.parameters import Value
from nest_core.studies.study import Study
from nest_core.studies.uncertainty import PairedRate, Sureness

__all__ = [
    "TRANSIENT",
    "RowCache",
    "StudyRow",
    "planned_row",
    "row_of",
    "rows_from",
    "rows_of",
    "to_parquet",
]

Status = Literal["solved", "memory", "invalid", "time limit", "failed", "beyond"]
TRANSIENT = ("failed", "beyond")
"""Statuses that depend on more than the scenario: on a worker, or on a limit of the search."""
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class StudyRow:
    """What planning a scenario at one point of a study comes to.

    Parameters
    ----------
    status : str
        ``solved``; ``memory``: no plan fits; ``invalid``: the scenario breaks a rule; ``time
        limit``: the time was over before a plan was found; ``failed``: the worker found a defect,
        died, or did not end; ``beyond``: every plan takes longer than the limit of the point.
    reason : str
        Why there is no plan; empty where there is one.
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
    words : str
        The plan as a sentence.
    plan : dict or None
        `Plan.to_json`.
    network_usd, network_W : float or None
        Typical price and power of the network; None where its parts cannot be counted.
    sureness : Sureness or None
        How surely the plan's time is known, if the study asks for it.
    paired : PairedRate or None
        Its throughput beside that of the sweep's reference, in a sweep.
    worst_loss : float or None
        Share of throughput that the worst failed switch takes, if the study asks for it.
    effective_share : float or None
        Share of the time that failures leave, if the study asks for it.
    values : tuple of value
        Of the axes, in a sweep.
    """

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
    words: str = ""
    plan: dict[str, Any] | None = None
    network_usd: float | None = None
    network_W: float | None = None
    sureness: Sureness | None = field(default=None, compare=False)
    paired: PairedRate | None = None
    worst_loss: float | None = None
    effective_share: float | None = None
    values: tuple[Value, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether there is a plan."""
        return self.status == "solved"

    @property
    def interval(self) -> Interval | None:
        """Where the plan's time will lie."""
        return self.sureness.interval if self.sureness else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values; `from_json` reads them back without loss."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Return the row of what `to_json` gave."""
        plain = dict(fields)
        plain["realised"], plain["values"] = tuple(plain["realised"]), tuple(plain["values"])
        return cls(**plain)


class RowCache:
    """Rows by key, for as long as a process lives; a subclass may keep them elsewhere."""

    def __init__(self) -> None:
        self.rows: dict[str, StudyRow] = {}

    def get(self, keys: Iterable[str]) -> dict[str, StudyRow]:
        """Return the rows that are here of these keys."""
        return {key: self.rows[key] for key in keys if key in self.rows}

    def put(self, rows: Mapping[str, StudyRow]) -> None:
        """Take rows by their keys."""
        self.rows |= rows


def planned_row(
    scenario: ScenarioValues, problem: Problem, result: SearchResult, prices: Prices, **more: Any
) -> StudyRow:
    """Return the row of what a search found; ``more`` are other fields of it."""
    best, certificate = result.best, result.certificate
    fields: dict[str, Any] = {
        "devices": problem.network.devices,
        "realised": scenario.fabric.realised_ratios(),
        "limit_bytes": problem.memory_bytes,
        "proven": certificate.proven,
        "gap": certificate.gap,
    }
    with suppress(InputError):  # a network whose parts cannot be counted has no price
        network = bill(scenario.fabric, prices)
        fields |= {
            "network_usd": float(network.price_usd.typical),
            "network_W": float(network.power_W.typical),
        }
    if best is None:
        fields |= {
            "status": "memory" if certificate.proven else "time limit",
            "reason": f"{result.reason[:1].upper()}{result.reason[1:]}.",
            "needed_bytes": result.needed_bytes,
        }
    else:
        fields |= {
            "status": "solved",
            "iteration_s": best.iteration_s,
            "samples_per_s": best.samples_per_s,
            "tokens_per_s": best.samples_per_s * scenario.sequence,
            "mfu": best.mfu,
            "bubble": best.bubble,
            "memory_bytes": fullest(best)[1].memory.total,
            "words": plan_in_words(best, scenario.batch, scenario.fabric.devices),
            "plan": json.loads(json.dumps(best.plan.to_json())),
        }
    return StudyRow(**{**fields, **more})


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None


_METRICS: Mapping[str, Callable[[StudyRow], float | None]] = {
    "iteration_time_s": lambda row: row.iteration_s,
    "tokens_per_s": lambda row: row.tokens_per_s,
    "mfu": lambda row: row.mfu,
    "bubble": lambda row: row.bubble,
    "memory_GiB": lambda row: None if row.memory_bytes is None else to_gib(row.memory_bytes),
    "network_usd": lambda row: row.network_usd,
    "network_kW": lambda row: _over(row.network_W, 1e3),
    "tokens_per_s_per_network_usd": lambda row: _over(row.tokens_per_s, row.network_usd),
    "tokens_per_s_per_network_W": lambda row: _over(row.tokens_per_s, row.network_W),
    "worst_loss": lambda row: row.worst_loss,
    "effective_tokens_per_s": lambda row: (
        None
        if row.tokens_per_s is None or row.effective_share is None
        else row.tokens_per_s * row.effective_share
    ),
}
_LARGEST = ("memory_GiB", "network_usd", "network_kW", "bubble", "worst_loss")
"""Of a mix the largest; rates are those of all its tokens, and the rest the mean over the time."""


def rows_of(study: Study, cache: RowCache) -> Iterator[dict[str, Any]]:
    """Yield every point whose rows are stored, in order: its values, status, metrics, plan.

    ``meets`` says whether it has a plan and meets the constraints, ``reason`` why not.
    """
    for first in range(0, len(study), _BATCH):
        numbers = range(first, min(first + _BATCH, len(study)))
        keys = {n: [study.key(m, study.overrides(n)) for m in study.members] for n in numbers}
        stored = cache.get(key for point in keys.values() for key in point)
        yield from (
            row_of(study, number, [stored[key] for key in keys[number]])
            for number in numbers
            if all(key in stored for key in keys[number])
        )


def row_of(study: Study, number: int, rows: Sequence[StudyRow]) -> dict[str, Any]:
    """Return a point's line of the table, from the rows of all members of its mix."""
    bad = next((row for row in rows if not row.feasible), None)
    reason = bad.reason if bad else _missed(study, rows)
    return {
        "point": number,
        **study.values(number),
        "status": bad.status if bad else "solved",
        "gap": None if bad else max(row.gap for row in rows),
        "meets": not reason,
        "reason": reason,
        **{name: None if bad else _metric(study, name, rows) for name in study.metrics},
        "plan": "" if bad else "; ".join(row.words for row in rows),
    }


def _metric(study: Study, name: str, rows: Sequence[StudyRow]) -> float | None:
    values = np.array([_METRICS[name](row) for row in rows], dtype=float)
    if np.isnan(values).any():
        return None
    if name in _LARGEST or len(values) == 1:
        return float(np.max(values))
    weights = np.array([member.weight for member in study.members])
    if "tokens_per_s" in name:
        return float(1.0 / np.sum(weights / values))
    rates = np.array([row.tokens_per_s for row in rows], dtype=float)
    return float(np.average(values, weights=weights / rates))


def _missed(study: Study, rows: Sequence[StudyRow]) -> str:
    """Return the first constraint that a point does not meet, and by how much."""
    for name, (least, most) in study.constraints.items():
        value = _metric(study, name, rows)
        if value is None:
            return f"{name} is not known"
        if least is not None and value < least:
            return f"{name} is {value:.6g}, {least - value:.3g} under {least:g}"
        if most is not None and value > most:
            return f"{name} is {value:.6g}, {value - most:.3g} over {most:g}"
    return ""


MOST_BYTES = 200_000_000


def to_parquet(study: Study, rows: Sequence[Mapping[str, Any]], version: str) -> bytes:
    """Return a file that pandas, DuckDB and `rows_from` read; ``version`` is Nest Studio's."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    frame.attrs = {"version": version, "name": study.name, "study": _content(study)}
    packed = io.BytesIO()
    frame.to_parquet(packed, index=False)
    return packed.getvalue()


def rows_from(study: Study, data: bytes, version: str) -> list[dict[str, Any]]:
    """Return the rows of a file that was written of a study, wherever it ran.

    Raises
    ------
    InputError
        If it is no such file, of another study, or of another version of the model.
    """
    import pandas as pd

    require(
        len(data) <= MOST_BYTES,
        "result",
        f"must have at most {MOST_BYTES:,} bytes",
        len(data),
        "take points out",
    )
    try:
        frame = pd.read_parquet(io.BytesIO(data))
        written, name, content = (frame.attrs[key] for key in ("version", "name", "study"))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            "result",
            "must be a Parquet file that nest-studio sweep wrote",
            f"another ({type(error).__name__})",
            "run the study again",
        ) from error
    require(
        content == _content(study),
        "result",
        f"must be of this study and of version {version} with its presets",
        f"of {name}, version {written}",
        "run the study again, or open the one that it is of",
    )
    plain = frame.astype(object)
    return list(plain.where(plain.notna(), None).to_dict("records"))


def _content(study: Study) -> str:
    """Of everything that its rows depend on."""
    parts = [[study.key(member, {}), member.weight] for member in study.members]
    axes = [[axis.name, [axis.overrides(value) for value in axis.values]] for axis in study.axes]
    content = [parts, axes, list(study.metrics), sorted(study.constraints.items())]
    return hashlib.sha256(json.dumps(content, default=str, sort_keys=True).encode()).hexdigest()
