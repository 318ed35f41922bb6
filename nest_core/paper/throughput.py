"""Figures 5, 6, 7 and 11: every planner's throughput relative to the first manual run.

The run that counts as 1 is the model's first feasible manual placement in the figure's order:
as published under the artifact's costs, as it is under our own. Where no manual run fits, our
first plan takes its place.

Under the artifact's costs a case is our optimum, and its baselines in both orders; throughputs are
4,096 sequences over the time per batch, in the instance's own unit. Own costs are
`nest_core.paper.own`'s business.
"""

from collections.abc import Sequence
from functools import cache, partial

from nest_core.documents import humanise_seconds, plural
from nest_core.paper.cases import (
    FIGURES,
    PLANNERS,
    Cell,
    Outcome,
    Rival,
    ThroughputFigure,
    instance_of,
)
from nest_core.paper.published import (
    ArtifactBaseline,
    Instance,
    Solution,
    StageOrder,
    evaluate,
    solve,
)
from nest_core.paper.published.costs import BATCH_SEQUENCES
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    ResultTable,
    Row,
    geometric_mean,
    model_name,
    plan_words,
    printed,
    printed_rows,
    ratio,
    stored_paragraph,
)

__all__ = [
    "average_gains",
    "figure5",
    "figure6",
    "figure7",
    "figure11",
    "outcome_of",
    "search_times",
    "throughput",
    "throughput_rows",
]

_NO_PLACEMENT = "Placement: the artifact ships no placement of this planner for this case."
_NO_INSTANCE = (
    "Instance: the artifact ships none for this case; its costs cannot be computed here, "
    "--costs own can."
)


def outcome_of(costs: Costs, cell: Cell, planners: tuple[str, ...]) -> Outcome:
    """Return the outcome of a case under the chosen costs."""
    if costs == "published":
        return _artifact_outcome(cell, planners)
    from nest_core.paper.own import own_outcome  # the planner is not for every start

    return own_outcome(cell, planners)


@cache
def _artifact_outcome(cell: Cell, planners: tuple[str, ...]) -> Outcome:
    """Solve a case and price its baselines as published and in their right order."""
    instance = instance_of(cell)
    if instance is None:
        return Outcome(
            None,
            _NO_INSTANCE,
            None,
            None,
            dict.fromkeys(planners, Rival(None, None, _NO_INSTANCE, _NO_INSTANCE)),
        )
    solution = solve(instance)
    by_name = {baseline.name.lower(): baseline for baseline in instance.baselines}
    return Outcome(
        ours=solution.throughput,
        reason=solution.reason or "",
        plan=_plan(instance, solution),
        search_seconds=solution.solve_seconds,
        rivals={name: _as_rival(instance, by_name.get(name)) for name in planners},
        even_division=_even_division(instance, solution),
        widths=tuple(layers.width for layers in instance.widths),
    )


def _plan(instance: Instance, solution: Solution) -> dict[str, int] | None:
    if not solution.feasible or solution.data_parallel is None or solution.tensor_parallel is None:
        return None
    return {
        "p": len(solution.stages),
        "d": solution.data_parallel,
        "t": solution.tensor_parallel,
        "e": instance.expert_parallel,
        "c": instance.context_parallel,
        "devices_used": solution.devices_used,
    }


def _as_rival(instance: Instance, baseline: ArtifactBaseline | None) -> Rival:
    if baseline is None:
        return Rival(None, None, _NO_PLACEMENT, _NO_PLACEMENT)
    published = evaluate(instance, baseline, StageOrder.AS_PUBLISHED)
    right = evaluate(instance, baseline, StageOrder.RIGHT)
    plan = {
        "p": baseline.pipeline,
        "d": baseline.data,
        "t": baseline.tensor,
        "e": instance.expert_parallel,
        "c": instance.context_parallel,
    }
    return Rival(
        published.throughput, right.throughput, published.reason or "", right.reason or "", plan
    )


def _even_division(instance: Instance, solution: Solution) -> float | None:
    """Return the optimum's own work, recomputation included, over all devices at once."""
    if solution.tensor_parallel is None:
        return None
    layers = next(
        candidate for candidate in instance.widths if candidate.width == solution.tensor_parallel
    )
    work = sum(layers.forward) + sum(layers.backward)
    if instance.recompute:  # all but the last stage, priced with the backward latencies
        work += sum(layers.backward[: solution.stages[-1].first])
    shared = work * instance.stage_devices(layers.width) / instance.devices
    return BATCH_SEQUENCES / (instance.micro_batches * shared)


