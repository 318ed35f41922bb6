"""Many plans at once: a scenario at every value of a parameter, scenarios side by side, ratios."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nest_core.api.scenario import Named, load
from nest_core.costs.plan_words import plan_words
from nest_core.documents.errors import InputError
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, as_written
from nest_core.studies import comparison, sweeps
from nest_core.studies import ratios as tiers
from nest_core.studies.comparison import LONGEST_NAME, Comparison
from nest_core.studies.ratios import Ratios
from nest_core.studies.sweeps import Sweep

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from nest_core.report.figures import Picture

__all__ = ["Compared", "HighestRatios", "ResultRows", "Swept", "compare", "ratios", "sweep"]

_WIDE = 100
"""Characters that a line of printed results has at most."""


class ResultRows(ABC):
    """What results of studies have in common."""

    __slots__ = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """What was studied."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """A row each of text and figures, none rounded; units stand in the names."""

    @abstractmethod
    def pictures(self) -> tuple[Picture, ...]:
        """Every picture, the one of `plot` first."""

    @abstractmethod
    def _shown(self) -> list[dict[str, str]]:
        """The rows of the table that is printed."""

    def to_frame(self) -> pd.DataFrame:
        """A row each; units stand in the names of the columns."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def plot(self) -> go.Figure:
        """The picture that answers what was asked."""
        return self.pictures()[0].titled()

    def __str__(self) -> str:
        return str(Table(textwrap.fill(self.title, _WIDE), "", self._shown()))

    def _repr_html_(self) -> str:
        return Table(self.title, "", self._shown())._repr_html_()


@dataclass(frozen=True, slots=True)
class Swept(ResultRows):
    """A scenario planned at every value of one or two parameters.

    Parameters
    ----------
    found : Sweep
    """

    found: Sweep

    @property
    def title(self) -> str:
        """The scenario."""
        return self.found.scenario

    def rows(self) -> list[dict[str, Any]]:
        """A row per point of text and figures, none rounded; units stand in the names."""
        return self.found.rows()

    def pictures(self) -> tuple[Picture, ...]:
        """Throughput first, then what else there is to see."""
        from nest_core.report.figures.sweep import pictures

        return pictures(self.found)

    def _shown(self) -> list[dict[str, str]]:
        return [
            {
                axis.title: axis.words(value)
                for axis, value in zip(self.found.axes, point.values, strict=True)
            }
            | {
                "iteration, s": f"{point.iteration_s:.4g}" if point.iteration_s else "–",
                "plan or reason": plan_words(point.plan) if point.plan else point.reason,
            }
            for point in self.found.points
        ]


@dataclass(frozen=True, slots=True)
class Compared(ResultRows):
    """Scenarios solved and read against each other, the first being what others are read against.

    Parameters
    ----------
    found : Comparison
    """

    found: Comparison

    @property
    def title(self) -> str:
        """How many scenarios, and which is first."""
        first, *others = self.found.candidates
        return f"{len(others) + 1} scenarios, read against {first.name}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per scenario of text and figures, none rounded; units stand in the names."""
        return list(self.found.rows())

    def pictures(self) -> tuple[Picture, ...]:
        """Throughput first, then what else there is to see."""
        from nest_core.report.figures.comparison import pictures

        return pictures(self.found)

    def _shown(self) -> list[dict[str, str]]:
        names = [one.name for one in self.found.candidates]
        return [
            {"": line.figure} | dict(zip(names, line.texts, strict=True))
            for line in self.found.lines()
        ]


@dataclass(frozen=True, slots=True)
class HighestRatios(ResultRows):
    """The highest oversubscription of every tier that a mix of models bears.

    Parameters
    ----------
    found : Ratios
    """

    found: Ratios

    @property
    def title(self) -> str:
        """What every tier bears, in one sentence."""
        from nest_core.report.figures.ratios import ratios_finding

        return f"{self.found.scenario}. {ratios_finding(self.found)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per tier and ratio tried, of text and figures, none rounded."""
        return self.found.rows()

    def pictures(self) -> tuple[Picture, ...]:
        """Loss against ratio, a line per tier."""
        from nest_core.report.figures.ratios import ratios_picture

        return (ratios_picture(self.found),)

    def _shown(self) -> list[dict[str, str]]:
        from nest_core.report.figures.ratios import ratio_rows

        return ratio_rows(self.found)


