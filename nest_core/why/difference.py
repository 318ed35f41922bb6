"""'Why not mine?': two priced plans side by side, term by term and part by part of memory."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.costs.memory import Memory
from nest_core.costs.price import Report
from nest_core.summary import share
from nest_core.units import humanise, humanise_seconds

__all__ = ["Difference", "Row", "difference"]

_SAME = 5e-4  # of the iteration; smaller differences are none
_ROUNDING = 1e-12  # of an iteration
_PARTS = ("weights", "gradients", "optimizer", "activations", "stash", "buffers")


@dataclass(frozen=True, slots=True)
class Row:
    """One term or part in both plans, and the second's less the first's."""

    name: str
    ours: float
    theirs: float

    @property
    def difference(self) -> float:
        """What the second has more."""
        return self.theirs - self.ours


@dataclass(frozen=True, slots=True)
class Difference:
    """How another plan differs from the best.

    Parameters
    ----------
    relative : float
        Of the iteration time; negative where the other is faster.
    terms : tuple of Row
        Seconds; the differences add up to that of the iteration times.
    memory : tuple of Row
        Bytes of the fullest stage of each; the differences add up to that of their totals.
    finding : str
        Which one is faster, and the terms that add and save most.
    sentence : str
        The finding, and first of all what does not fit.
    """

    relative: float
    terms: tuple[Row, ...]
    memory: tuple[Row, ...]
    finding: str
    sentence: str


def difference(ours: Report, theirs: Report) -> Difference:
    """Compare two plans for the same problem."""
    first, second = _terms(ours), _terms(theirs)
    names = [*first, *(name for name in second if name not in first)]
    terms = tuple(Row(name, first.get(name, 0.0), second.get(name, 0.0)) for name in names)
    here, there = _fullest(ours), _fullest(theirs)
    memory = tuple(Row(part, getattr(here, part), getattr(there, part)) for part in _PARTS)
    relative = theirs.iteration_s / ours.iteration_s - 1
    finding = _finding(ours, theirs, relative, terms)
    sentence = finding if theirs.feasible else f"It does not fit: {theirs.reason}. {finding}"
    return Difference(relative, terms, memory, finding, sentence)


def _terms(report: Report) -> dict[str, float]:
    """Seconds by term, what is left of rounding taken away."""
    least = _ROUNDING * report.iteration_s
    return {name: seconds if seconds > least else 0.0 for name, seconds in report.terms}


def _fullest(report: Report) -> Memory:
    return max((stage.memory for stage in report.stages), key=lambda memory: memory.total)


def _finding(ours: Report, theirs: Report, relative: float, terms: tuple[Row, ...]) -> str:
    if theirs.plan == ours.plan:
        return "This is the plan itself."
    apart = theirs.iteration_s - ours.iteration_s
    if abs(relative) < _SAME:
        verdict = "It takes as long as our plan"
    elif relative >= 1:
        verdict = f"It takes {humanise(1 + relative)} times as long as our plan ({_signed(apart)})"
    else:
        verdict = (
            f"It takes {share(abs(relative))} {'longer' if relative > 0 else 'less'} than our plan "
            f"({_signed(apart)})"
        )
    return f"{verdict}{_because(terms, apart, _SAME * ours.iteration_s)}."


def _because(terms: tuple[Row, ...], apart: float, least: float) -> str:
    """The term that most of the difference comes from, then the one that most stands against."""
    adds = max(terms, key=lambda row: row.difference)
    saves = min(terms, key=lambda row: row.difference)
    told = [("adds", adds), ("saves", saves)] if apart >= 0 else [("saves", saves), ("adds", adds)]
    parts = [
        f"what {verb} most is {row.name} ({_signed(row.difference)})"
        for verb, row in told
        if (row.difference if verb == "adds" else -row.difference) > least
    ]
    return "".join(f"{'; ' if place == 0 else ', '}{part}" for place, part in enumerate(parts))


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '−'}{humanise_seconds(abs(seconds))}"