_ORDERS = ("as_published", "right_order")


def throughput(name: str, costs: Costs) -> Reproduction:
    """Return a throughput figure with its averages and search times."""
    figure = FIGURES[name]
    rows = throughput_rows(name, costs)
    gains = average_gains(name, rows)
    times = search_times(name, rows)
    tables = [
        ResultTable(
            "rows",
            "Relative throughput; baselines: printed / "
            + ("as published / right order" if costs == "published" else "priced with own costs"),
            rows,
            tuple(_words(row, figure) for row in rows),
        ),
        ResultTable(
            "averages", "Average gain of our optimum", gains, tuple(map(_gain_words, gains))
        ),
        ResultTable(
            "search_times", "Search time, all cells", times, tuple(map(_time_words, times))
        ),
    ]
    template: tuple[Row, ...] = ()
    if name == "figure5" and costs == "own":
        from nest_core.paper.own import template_rows  # the planner is not for every start

        template = template_rows(rows)
        tables.append(
            ResultTable(
                "template",
                "Llama 3 on 128 devices",
                template,
                tuple(map(_template_words, template)),
            )
        )
    return Reproduction(
        name,
        figure.title,
        costs,
        _printed_sentence(name),
        tuple(tables),
        stored_paragraph(name, costs),
    )


def throughput_rows(name: str, costs: Costs) -> tuple[Row, ...]:
    """Return rows of a figure.

    Returns
    -------
    tuple of dict
        ``{costs, model, devices, micro_batch, ours, published, plan, baselines, ...}``, the
        baselines ``{planner: {published, as_published, right_order, ...}}``. All are relative
        throughputs, None where infeasible or, for ``published``, not printed; then ``reason``,
        or ``as_published_reason`` and ``right_order_reason``, say why.
    """
    figure = FIGURES[name]
    outcomes = {cell: outcome_of(costs, cell, figure.planners) for cell in figure.cells}
    units = _units(figure, outcomes, "as_published" if costs == "published" else "right_order")
    printed_cells = printed_rows(name)
    return tuple(
        _row(
            costs,
            cell,
            outcomes[cell],
            units.get(figure.group(cell)),
            printed_cells.get(cell.key, {}),
        )
        for cell in figure.cells
    )


def _units(
    figure: ThroughputFigure, outcomes: dict[Cell, Outcome], order: str
) -> dict[tuple[str, int], float]:
    """Return the throughput that counts as 1, by group."""
    units: dict[tuple[str, int], float] = {}
    for ours in (False, True):
        for cell, outcome in outcomes.items():
            throughput = outcome.ours if ours else getattr(outcome.rivals["manual"], order)
            if throughput is not None:
                units.setdefault(figure.group(cell), throughput)
    return units


def _row(
    costs: Costs, cell: Cell, outcome: Outcome, unit: float | None, shown: dict[str, float]
) -> Row:
    def relative(value: float | None) -> float | None:
        return None if value is None or unit is None else value / unit

    row: Row = {
        "costs": costs,
        "model": cell.model,
        "devices": cell.devices,
        "micro_batch": cell.micro_batch,
        "ours": relative(outcome.ours),
        "published": shown.get("nest"),
        "baselines": {
            name: _rival(rival, relative(rival.as_published), relative(rival.right_order))
            | {"published": shown.get(name)}
            for name, rival in outcome.rivals.items()
        },
        "plan": dict(outcome.plan) if outcome.plan else None,
        "widths": list(outcome.widths),
        "throughput": outcome.ours,
        "search_seconds": outcome.search_seconds,
        "published_search_seconds": shown.get("search_seconds"),
    }
    if outcome.even_division is not None:
        row["even_division"] = relative(outcome.even_division)
    if outcome.reason:
        row["reason"] = outcome.reason
    return row


def _rival(rival: Rival, as_published: float | None, right_order: float | None) -> Row:
    entry: Row = {
        "as_published": as_published,
        "right_order": right_order,
        "plan": dict(rival.plan) if rival.plan else None,
        "search_seconds": rival.search_seconds,
    }
    if as_published is None:
        entry["as_published_reason"] = rival.as_published_reason
    if right_order is None:
        entry["right_order_reason"] = rival.right_order_reason
    return entry


