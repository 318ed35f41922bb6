"""Many plans at once: a scenario at every value of a parameter, and scenarios side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nest_core.api.display import heading, html_table
from nest_core.api.scenario import Named, Scenario, asked_for
from nest_core.errors import InputError
from nest_core.studies import comparison
from nest_core.studies import sweep as sweeping
from nest_core.studies.comparison import LONGEST_NAME, Comparison
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.points import Sweep

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from nest_core.figures import Picture

__all__ = ["Compared", "Swept", "compare", "sweep"]


class _Study:
    """What sweeps and comparisons have in common: rows and pictures."""

    __slots__ = ()

    def _rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def pictures(self) -> tuple[Picture, ...]:
        """Every picture, the one of `plot` first."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """A row each; units stand in the names of the columns."""
        import pandas as pd

        return pd.DataFrame(self._rows())

    def plot(self) -> go.Figure:
        """Throughput."""
        return self.pictures()[0].titled()


@dataclass(frozen=True, slots=True)
class Swept(_Study):
    """A scenario planned at every value of one or two parameters.

    Parameters
    ----------
    found : Sweep
    """

    found: Sweep

    def _rows(self) -> list[dict[str, Any]]:
        return self.found.rows()

    def pictures(self) -> tuple[Picture, ...]:
        """Every picture, the one of `plot` first."""
        from nest_core.figures.sweep import pictures

        return pictures(self.found)

    def __str__(self) -> str:
        shown = [*(axis.title for axis in self.found.axes), "iteration, s", "plan", "reason"]
        return f"{self.found.scenario}\n{self.to_frame()[shown].to_string(index=False)}"

    def _repr_html_(self) -> str:
        return heading(self.found.scenario) + str(self.to_frame().to_html(index=False))


@dataclass(frozen=True, slots=True)
class Compared(_Study):
    """Scenarios solved and read against each other, the first being what others are read against.

    Parameters
    ----------
    found : Comparison
    """

    found: Comparison

    def _rows(self) -> list[dict[str, Any]]:
        return list(self.found.rows())

    def pictures(self) -> tuple[Picture, ...]:
        """Every picture, the one of `plot` first."""
        from nest_core.figures.comparison import pictures

        return pictures(self.found)

    def __str__(self) -> str:
        names = [one.name for one in self.found.candidates]
        table = {line.figure: line.texts for line in self.found.lines()}
        import pandas as pd

        return str(pd.DataFrame.from_dict(table, orient="index", columns=names).to_string())

    def _repr_html_(self) -> str:
        names = [one.name for one in self.found.candidates]
        return html_table(
            [
                {"": line.figure, **dict(zip(names, line.texts, strict=True))}
                for line in self.found.lines()
            ]
        )


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
    asked = asked_for(scenario)
    if not 1 <= len(values) <= 2:
        raise InputError("sweep", "must have one or two parameters", list(values), "name them")
    found = sweep_parameters(asked.document, asked.overrides, asked.folder)
    known = [one.key for one in found]
    axes: list[dict[str, Any] | None] = [
        {"parameter": _key(name, known), "values": list(listed)} for name, listed in values.items()
    ]
    x, y = [*axes, None][:2]
    inputs = {"document": asked.document, "overrides": asked.overrides, "x": x, "y": y}
    return Swept(sweeping.run(inputs, folder=asked.folder))


def compare(
    scenarios: Iterable[Scenario | Named] | Mapping[str, Scenario | Named],
    *,
    budget: Mapping[str, Any] | None = None,
    failures: bool = True,
    device_usd: float | None = None,
) -> Compared:
    """Solve two to six scenarios and read them against the first.

    Parameters
    ----------
    scenarios : iterable of Scenario, str, Path or mapping; or mapping of name to one
        Without names, their titles.
    budget : mapping, optional
        ``{"kind": "price" | "power", "value": dollars or watts of the network or None}``: every
        fabric is scaled to it too; None is what the first network takes.
    failures : bool
        Whether one lost switch is tried.
    device_usd : float, optional
        US dollars of an accelerator with its share of the server; the listed estimate without it.

    Raises
    ------
    InputError
        For scenarios or a budget that are none.
    """
    named = scenarios if isinstance(scenarios, Mapping) else dict(_titled(scenarios))
    asked = {name: asked_for(each) for name, each in named.items()}
    inputs = {
        "entries": [
            {"name": name, "document": one.document, "overrides": one.overrides}
            for name, one in asked.items()
        ],
        "budget": budget,
        "failures": failures,
        "device_usd": device_usd,
    }
    return Compared(comparison.run(inputs, folders=[one.folder for one in asked.values()]))


def _titled(scenarios: Iterable[Scenario | Named]) -> Iterable[tuple[str, Scenario]]:
    """Scenarios by their titles, numbered so that no two are alike."""
    for number, each in enumerate(scenarios, start=1):
        asked = asked_for(each)
        yield f"{number}. {asked.title}"[:LONGEST_NAME], asked


def _key(name: str, known: list[str]) -> str:
    """The key of a sweep parameter: itself, or the first of several tiers'."""
    return next((key for key in known if name in (key, key.partition(".")[0])), name)
