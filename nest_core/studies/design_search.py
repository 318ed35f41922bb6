"""Which fabrics no other beats in price, power and days, exactly.

Price and power of every design are computed; its days take an exact plan. No design trains faster
than a non-blocking fabric with the same NICs (`non_blocking`), whose plan is its bound. Designs are
planned from the cheapest on; one that a planned design beats in price and power, and in days by its
bound, is left out: whatever its plan, it is in no Pareto set. Of the others no plan is looked for
that takes longer than a planned design which is no dearer and draws no more. Days are with failures
(`nest_core.reliability`), bounds without: failures only add to them. What does not meet the study's
constraints beats nothing.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.schema import Parameter
from nest_core.report.explain.training import DAY_S, usual_tokens
from nest_core.studies.design_space import Bought, Design, Refused, design_space, non_blocking
from nest_core.studies.engine import WorkerPool, run
from nest_core.studies.rows import RowCache, StudyRow, row_of
from nest_core.studies.solving import Stop, never
from nest_core.studies.study import EFFECTIVE, Study, StudyPoint

__all__ = ["DesignCertificate", "Designed", "Planned", "pareto", "search_designs", "tokens_of"]

TOGETHER = 4
"""Designs of a task: of those in flight none is left out."""
UNKNOWN = ("failed", "time limit")
"""Statuses of rows that say nothing of a design."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Planned:
    """A design with its plan.

    Parameters
    ----------
    design : Design
    effective_tokens_per_s : float
        Of the mix, failures counted.
    days : float
        Of the training run, with failures.
    plan : str
        In words.
    gap : float
        By how much its plan may miss the fastest; 0 where it is proven.
    """

    design: Design
    effective_tokens_per_s: float
    days: float
    plan: str
    gap: float


@dataclass(frozen=True, slots=True)
class DesignCertificate:
    """How the set is known: ``planned + bounded + infeasible + left == designs``.

    Parameters
    ----------
    designs, planned, bounded, infeasible, left : int
        Infeasible: those that do not exist, break a limit or a constraint, or have no plan that
        fits. Left: those of unknown fate, where the search was stopped, failed, or ended at its
        limit of time without a plan.
    gap : float
        The largest of a plan that decided a design's fate.
    """

    designs: int
    planned: int
    bounded: int
    infeasible: int
    left: int
    gap: float

    @property
    def proven(self) -> bool:
        """Whether every design's fate is known, and no plan has a gap."""
        return not self.left and self.gap == 0.0


@dataclass(frozen=True, slots=True)
class Designed:
    """The answer.

    Parameters
    ----------
    pareto : tuple of Planned
        By price.
    planned : tuple of Planned
        All of them.
    refused : tuple of Refused
    certificate : DesignCertificate
    """

    pareto: tuple[Planned, ...]
    planned: tuple[Planned, ...]
    refused: tuple[Refused, ...]
    certificate: DesignCertificate


def search_designs(
    study: Study,
    cache: RowCache,
    pool: WorkerPool | None = None,
    *,
    tell: Callable[[int, int], None] = lambda _, __: None,
    stop: Stop = never,
) -> Designed:
    """Return the designs of a study that no other beats; parameters as `engine.run` takes them.

    Raises
    ------
    InputError
        As `design_space`, and if no design has a plan that meets the constraints.
    """
    designs, refused = design_space(study)
    designs.sort(key=lambda one: (one.price_usd, one.power_W))
    search = _DesignSearch(study, cache, designs)
    run(
        search.study.points(),
        search,
        pool,
        tell=tell,
        stop=stop,
        within=search.within_s,
        together=TOGETHER,
    )
    search.update()
    fates = search.pending | search.unknown
    unknown = [number for number in fates if not search.is_beaten(number)]
    refused += search.refused
    if not search.planned and not unknown:
        last = refused[-1]
        raise InputError(
            "design",
            "must leave one that has a plan and meets the constraints",
            f"none of {len(refused):,}",
            f"{last['name']}: {last['reason'].rstrip('.')}",
        )
    certificate = DesignCertificate(
        len(designs) + len(refused) - len(search.refused),
        len(search.planned),
        search.bounded + len(fates) - len(unknown),
        len(refused),
        len(unknown),
        search.gap,
    )
    return Designed(pareto(search.planned), tuple(search.planned), tuple(refused), certificate)


