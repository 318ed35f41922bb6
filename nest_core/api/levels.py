"""The levels that a fabric collapses into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nest_core.api.results import Result
from nest_core.api.scenario import Named, load, load_fabric
from nest_core.costs import plan_words, price
from nest_core.costs.loads import link_loads
from nest_core.documents.text import plain, table
from nest_core.fabric import Fabric
from nest_core.interop.formats.exchange import caveats
from nest_core.network import BusyLink, Network, busiest_links, collapse, collapse_error
from nest_core.network.opensm import routing_notes
from nest_core.network.patterns import shift_loads
from nest_core.planner.baselines.cost_matrices import MATRIX_CLASSES, CostMatrices, cost_matrices
from nest_core.planner.baselines.nest import find
from nest_core.report.explain import busiest_table, busiest_text, levels_table
from nest_core.report.tables import Table
from nest_core.scenario import Scenario

if TYPE_CHECKING:
    from nest_core.report.figures import Chart

__all__ = ["Levels", "LevelwisePlan", "levels"]


SHIFTS = "\n\nwhere all devices send 1, 2, 4, ... devices on, one distance after the other:"


@dataclass(frozen=True, slots=True, eq=False)
class LevelwisePlan:
    """What NEST's level-wise program makes of a scenario, and the matrices that it read.

    Parameters
    ----------
    matrices : CostMatrices or None
        None where it has no plan.
    origin : str
        How its plan was found, with what a search in part leaves open.
    promised_s, iteration_s : float or None
        Seconds of an iteration that it expected, and that its plan takes on the true fabric.
    reason : str
        Why it has no plan; empty otherwise.
    """

    matrices: CostMatrices | None
    origin: str
    promised_s: float | None
    iteration_s: float | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields that a scenario adds to ``nest-studio levels --json``."""
        matrices = self.matrices
        return {
            "cost_matrices": matrices.to_json() if matrices else None,
            "level_wise_program": {
                "plan": matrices.plan.to_json() if matrices else None,
                "own_levels": matrices.own_json() if matrices else None,
                "origin": self.origin,
                "promised_s": self.promised_s,
                "iteration_time_s": self.iteration_s,
                "reason": self.reason or None,
            },
        }


