"""Which fabrics no other beats in price, power and days, exactly.

Price and power of every design are computed; its days take an exact plan. No design trains faster
than a non-blocking fabric with the same NICs (`non_blocking`), whose plan is its bound. Designs are
planned from the cheapest on; one that a planned design beats in price and power, and in days by its
bound, is left out: whatever its plan, it is in no Pareto set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from nest_core.explain.training import DAY_S, TOKENS_PER_PARAMETER
from nest_core.scenario import resolve_scenario
from nest_core.studies.design_space import Design, Refused, design_space, non_blocking
from nest_core.studies.engine import Answers, run
from nest_core.studies.rows import rows_of
from nest_core.studies.solving import Stop
from nest_core.studies.study import Study, StudyAxis
from nest_core.topology import Fabric

__all__ = ["DesignCertificate", "Designed", "Planned", "pareto", "search_designs"]

ROUND = 4
"""Designs for every worker before what they beat is left out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A design with its plan.

    Parameters
    ----------
    design : Design
    days : float
        Of the training run.
    plan : str
        In words.
    gap : float
        By how much its plan may miss the fastest; 0 where it is proven.
    """

    design: Design
    days: float
    plan: str
    gap: float


@dataclass(frozen=True, slots=True)
class DesignCertificate:
    """How the set is known: ``planned + bounded + infeasible == designs``.

    Parameters
    ----------
    designs, planned, bounded, infeasible : int
        Infeasible: those that do not exist, break a limit, or have no plan that fits.
    gap : float
        The largest of a planned design.
    proven : bool
        Whether every design's fate is known, and no plan has a gap.
    """

    designs: int
    planned: int
    bounded: int
    infeasible: int
    gap: float
    proven: bool


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
    answers: Answers,
    pool: Callable[[], AbstractContextManager[Executor]],
    workers: int,
    *,
    tell: Callable[[int, int], None],
    stop: Stop,
) -> Designed:
    """The designs of a study that no other beats; parameters as `engine.run` takes them."""
    designs, refused = design_space(study)
    total = len(designs) + len(refused)
    tokens = _tokens(study)
    planned: list[Planned] = []
    bounded: list[Design] = []
    left = sorted(designs, key=lambda one: (one.price_usd, one.power_W))
    with pool() as executor:

        def days_on(fabrics: dict[str, Fabric]) -> dict[str, dict[str, Any]]:
            """Rows of the study on fabrics, by name."""
            changes = tuple({"fabric": fabric.document()} for fabric in fabrics.values())
            asked = replace(
                study,
                axes=(StudyAxis("design", "design", tuple(fabrics), changes),),
                metrics=("tokens_per_s",),
            )
            run(
                asked,
                answers,
                lambda: nullcontext(executor),
                workers,
                tell=lambda *_: None,
                stop=stop,
            )
            return {str(row["design"]): row for row in rows_of(asked, answers)}

        sizes = tuple(dict.fromkeys(one.size for one in left))
        ideal = days_on({str(number): non_blocking(size) for number, size in enumerate(sizes)})
        least = dict.fromkeys(sizes, 0.0)  # until a proof says more
        for number, row in ideal.items():
            if row["status"] == "solved" and row["gap"] == 0.0:
                least[sizes[int(number)]] = tokens / row["tokens_per_s"] / DAY_S
        while left and not stop():
            beaten = [one for one in left if any(_beats(p, one, least[one.size]) for p in planned)]
            bounded += beaten
            left = [one for one in left if one not in beaten]
            batch, left = left[: ROUND * workers], left[ROUND * workers :]
            rows = days_on({one.name: one.fabric for one in batch})
            left += [one for one in batch if one.name not in rows]  # stopped
            for one in batch:
                if one.name not in rows:
                    continue
                row = rows[one.name]
                if row["status"] != "solved":
                    refused.append(Refused(one.name, row["reason"]))
                else:
                    days = tokens / row["tokens_per_s"] / DAY_S
                    planned.append(Planned(one, days, row["plan"], row["gap"]))
            tell(total - len(left), total)
    gap = max((one.gap for one in planned), default=0.0)
    certificate = DesignCertificate(
        total, len(planned), len(bounded), len(refused), gap, not left and gap == 0.0
    )
    return Designed(pareto(planned), tuple(planned), tuple(refused), certificate)


def pareto(planned: Sequence[Planned]) -> tuple[Planned, ...]:
    """Those that no other beats: none is as good in price, power and days and better in one."""
    kept = [one for one in planned if not any(_beats(p, one.design, one.days) for p in planned)]
    return tuple(sorted(kept, key=lambda one: (one.design.price_usd, one.days)))


def _beats(planned: Planned, one: Design, days: float) -> bool:
    mine = planned.design.price_usd, planned.design.power_W, planned.days
    theirs = one.price_usd, one.power_W, days
    return all(a <= b for a, b in zip(mine, theirs, strict=True)) and mine != theirs


def _tokens(study: Study) -> float:
    """Of the training run: as asked, else 20 for each parameter of the mix's first model."""
    if study.design and study.design.tokens_T:
        return study.design.tokens_T * 1e12
    member = study.members[0]
    model = resolve_scenario(member.document, {}, member.folder).model
    return TOKENS_PER_PARAMETER * model.parameters