def average_gains(name: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Gains of the optimum over every planner: printed, from printed cells, and computed.

    Returns
    -------
    tuple of dict
        ``{planner, printed, printed_cells, printed_cells_arithmetic, as_published,
        right_order, cells}``; computed ones are geometric means over the cells where both
        have a figure, ``cells`` counts those of ``right_order``.
    """
    texts = printed()["average_gains"].get(name, {})
    return tuple(_gain(planner, texts.get(planner), rows) for planner in FIGURES[name].planners)


def _gain(planner: str, text: float | None, rows: Sequence[Row]) -> Row:
    def gains(ours: str, theirs: str) -> list[float]:
        pairs = ((row[ours], row["baselines"][planner][theirs]) for row in rows)
        return [mine / other for mine, other in pairs if mine and other]

    cells = gains("published", "published")
    right = gains("ours", "right_order")
    return {
        "planner": planner,
        "printed": text,
        "printed_cells": geometric_mean(cells),
        "printed_cells_arithmetic": sum(cells) / len(cells) if cells else None,
        "as_published": geometric_mean(gains("ours", "as_published")),
        "right_order": geometric_mean(right),
        "cells": len(right),
    }


def search_times(name: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return what searches took: NEST's and others' as printed, ours and baselines' as run here.

    Returns
    -------
    tuple of dict
        ``{planner, text, published_seconds, seconds, cells}``: the last two over all cells
        that were searched here, None where placements were given and not searched.
    """
    texts = printed()["search_text"].get(name, {})
    sums = {"nest": [row["search_seconds"] for row in rows]} | {
        planner: [row["baselines"][planner]["search_seconds"] for row in rows]
        for planner in FIGURES[name].planners
    }
    stated = [row["published_search_seconds"] for row in rows if row["published_search_seconds"]]
    times: list[Row] = []
    for planner, spent in sums.items():
        seconds = [value for value in spent if value is not None]
        times.append(
            {
                "planner": planner,
                "text": texts.get(planner),
                "published_seconds": sum(stated) if stated and planner == "nest" else None,
                "seconds": sum(seconds) if seconds else None,
                "cells": len(seconds),
            }
        )
    return tuple(times)


def _printed_sentence(name: str) -> str:
    rows = printed_rows(name)
    if not rows:
        return (
            f"The paper shows {name.replace('figure', 'figure ')} as a picture only; neither it "
            "nor the artifact prints its numbers."
        )
    return (
        f"The paper shows {name.replace('figure', 'figure ')} as a picture; the numbers here are "
        f"the artifact's printed results, "
        f"{plural(len(rows), 'cell')} of {len(FIGURES[name].cells)}."
    )


def _words(row: Row, figure: ThroughputFigure) -> dict[str, str]:
    keys = ("published", "right_order") if row["costs"] == "own" else ("published", *_ORDERS)
    words = {
        "model": model_name(row["model"]),
        "devices": f"{row['devices']:,}",
        "micro-batch": str(row["micro_batch"]),
        "NEST, printed": ratio(row["published"]),
        "ours": ratio(row["ours"]),
        "our plan": plan_words(row["plan"]),
    }
    for planner in figure.planners:
        entry = row["baselines"][planner]
        words[PLANNERS[planner]] = " / ".join(ratio(entry[key]) for key in keys)
    return words


def _gain_words(row: Row) -> dict[str, str]:
    return {
        "planner": PLANNERS[row["planner"]],
        "paper's text": ratio(row["printed"]),
        "printed cells": ratio(row["printed_cells"]),
        "as published, here": ratio(row["as_published"]),
        "right order, here": ratio(row["right_order"]),
        "cells": str(row["cells"]),
    }


def _time_words(row: Row) -> dict[str, str]:
    return {
        "planner": PLANNERS.get(row["planner"], "NEST / ours"),
        "paper's text": row["text"] or "not said",
        "printed, sum": humanise_seconds(row["published_seconds"]),
        "here, sum": humanise_seconds(row["seconds"]),
        "cells here": str(row["cells"]),
    }


def _template_words(row: Row) -> dict[str, str]:
    return {
        "space": row["space"],
        "sequences/s": ratio(row["samples_per_s"]),
        "of ours": ratio(row["of_ours"]),
    }


figure5, figure6, figure7, figure11 = (
    partial(throughput, name) for name in ("figure5", "figure6", "figure7", "figure11")
)
