"""What a cell computes and shows, by kind: a plan, a study, or nothing but words.

A kind is a function from plain inputs to `Shown`; pages, reports and Jupyter notebooks all draw
from that. The same inputs give the same rows.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nest_core import __version__
from nest_core.api.answer import Answer, answer
from nest_core.api.studies import Compared, HighestRatios, Swept
from nest_core.explain.proof import proven_over
from nest_core.explain.summary import certificate_line, plan_in_words, stage_rows
from nest_core.explain.validity import calibration_in_words, memory_in_words, overlap_in_words
from nest_core.figures.ratios import ratio_rows, ratios_finding
from nest_core.notebook.cells import CellKind, Row, Summary
from nest_core.notebook.document import portable
from nest_core.notebook.explained import fabric_shown, layer_shown, lesson_shown, why_shown
from nest_core.notebook.shown import FABRIC_PX, Shown
from nest_core.notebook.studied import study_shown
from nest_core.picture import picture
from nest_core.planner import Progress
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, resolve_scenario
from nest_core.scenario.titles import scenario_title
from nest_core.studies import comparison, ratios
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.sweeps import sweep
from nest_core.units import NOTHING, percent

__all__ = [
    "KINDS",
    "Kind",
    "Shown",
    "compute",
    "summarise",
    "versions",
]

_STAGE_COLUMNS = (
    "stage",
    "layers",
    "recomputation",
    "load per micro-batch, ms",
    "compute, s",
    "communication, s",
    "idle, s",
    "memory, GiB",
)
_WHOLE = 10_000.0
_NOTHING_LEFT = 1e-12  # what rounding leaves of zero seconds
_SWEEP_COLUMNS = (
    "throughput, tokens/s",
    "iteration, s",
    "MFU",
    "fullest stage, GiB",
    "tp",
    "pp",
    "dp",
    "cp",
    "micro-batch, sequences",
    "ZeRO",
    "recomputation",
    "reason",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """How cells of a kind are called, and what computes them.

    Parameters
    ----------
    label : str
    compute : callable
    teaches : bool
        Whether a lesson can ask about such a cell: it has figures of scenarios.
    """

    label: str
    compute: Callable[[Mapping[str, Any], Tell, Stop], Shown | None]
    teaches: bool = False


def compute(
    kind: CellKind,
    inputs: Mapping[str, Any],
    *,
    progress: Tell | None = None,
    stop: Stop | None = None,
) -> Shown | None:
    """What a cell of these inputs shows; None if it was stopped before it had anything.

    Parameters
    ----------
    kind : CellKind
    inputs : mapping
        Plain JSON without files (`nest_core.notebook.document`).
    progress : callable (float, str), optional
        Told the share that is done, 0 to 1, and what is being done.
    stop : callable () -> bool, optional
        Asked now and then; once true, the work ends.

    Raises
    ------
    InputError
        If the inputs are not of this kind.
    """
    found = portable(kind, inputs)
    return KINDS[kind].compute(found, progress or silent, stop or never)


def summarise(shown: Shown, now: datetime) -> Summary:
    """What a cell keeps of its results, computed here and ``now`` (a time with its zone)."""
    return Summary(shown.rows, versions(), now.astimezone(UTC).isoformat(timespec="seconds"))


def versions() -> dict[str, str]:
    """Of what computes here."""
    return {"nest-studio": __version__, "Python": platform.python_version()}


def _plan(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    scenario = resolve_scenario(inputs["document"], inputs.get("overrides"))

    def follow(found: Progress) -> None:
        known = found.solved + found.bounded + found.infeasible
        tell(0.8 * known / max(found.points, 1), "searching plans")

    tell(0.0, "searching plans")
    found = answer(scenario, progress=follow, stop=stop)
    if stop():
        return None
    return Shown(
        tuple(found.rows()),
        found.headlines(),
        _plan_facts(found),
        found.pictures(),
        _stage_table(found),
        picture(scenario.fabric, found.best.plan if found.best else None, width=FABRIC_PX),
    )


def _plan_facts(found: Answer) -> tuple[str, ...]:
    result, best, scenario = found.result, found.result.best, found.scenario
    accelerator = scenario.accelerator
    words = [
        f"{scenario_title(scenario)}, sequences of {scenario.sequence:,} tokens, "
        f"{scenario.precision}.",
    ]
    if ratios := scenario.fabric.realised_ratios():
        words.append(f"Oversubscription: {'; '.join(ratios)}.")
    if best is None:
        words += [f"No plan: {result.reason}.", *([f"{found.advice}."] if found.advice else [])]
    else:
        words.append(plan_in_words(best, scenario.batch, scenario.fabric.devices))
    words += [
        f"{certificate_line(result)}. {proven_over(result.certificate)}",
        f"Costs: own model. {overlap_in_words(found.overlap, accelerator)} "
        f"{calibration_in_words(scenario)} {memory_in_words(scenario)}",
    ]
    return (*words, found.validity_of(best).in_words) if best else tuple(words)


def _stage_table(found: Answer) -> Table | None:
    best = found.result.best
    if best is None:
        return None
    levels = tuple(level.name for level in found.network.levels)
    rows = tuple(
        {name: _text(row[name]) for name in _STAGE_COLUMNS} for row in stage_rows(best, levels)
    )
    return Table("Stages of our plan", "Times per iteration, memory per device", rows)


def _sweep(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    axes = [(axis["parameter"], axis["values"]) for axis in (inputs["x"], inputs.get("y")) if axis]
    scenario = Scenario(inputs["document"], inputs.get("overrides", {}))
    found = sweep(scenario, axes, progress=tell, stop=stop)
    if not found.complete:
        return None
    rows = tuple(found.rows())
    return Shown(rows, pictures=Swept(found).pictures(), table=_sweep_table(rows))


def _sweep_table(rows: Sequence[Row]) -> Table:
    """The parameters and what matters most; the whole rows stand in the JSON export."""
    names = list(rows[0])
    parameters = names[: names.index("feasible")]
    told = [name for name in _SWEEP_COLUMNS if any(row.get(name) for row in rows)]
    shown = tuple({name: _text(row.get(name)) for name in (*parameters, *told)} for row in rows)
    return Table("Points of the sweep", "Each planned anew", shown)


def _comparison(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    found = comparison.compared(inputs, progress=tell, stop=stop)
    if found is None:
        return None
    rows = tuple(found.rows())
    return Shown(rows, pictures=Compared(found).pictures(), table=_comparison_table(rows))


def _comparison_table(rows: Sequence[Row]) -> Table:
    """One line per figure and one column per scenario."""
    label, *names = rows[0]
    shown = tuple(
        {label: name, **{str(row[label]): _text(row[name]) for row in rows}} for name in names
    )
    return Table("Scenarios side by side", "Units stand in the names", shown)


def _ratios(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    scenario = Scenario(inputs["document"], inputs.get("overrides", {}))
    mix, loss = inputs["mix"], inputs["loss"]
    found = ratios.highest_ratios(scenario, mix, loss, progress=tell, stop=stop)
    if not found.complete:
        return None
    mix = ", ".join(f"{name} {percent(part)}" for name, part in found.mix)
    table = Table(
        ratios_finding(found),
        "One tier at a time, the others as in the scenario",
        tuple(ratio_rows(found)),
    )
    words = f"{found.scenario}. The mix, by share of the cluster's time: {mix}."
    pictures = HighestRatios(found).pictures()
    return Shown(tuple(found.rows()), facts=(words,), pictures=pictures, table=table)


def _note(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown:
    return Shown()


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if abs(value) < _NOTHING_LEFT:
            return "0"
        return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.4g}"
    return str(value) or NOTHING


KINDS: Mapping[CellKind, Kind] = {
    "plan": Kind("Plan", _plan, teaches=True),
    "sweep": Kind("Sweep", _sweep, teaches=True),
    "study": Kind("Study", study_shown),
    "comparison": Kind("Comparison", _comparison, teaches=True),
    "ratios": Kind("Highest ratios", _ratios, teaches=True),
    "fabric": Kind("Fabric", fabric_shown),
    "layer": Kind("Layer", layer_shown),
    "why": Kind("Why", why_shown),
    "lesson": Kind("Lesson", lesson_shown),
    "note": Kind("Note", _note),
}