class _DesignSearch(RowCache):
    """Take in every row on its way to and from the cache, and know the fate of designs by it.

    Points of ``study`` are the non-blocking fabrics, then the designs.
    """

    def __init__(self, study: Study, cache: RowCache, designs: Sequence[Design]) -> None:
        super().__init__()
        self._cache, self._designs, self._tokens = cache, designs, tokens_of(study)
        self._kinds = tuple(dict.fromkeys(design.bought for design in designs))
        ideal = (design.changes(non_blocking(design.size)) for design in self._kinds)
        changes = (*ideal, *(design.changes for design in designs))
        axis = Parameter(
            "design", "design", values=tuple(range(len(changes))), changes=changes.__getitem__
        )
        self.study = replace(study, axes=(axis,), metrics=(EFFECTIVE,))
        self._keys = [
            [self.study.key(member, change) for member in study.members] for change in changes
        ]
        self._rows_read = 0
        self._min_days: dict[Bought, dict[str, float]] = {kind: {} for kind in self._kinds}
        self._per_iteration: dict[str, float] = {}
        self._open_kinds = set(range(len(self._kinds)))
        self.pending = set(range(len(self._kinds), len(changes)))
        self.planned: list[Planned] = []
        self.refused: list[Refused] = []
        self.bounded = 0
        self.unknown: set[int] = set()
        self.gap = 0.0
        self._unbeaten: tuple[Planned, ...] = ()

    def get(self, keys: Iterable[str]) -> dict[str, StudyRow]:
        """See `RowCache`."""
        rows = self._cache.get(keys)
        self.rows |= rows
        return rows

    def put(self, rows: Mapping[str, StudyRow]) -> None:
        """See `RowCache`."""
        self._cache.put(rows)
        self.rows |= rows

    def within_s(self, point: StudyPoint) -> float:
        """Seconds of a member's iteration beyond which a planned design beats a point; 0 where
        one does whatever its plan, infinite where none can.
        """
        self.update()
        number, member = point.number, point.member
        if number < len(self._kinds):
            return math.inf
        if number not in self.pending or self.is_beaten(number):
            return 0.0
        design = self._design(number)
        rivals = [planned.days for planned in self._unbeaten if _is_no_more(planned.design, design)]
        if not rivals or member.name not in self._per_iteration:
            return math.inf
        others = sum(
            part for name, part in self._min_days[design.bought].items() if name != member.name
        )
        rate = self._tokens * member.weight / ((min(rivals) - others) * DAY_S)
        return self._per_iteration[member.name] / rate * (1.0 + _ROUNDING)

    def is_beaten(self, number: int) -> bool:
        """Return whether a planned design beats a point by the bound of its days."""
        design = self._design(number)
        days = sum(self._min_days[design.bought].values())
        return any(_beats(planned, design, days) for planned in self._unbeaten)

    def update(self) -> None:
        """Draw conclusions from rows that are new."""
        if len(self.rows) == self._rows_read:
            return
        self._rows_read, before = len(self.rows), len(self.planned)
        for number in sorted(self._open_kinds):
            rows = self._rows_of(number)
            if len(rows) == len(self._keys[number]):
                self._bound(self._kinds[number], rows)
                self._open_kinds.discard(number)
        for number in sorted(self.pending):
            rows = self._rows_of(number)
            if any(row.status == "beyond" for row in rows):
                self.bounded += 1
            elif any(row.status in UNKNOWN for row in rows):
                self.unknown.add(number)
            elif len(rows) == len(self._keys[number]):
                self._plan(self._design(number), row_of(self.study, number, rows))
            else:
                continue
            self.pending.discard(number)
        self._unbeaten = pareto((*self._unbeaten, *self.planned[before:]))

    def _rows_of(self, number: int) -> list[StudyRow]:
        """Return the rows of a point that there are."""
        return [self.rows[key] for key in self._keys[number] if key in self.rows]

    def _bound(self, bought: Bought, rows: Sequence[StudyRow]) -> None:
        """Take the fewest days of every member from a non-blocking fabric's proofs."""
        for member, row in zip(self.study.members, rows, strict=True):
            if row.tokens_per_s is not None and row.iteration_s is not None:
                self._per_iteration[member.name] = row.tokens_per_s * row.iteration_s
                if row.gap == 0.0:
                    days = self._tokens * member.weight / row.tokens_per_s / DAY_S
                    self._min_days[bought][member.name] = days

    def _plan(self, design: Design, row: Mapping[str, Any]) -> None:
        """Take a design's plan, or why it has none."""
        self.gap = max(self.gap, row["gap"] or 0.0)
        if row["meets"]:
            rate = row[EFFECTIVE]
            days = self._tokens / rate / DAY_S
            self.planned.append(Planned(design, rate, days, row["plan"], row["gap"]))
        else:
            self.refused.append({"name": design.name, "reason": row["reason"]})

    def _design(self, number: int) -> Design:
        return self._designs[number - len(self._kinds)]


def pareto(planned: Sequence[Planned]) -> tuple[Planned, ...]:
    """Return those that no other beats: as good in price, power and days and better in one."""
    unbeaten = [
        candidate
        for candidate in planned
        if not any(_beats(other, candidate.design, candidate.days) for other in planned)
    ]
    return tuple(sorted(unbeaten, key=lambda plan: (plan.design.price_usd, plan.days)))


def _beats(planned: Planned, design: Design, days: float) -> bool:
    mine = planned.design.price_usd, planned.design.power_W, planned.days
    return (
        planned.days <= days
        and mine != (design.price_usd, design.power_W, days)
        and _is_no_more(planned.design, design)
    )


def _is_no_more(one: Design, other: Design) -> bool:
    """Return whether a design costs and draws no more; bills that lack other lines say nothing."""
    return (
        one.price_usd <= other.price_usd
        and one.power_W <= other.power_W
        and set(one.owned.missing) == set(other.owned.missing)
    )


def tokens_of(study: Study) -> float:
    """Of the training run: as asked, else 20 for each parameter of the mix's first model."""
    return (
        study.design.tokens_T * 1e12
        if study.design and study.design.tokens_T
        else usual_tokens(study.members[0].scenario.values)
    )
