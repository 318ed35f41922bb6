"""Cases under this project's costs: the paper's clusters and models as scenarios.

``presets/paper/own.toml`` says what stands for each of them. The search is the paper's: one
micro-batch size, 1F1B, no context parallelism, and widths up to a node; what the paper's program
does not choose (recomputation and ZeRO jointly, sequence parallelism, axis order) is free here.

Algorithm 1 is NEST's own level-wise program beside the exact search: the paper's five models on
both of its clusters, at the largest size. The program (`nest_core.planner.baselines.nest`) and the
exact search get the same space and the same costs, so that the difference is theirs; what the
program promised is held against what its plan takes on the fabric, and what it loses to the exact
search is told cause by cause.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from typing import Any

from nest_core.costs import Plan
from nest_core.documents import humanise_seconds, join_words, percent
from nest_core.paper.cases import Cell, Outcome, Rival
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    ResultTable,
    Row,
    cluster_name,
    model_name,
    plan_words,
    ratio,
    settings,
)
from nest_core.planner import SearchResult, search
from nest_core.planner.baselines import NAMES as BASELINES
from nest_core.planner.baselines import Baseline, Waterfall, evaluate_baselines
from nest_core.scenario import Scenario, ScenarioValues

__all__ = [
    "algorithm1",
    "algorithm1_paragraph",
    "algorithm1_row",
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


CELLS = tuple(
    Cell(setup, model, 1024, 1)
    for setup in ("tpuv4_fatTree", "h100_spineLeaf")
    for model in ("bert", "llama2", "llama3", "mixtral", "gpt3")
)
"""What is compared."""

ALIKE = 1e-3
"""Relative difference up to which two plans are told as equally fast."""

_AXES = {"t s": "tp", "s": "sp", "c": "cp", "d e": "ep", "zero": "zero"}
"""Letters of the paper that tell an axis of a stage's strategy."""

_LEVELS = (
    "Levels: the artifact's costs know nothing but levels, so its program's plans take what was "
    "promised; see figure 5, and --costs own."
)


def algorithm1(costs: Costs) -> Reproduction:
    """Return what the program promised, what its plan takes, and what the exact search's takes."""
    rows = tuple(algorithm1_row(costs, cell) for cell in CELLS)
    return Reproduction(
        "algorithm1",
        "Algorithm 1: NEST's level-wise program (paper) beside the exact search (ours)",
        costs,
        "The paper prints the program; what it promised for a plan beside what the plan takes it "
        "does not print.",
        (
            ResultTable(
                "rows",
                "Iterations, and what the level-wise program loses to the exact search",
                rows,
                tuple(map(_words, rows)),
            ),
        ),
        algorithm1_paragraph(costs, rows),
    )


def algorithm1_row(costs: Costs, cell: Cell) -> Row:
    """Both planners on one case.

    Returns
    -------
    dict
        ``{costs, cluster, model, devices, iteration_time_s, plan, search_seconds, nest, ratio}``
        of the exact search, ``nest`` with the same of the program and ``promised_s``,
        ``waterfall``, ``origin``, ``reason``; None where there is no plan, then ``reason`` says
        why. ``ratio`` is the program's iteration over ours.
    """
    row: Row = {
        "costs": costs,
        "cluster": cell.setup,
        "model": cell.model,
        "devices": cell.devices,
    }
    if costs == "published":
        none = dict.fromkeys(("iteration_time_s", "plan", "search_seconds", "nest", "ratio"))
        return row | none | {"reason": _LEVELS}
    scenario = own_scenario(cell.setup, cell.model, cell.devices, cell.micro_batch)
    problem = scenario.problem()
    result = search(problem, scenario.space, time_limit_s=scenario.time_limit_s)
    (nest,) = evaluate_baselines(
        problem,
        scenario.space,
        scenario.model,
        ("nest",),
        time_limit_s=scenario.time_limit_s,
        ours=result.best,
    )
    return row | _compared(result, nest)


def _compared(result: SearchResult, nest: Baseline) -> Row:
    best = result.best
    takes = nest.report.iteration_s if nest.report and nest.feasible else None
    row: Row = {
        "iteration_time_s": best.iteration_s if best else None,
        "plan": _degrees(best.plan) if best else None,
        "search_seconds": result.solve_seconds,
        "nest": {
            "promised_s": nest.promised_s,
            "iteration_time_s": takes,
            "waterfall": asdict(nest.waterfall) if nest.waterfall else None,
            "plan": _degrees(nest.report.plan) if nest.report and nest.feasible else None,
            "origin": nest.origin,
            "reason": nest.reason,
            "search_seconds": nest.search_seconds,
        },
        "ratio": takes / best.iteration_s if takes and best else None,
    }
    return row if best else row | {"reason": result.reason}