def sweep(scenario: Scenario | Named, **values: Iterable[float | str]) -> Swept:
    """Plan a scenario at every value of one or two parameters.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    **values
        One or two sweep parameters (``oversubscription``, ``micro_batch``, ``memory``, ``zero``,
        ``batch``, ``sequence``, ``devices``, ...) with their values.

    Raises
    ------
    InputError
        If the scenario has no such parameter, or a value is out of its range.

    Examples
    --------
    >>> sweep("llama2-7b-64-h100", zero=[0, 1]).to_frame()["feasible"].tolist()
    [True, True]
    """
    asked = load(scenario)
    if not 1 <= len(values) <= 2:
        raise InputError("sweep", "must have one or two parameters", list(values), "name them")
    axes = [(name, _listed(name, each)) for name, each in values.items()]
    return Swept(sweeps.sweep(asked, axes))


def compare(
    scenarios: Iterable[Scenario | Named] | Mapping[str, Scenario | Named],
    *,
    budget: Mapping[str, Any] | None = None,
    failures: bool = True,
    level_wise: bool = False,
    device_usd: float | None = None,
) -> Compared:
    """Solve two to six scenarios and read them against the first.

    Parameters
    ----------
    scenarios : iterable of Scenario, str, Path or mapping; or mapping of name to one
        Without names, they are called by what of their titles not all of them share.
    budget : mapping, optional
        ``{"kind": "price" | "power", "value": dollars or watts of the network or None}``: every
        fabric is scaled to it too; None is what the first network takes.
    failures : bool
        Whether one failed switch is tried.
    level_wise : bool
        Whether NEST's level-wise program plans beside the exact search.
    device_usd : float, optional
        US dollars of an accelerator with its share of the server; the listed estimate without it.

    Raises
    ------
    InputError
        For scenarios or a budget that are none.
    """
    for name, given in (("failures", failures), ("level_wise", level_wise)):
        if not isinstance(given, bool):
            raise InputError(name, "must be True or False", given, "give one of them")
    asked = (
        {name: load(each) for name, each in scenarios.items()}
        if isinstance(scenarios, Mapping)
        else _named([load(each) for each in _listed("scenarios", scenarios)])
    )
    return Compared(
        comparison.compare(
            list(asked.items()),
            budget=budget,
            failures=failures,
            level_wise=level_wise,
            device_usd=device_usd,
        )
    )


def ratios(
    scenario: Scenario | Named,
    mix: Mapping[str, float] | Iterable[Mapping[str, Any]],
    loss: float = 0.02,
) -> HighestRatios:
    """The highest oversubscription of every tier that costs a mix of models less than a limit.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    mix : mapping of model to share, or iterable of mapping
        Models by preset's name or path with their shares of the cluster's time, of any sum; or
        tables with ``model``, which may be one of sizes, and ``share``.
    loss : float
        The limit, as a share of what the mix trains at the least ratio.

    Raises
    ------
    InputError
        If the fabric has no ratios, or a model does not fit at the least.

    Examples
    --------
    >>> found = ratios("llama2-7b-64-h100", {"llama2-7b": 1.0}, loss=0.01)
    >>> [tier.label for tier in found.found.tiers]
    ['leaf']
    """
    asked = load(scenario)
    parts = (
        [{"model": model, "share": share} for model, share in mix.items()]
        if isinstance(mix, Mapping)
        else _listed("mix", mix)
    )
    mixed, limit = as_written("mix", parts), as_written("loss", loss)
    return HighestRatios(tiers.highest_ratios(asked, mixed, limit))


def _named(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    """Scenarios by number and by what of their titles is not the same in all."""
    titles = [one.title.split(", ") for one in scenarios]
    named = {}
    for number, (title, one) in enumerate(zip(titles, scenarios, strict=True), start=1):
        own = ", ".join(part for part in title if any(part not in other for other in titles))
        name = f"{number}. {own}" if own else f"scenario {number}"
        named[textwrap.shorten(name, LONGEST_NAME, placeholder=" …")] = one
    return named


def _listed(name: str, values: object) -> list[Any]:
    """What is given as a list, or anything else that can be gone through."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(name, "must be a list", values, "put it into brackets")
    return list(as_written(name, values) if hasattr(values, "tolist") else values)
