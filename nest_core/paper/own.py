"""Cases under this project's costs: the paper's clusters and models as scenarios.

``presets/paper/own.toml`` says what stands for each of them. The search is the paper's: one
micro-batch size, 1F1B, no context parallelism, and widths up to a node; what the paper's program
does not choose (recomputation and ZeRO jointly, sequence parallelism, axis order) is free here.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from nest_core.costs import Plan
from nest_core.paper.cases import Cell, Outcome, Rival
from nest_core.paper.reproduction import Row, settings
from nest_core.planner import SearchResult, search
from nest_core.planner.baselines import NAMES as BASELINES
from nest_core.planner.baselines import Baseline, evaluate_baselines
from nest_core.scenario import Scenario, ScenarioValues

__all__ = [
    "degrees",
    "one_node",
    "own_document",
    "own_outcome",
    "own_result",
    "own_scenario",
    "template_rows",
]


def template_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Llama 3 on 128 devices: whole layers, tensor parallelism up to a node, Alpa-E's program.

    Parameters
    ----------
    rows : sequence of Row
        Of figure 5 with own costs.

    Returns
    -------
    tuple of dict
        ``{space, samples_per_s, of_ours, reason}``, the last why Alpa-E's has no plan.
    """
    row = next(row for row in rows if (row["model"], row["devices"]) == ("llama3", 128))
    rates = {}
    for space, override in (
        ("whole layers only (tp 1)", {"search.tp": 1}),
        ("tp up to 8", {}),
    ):
        best = own_result(own_scenario("tpuv4_fatTree", "llama3", 128, 1, override)).best
        rates[space] = best.samples_per_s if best else None
    alpa = row["baselines"]["alpa_e"]
    reached = alpa["right_order"]
    rates["Alpa-E's program"] = reached * row["throughput"] / row["ours"] if reached else None
    ours = rates["tp up to 8"]
    return tuple(
        {
            "space": space,
            "samples_per_s": rate,
            "of_ours": rate / ours if rate and ours else None,
            "reason": None if rate else alpa.get("right_order_reason"),
        }
        for space, rate in rates.items()
    )


BATCH = 4096
"""Sequences per iteration, section 5.1."""

_REVERSED = (
    "Order: only the artifact prices stages in reverse; own costs price a placement as it is."
)


def own_document(
    setup: str, model: str, devices: int, micro_batch: int, batch: int = BATCH
) -> dict[str, Any]:
    """Return the scenario document that stands for a case.

    Parameters
    ----------
    setup, model : str
        Keys of ``presets/paper/own.toml``.
    devices, micro_batch, batch : int
        There is a fabric preset of every size in the paper that has more than a node.
    """
    cluster, work = settings()["cluster"][setup], settings()["model"][model]
    return {
        "schema": 1,
        "name": f"{work['name']} on {devices} {cluster['name']}",
        "fabric": f"{cluster['fabric']}-{devices}" if "fabric" in cluster else one_node(devices),
        "accelerator": cluster["accelerator"],
        "costs": "own",
        "workload": {
            "model": work["preset"],
            "sequence_length_tokens": work["sequence"],
            "global_batch_sequences": batch,
            "precision": cluster["precision"],
        },
        "search": {
            "micro_batch_sequences": micro_batch,
            "tp": work["tp"],
            "cp": 1,
            "schedule": "1f1b",
            "interleave": 1,
        }
        | ({} if work.get("experts") else {"ep": 1}),
    }


def one_node(devices: int) -> dict[str, Any]:
    """Return the fabric document of H100 on NVSwitches alone, however many."""
    cluster = settings()["cluster"]["h100_node"]
    return {
        "schema": 1,
        "name": cluster["name"],
        "kind": "hierarchical",
        "level": [{**cluster["node"], "group_size": devices}],
    }


def own_scenario(
    setup: str,
    model: str,
    devices: int,
    micro_batch: int,
    overrides: Mapping[str, Any] | None = None,
    batch: int = BATCH,
) -> ScenarioValues:
    """Return the scenario of a case, with overrides by dotted key."""
    return Scenario(own_document(setup, model, devices, micro_batch, batch), overrides or {}).values


def own_result(scenario: ScenarioValues) -> SearchResult:
    """Return the planner's answer."""
    return search(scenario.problem(), scenario.space, time_limit_s=scenario.time_limit_s)


@cache
def own_outcome(cell: Cell, planners: tuple[str, ...]) -> Outcome:
    """Plan a case and price the baselines beside it, in sequences per second."""
    scenario = own_scenario(cell.setup, cell.model, cell.devices, cell.micro_batch)
    problem = scenario.problem()
    result = search(problem, scenario.space, time_limit_s=scenario.time_limit_s)
    rivals = evaluate_baselines(problem, scenario.space, scenario.model, planners, as_in_paper=True)
    best = result.best
    return Outcome(
        ours=best.samples_per_s if best else None,
        reason=result.reason,
        plan=degrees(best.plan) if best else None,
        search_seconds=result.solve_seconds,
        rivals={entry.name: _rival(entry) for entry in rivals},
        widths=scenario.space.tp,
    )


def degrees(plan: Plan) -> dict[str, Any]:
    """Return a plan's degrees in the paper's letters, with what the paper's letters leave out.

    The paper's p, d, t, e and c multiply to the devices used: its d is the part of data
    parallelism that experts do not share (``dp / ep``; no case here has ep beyond dp), and its s
    uses tensor parallelism's devices again.
    """
    point = plan.point
    return {
        "p": point.pp,
        "d": point.dp // point.ep,
        "t": point.tp,
        "s": point.tp if point.sp else 1,
        "e": point.ep,
        "c": point.cp,
        "zero": point.zero,
        "recompute": plan.recompute_summary,
        "devices_used": plan.devices_used,
    }


def _rival(entry: Baseline) -> Rival:
    report = entry.report if entry.feasible else None
    return Rival(
        as_published=None,
        right_order=report.samples_per_s if report else None,
        as_published_reason=_REVERSED,
        right_order_reason=entry.reason,
        plan=degrees(report.plan) if report else None,
        search_seconds=entry.search_seconds if entry.name in BASELINES else None,
    )