@dataclass(frozen=True, slots=True, eq=False)
class Levels(Result):
    """The levels that a fabric collapses into, innermost first.

    Parameters
    ----------
    network : Network
    program : LevelwisePlan or None
        Of a scenario on the fabric, where one was given.
    assumed : tuple of str
        See `Fabric.assumed`.
    busiest : tuple of BusyLink
        Of the program's plan; without one, where all devices send 1, 2, 4, ... devices on.
    """

    network: Network
    program: LevelwisePlan | None = None
    assumed: tuple[str, ...] = ()
    busiest: tuple[BusyLink, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio levels --json``."""
        return {
            "devices": self.network.devices,
            "levels": [
                {
                    "name": level.name,
                    "kind": level.kind,
                    "group_size": level.group_size if level.kind == "nested" else None,
                    "groups": level.groups,
                    "links": level.links,
                    "link_bandwidth_Bps": level.link_bandwidth_Bps,
                    "bandwidth_Bps": level.bandwidth_Bps,
                    "latency_s": level.latency_s,
                }
                for level in self.network.levels
            ],
            "collapse_error": collapse_error(self.network),
            "busiest_links": [entry.to_json() for entry in self.busiest],
            "notes": (*self.assumed, *caveats(self.network)),
            **(self.program.to_json() if self.program else {}),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per level, in SI units."""
        return list(self.to_json()["levels"])

    def pictures(self) -> tuple[Chart, ...]:
        """Return which pairs of devices communicate on which level, or cost matrices."""
        from nest_core.report.figures.levels import level_figure
        from nest_core.report.figures.levelwise import cost_matrices_figure

        return (
            (cost_matrices_figure(self.program.matrices),)
            if self.program and self.program.matrices
            else (level_figure(self.network),)
        )

    def __str__(self) -> str:
        shifts = "" if self.program else SHIFTS
        return _text(plain(self.to_json())) + shifts + busiest_text(self.busiest)

    def tables(self) -> tuple[Table, ...]:
        """Return the levels."""
        return (levels_table(self.network), busiest_table(self.busiest))


def levels(fabric: Fabric | Named, scenario: Scenario | Named | None = None) -> Levels:
    """Collapse a fabric into levels: classes of pairs of devices that communicate alike.

    Parameters
    ----------
    fabric : Fabric, str, Path or mapping
        As `load_fabric` returns or takes it.
    scenario : Scenario, str, Path or mapping, optional
        A job to plan on this fabric in place of its own by NEST's level-wise program, for the
        level-wise cost matrices.

    Raises
    ------
    InputError
        If it is no fabric, or devices of it have no path between them.

    Examples
    --------
    >>> levels("h100-spine-leaf-1024").to_frame()["name"].tolist()
    ['node', 'leaf', 'spine']
    >>> levels("h100-spine-leaf-64", "llama2-7b-64-h100").program.matrices.own_json()
    {'dp': ['spine']}
    """
    if scenario is None:
        alone = fabric if isinstance(fabric, Fabric) else load_fabric(fabric)
        network = collapse(alone)
        busiest = busiest_links(network, *shift_loads(network))
        notes = (*alone.assumed, *routing_notes(alone, network))
        return Levels(network, assumed=notes, busiest=busiest)
    values = load(scenario).with_(fabric=fabric).values
    problem = values.problem()
    result = find(problem, values.space.seated_on(problem.network), values.time_limit_s)
    matrices = cost_matrices(problem, result.plan) if result.plan else None
    report = price(problem, result.plan) if result.plan else None
    took = report.iteration_s if report else None
    program = LevelwisePlan(matrices, result.origin, result.promised_s, took, result.reason)
    busiest = link_loads(problem, report).busiest if report else ()
    return Levels(problem.network, program, values.fabric.assumed, busiest)


def _text(fields: Mapping[str, Any]) -> str:
    return (
        f"{fields['devices']:,} devices\n\n"
        + table(
            ["level", "kind", "group size", "groups", "links", "GB/s per device", "latency, us"],
            [
                [
                    level["name"],
                    level["kind"],
                    level["group_size"],
                    level["groups"],
                    level["links"],
                    f"{level['bandwidth_Bps'] / 1e9:.4g}",
                    f"{level['latency_s'] * 1e6:.4g}",
                ]
                for level in fields["levels"]
            ],
        )
        + (
            f"\n\ncollapse error {fields['collapse_error']:.3g}: levels alone against the links,"
            "\nworst relative difference over the planner's patterns; plans are priced on the links"
        )
        + "".join(f"\n! {note}" for note in fields["notes"])
        + (_matrices_text(fields) if "cost_matrices" in fields else "")
    )


def _matrices_text(fields: Mapping[str, Any]) -> str:
    """Level-wise cost matrices: a row for each level, outermost first, own cells starred."""
    cells, program = fields["cost_matrices"], fields["level_wise_program"]
    if cells is None:
        return f"\n\nno level-wise cost matrices: {program['reason']}\n{program['origin']}"
    outcome = (
        f"{program['origin']}; promised {program['promised_s']:.4g} s, "
        f"takes {program['iteration_time_s']:.4g} s on the fabric"
    )
    if not cells:
        return f"\n\nno level-wise cost matrices: the program's plan sends nothing\n{outcome}"
    starred = program["own_levels"]
    rows = [
        [level]
        + [
            f"{row[level]:.3g}{' *' if level in starred[name] else ''}"
            if row[level] is not None
            else "–"
            for name, row in cells.items()
        ]
        for level in reversed(next(iter(cells.values())))
    ]
    return (
        "\n\nlevel-wise cost matrices, seconds of an iteration if a class reaches up to a level"
        f"\n(* the plan of NEST's level-wise program: {plan_words(program['plan'])})\n{outcome}\n"
        + table(["level", *(MATRIX_CLASSES[name][1] for name in cells)], rows)
    )
