"""The experiment that settles oversubscription: a plan on fewer and fewer uplinks of every leaf.

Nobody has published a training step at two oversubscription ratios with all else equal
(docs/validation.md, "What would settle oversubscription"). A cluster of one's own can: uplinks of
every leaf are switched off, as many at each, while nodes, ranks and software stay. Here is what is
predicted of one plan for every number that may be left.

What the model does not know of the cluster and of its kernels is the same in every step. So the
ratio of two steps is surer than either: its interval is that of the slopes' difference, with what
repeated runs differ by on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nest_core.costs import Report, price
from nest_core.documents.errors import InputError
from nest_core.documents.units import plural
from nest_core.explain.interval import Interval
from nest_core.fabric import Clos, Fabric
from nest_core.hardware.posterior import WIDTH
from nest_core.network.clos import clos_network
from nest_core.scenario import ScenarioValues
from nest_core.studies.uncertainty import REPEATED_SD, slopes, spread_of

__all__ = ["UplinkStep", "UplinksOff", "check_leaves", "uplinks_off"]


@dataclass(frozen=True, slots=True)
class UplinkStep:
    """A plan on leaves that have so many uplinks left.

    Parameters
    ----------
    left : int
        Uplinks of every leaf switch that stay switched on.
    oversubscription : float
        Down : up of a full leaf.
    interval : Interval
        Of one iteration.
    ratio : float
        Its time over that with all uplinks.
    ratio_interval : (float, float)
        Holds 80 % of ratios that are measured on one cluster.
    """

    left: int
    oversubscription: float
    interval: Interval
    ratio: float
    ratio_interval: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Its fields as the command line prints them."""
        return {
            "uplinks_left": self.left,
            "oversubscription": self.oversubscription,
            "predicted_s": self.interval.centre_s,
            "interval": [self.interval.low_s, self.interval.high_s],
            "ratio": self.ratio,
            "ratio_interval": list(self.ratio_interval),
        }


@dataclass(frozen=True, slots=True)
class UplinksOff:
    """The experiment with one plan.

    Parameters
    ----------
    report : Report
        The plan, with all uplinks.
    leaves, spines : int
        Leaf switches in place, and the switches that uplinks of one of them are spread over.
    steps : tuple of UplinkStep
        All uplinks first.
    """

    report: Report
    leaves: int
    spines: int
    steps: tuple[UplinkStep, ...]

    @property
    def crosses(self) -> bool:
        """Whether the plan notices that uplinks are gone."""
        return max(step.ratio for step in self.steps) > 1.0 + REPEATED_SD

    def kept(self, left: int) -> str:
        """How many links of a leaf to every spine stay on, in words."""
        each, more = divmod(left, self.spines)
        links = plural(each + bool(more), "link")
        if not more:
            return f"{links} to every spine"
        return f"{links} to {more} of {self.spines} spines, {each or 'none'} to the others"


def check_leaves(fabric: Fabric) -> None:
    """Refuse a fabric without leaves whose uplinks can be counted.

    Raises
    ------
    InputError
    """
    _leaves(fabric)


def _leaves(fabric: Fabric) -> tuple[Clos, int]:
    """A fabric with leaves, and the uplinks of one of them."""
    if not isinstance(fabric, Clos) or fabric.tiers < 2:
        raise InputError(
            "fabric",
            "must have leaf switches with uplinks to switch off, as a Clos of two or three tiers",
            f"a {fabric.noun}" + (" of one tier" if isinstance(fabric, Clos) else ""),
            "name another for the experiment",
        )
    return fabric, int(fabric.uplinks(1).max()) // fabric.planes


def uplinks_off(scenario: ScenarioValues, report: Report) -> UplinksOff:
    """What a plan is predicted to take for every number of uplinks that a leaf may have left.

    Parameters
    ----------
    scenario : ScenarioValues
    report : Report
        A plan of it that fits, priced.

    Raises
    ------
    InputError
        If the fabric has no leaves whose uplinks can be counted.
    """
    fabric, most = _leaves(scenario.fabric)
    along, seconds = [], []
    for left in range(most, 0, -1):
        problem = scenario.problem(report.plan.recompute, clos_network(fabric, left))
        spread = spread_of(scenario, problem)
        found = price(problem, report.plan)
        along.append(slopes(scenario, problem.network, spread, (found,))[0])
        seconds.append(found.iteration_s)
    tier = fabric.switch_tiers[1]
    return UplinksOff(
        report,
        fabric.switch_counts()[fabric.tier_names[0]],
        tier.switches_per_group // fabric.planes,
        tuple(
            UplinkStep(
                most - index,
                fabric.switch_ports()[0].down / (most - index),
                Interval(
                    seconds[index],
                    _sd(along[index], spread.joint, spread.source_sd, spread.run_sd),
                ),
                seconds[index] / seconds[0],
                _ratio(
                    seconds[index] / seconds[0],
                    _sd(along[index] - along[0], spread.joint, *(REPEATED_SD,) * 2),
                ),
            )
            for index in range(most)
        ),
    )


def _sd(along: np.ndarray[Any, Any], joint: np.ndarray[Any, Any], *more: float) -> float:
    return float(np.sqrt(along @ joint @ along + np.sum(np.square(more))))


def _ratio(centre: float, sd: float) -> tuple[float, float]:
    low, high = centre * np.exp(np.array([-WIDTH, WIDTH]) * sd)
    return float(low), float(high)