def _degrees(plan: Plan) -> Row:
    """Degrees in the paper's letters; those that differ between stages are named instead."""
    letters_of_plan, differing = degrees(plan), []
    for letters, axis in _AXES.items():
        if len({getattr(strategy, axis) for strategy in plan.strategies}) > 1:
            differing += [
                key for key in letters.split() if letters_of_plan.pop(key, None) is not None
            ]
    return letters_of_plan | ({"by_stage": sorted(differing)} if differing else {})


def algorithm1_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return where both planners agree, where not and why, and how good the promises are."""
    if costs == "published":
        return (
            "Under the artifact's costs a fabric is its levels, so nothing is lost between them "
            "and the links, and the optimum of figure 5 is the program's own.",
        )
    return tuple(_sentences(rows))


def _sentences(every: Sequence[Row]) -> Iterator[str]:
    rows = [row for row in every if row["ratio"] is not None]
    alike = [row for row in rows if abs(row["ratio"] - 1) <= ALIKE]
    yield (
        f"NEST's program and the exact search have equally fast plans in {len(alike)} of "
        f"{len(every)} cases."
    )
    for row in every:
        if row in alike:
            continue
        if row not in rows:
            yield f"{_case(row)}: {row.get('reason') or row['nest']['reason']}."
            continue
        way = "slower" if row["ratio"] > 1 else "faster"
        yield f"{_case(row)}: its plan is {percent(abs(row['ratio'] - 1))} {way} ({_why(row)})."
    if rows:
        yield _kept(rows)
        slow = max(rows, key=lambda row: row["nest"]["search_seconds"])
        yield (
            f"It searches for {humanise_seconds(slow['nest']['search_seconds'])} at most "
            f"({_case(slow)}), "
            f"the exact search for {humanise_seconds(max(row['search_seconds'] for row in rows))}."
        )


def _kept(rows: Sequence[Row]) -> str:
    """Return how far plans are from what was promised."""
    far = max(rows, key=lambda row: abs(_beyond(row)))
    if abs(_beyond(far)) <= ALIKE:
        return "On the fabric its plans take what it promised on levels."
    return (
        "On the fabric its plans take what it promised on levels within "
        f"{percent(abs(_beyond(far)))} ({_case(far)})."
    )


def _beyond(row: Row) -> float:
    return float(row["nest"]["iteration_time_s"] / row["nest"]["promised_s"] - 1)


def _why(row: Row) -> str:
    """Terms of the waterfall in % of our iteration, largest first, without what is nothing."""
    falls = row["nest"] and row["nest"]["waterfall"]
    if not falls:
        return "–"
    shares = {
        field.name.replace("_", " "): falls[field.name] / row["iteration_time_s"]
        for field in fields(Waterfall)
    }
    reasons = sorted(shares, key=lambda cause: -abs(shares[cause]))
    return join_words(
        [f"{cause} {100 * shares[cause]:+.2g} %" for cause in reasons if abs(shares[cause]) > ALIKE]
    )


def _case(row: Row) -> str:
    return f"{model_name(row['model'])}, {row['devices']:,} {cluster_name(row['cluster'])}"


def _words(row: Row) -> dict[str, str]:
    nest = row["nest"] or {"promised_s": None, "iteration_time_s": None, "plan": None}
    return {
        "cluster": f"{row['devices']:,} {cluster_name(row['cluster'])}",
        "model": model_name(row["model"]),
        "NEST promised": humanise_seconds(nest["promised_s"]),
        "NEST takes": humanise_seconds(nest["iteration_time_s"]),
        "exact search": humanise_seconds(row["iteration_time_s"]),
        "ratio": ratio(row["ratio"], 3),
        "NEST loses by": _why(row),
        "NEST's plan": _plan_words(nest["plan"]),
        "our plan": _plan_words(row["plan"]),
    }


def _plan_words(plan: Row | None) -> str:
    differing = (plan or {}).get("by_stage")
    return plan_words(plan) + (f", by stage {', '.join(differing)}" if differing else "")
