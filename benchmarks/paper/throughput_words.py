"""What is to be said under a throughput figure: sentences over its rows, every number computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nest_core.documents.units import join_words, percent
from nest_core.paper.cases import PLANNERS
from nest_core.paper.reproduction import Costs, Row, model_name, ratio

__all__ = ["paragraph"]

# One unit of the last of two printed decimals: some are cut off, not rounded.
_AGREES = 0.01
_NOTICEABLE = 0.005
# Figures all of whose cells the artifact prints, an X among them.
_WHOLE = ("figure5", "figure6")


def paragraph(
    name: str, costs: Costs, rows: Sequence[Row], gains: Sequence[Row], template: Sequence[Row]
) -> tuple[str, ...]:
    """Sentences for a figure: what agrees, what differs, and why."""
    found = (
        [*_agreement(rows), *_reversal(rows, gains), *_proof(rows)]
        if costs == "published"
        else [*_order(gains), *_widths(rows), *_infeasible(name, rows)]
    )
    found += _ahead(rows, costs, template)
    if costs == "own":
        found.append("NEST's own level-wise program on these costs, beside our search: algorithm1.")
    found += _means(name, gains)
    found += _absent(rows, costs)
    if name in ("figure6", "figure11"):
        found += _micro_batches(rows)
    return tuple(found)


def _agreement(rows: Sequence[Row]) -> Iterator[str]:
    shown = [row for row in rows if row["published"] is not None and row["ours"] is not None]
    if not shown:
        yield "Nothing is printed here to compare with; the optima are exact under the same costs."
        return
    worst = max(abs(row["ours"] - row["published"]) for row in shown)
    same = sum(abs(row["ours"] - row["published"]) <= _AGREES for row in shown)
    yield (
        f"Agrees: {same} of {len(shown)} printed NEST cells are met to one in the last digit; "
        f"the largest difference is {worst:.4f}."
    )
    off, cells = [], 0
    for row in rows:
        for planner, entry in row["baselines"].items():
            if entry["published"] is None or entry["as_published"] is None:
                continue
            cells += 1
            if abs(entry["published"] - entry["as_published"]) > _AGREES:
                off.append(
                    f"{PLANNERS[planner]} on {_case(row)} (printed {ratio(entry['published'])}, "
                    f"computed {ratio(entry['as_published'])})"
                )
    yield (
        f"The baselines priced as the artifact does it, stages in reverse, meet {cells - len(off)} "
        f"of {cells} printed cells" + (f"; off are {join_words(off)}." if off else ".")
    )


def _reversal(rows: Sequence[Row], gains: Sequence[Row]) -> Iterator[str]:
    changed = [
        f"{PLANNERS[gain['planner']]} from {ratio(gain['as_published'])} to "
        f"{ratio(gain['right_order'])}"
        for gain in gains
        if gain["as_published"] is not None and gain["right_order"] is not None
    ]
    if changed:
        yield (
            "Differs: with the same placements priced in their right order, the average gain "
            f"goes, over {join_words(changed)}."
        )
        yield (
            "Why: the artifact hands the baselines' stages over in reverse, so that the last stage "
            "pays recomputation and the largest stash, and its even split counts the embedding "
            "as a transformer block, which gives the last stage one block too many."
        )
        both = [
            entry["as_published"] / entry["right_order"] - 1
            for row in rows
            for entry in row["baselines"].values()
            if entry["as_published"] is not None and entry["right_order"] is not None
        ]
        yield (
            f"Of {len(both)} placements the reversal slows "
            f"{sum(change < -_NOTICEABLE for change in both)} and speeds up "
            f"{sum(change > _NOTICEABLE for change in both)}."
        )


def _proof(rows: Sequence[Row]) -> Iterator[str]:
    slower = [
        f"{PLANNERS[planner]} on {_case(row)}"
        for row in rows
        for planner, entry in row["baselines"].items()
        for order in ("as_published", "right_order")
        if row["ours"] and entry[order] and entry[order] > row["ours"] * (1 + 1e-9)
    ]
    yield (
        "No placement priced here beats our optimum in either order."
        if not slower
        else f"Ahead of our optimum: {join_words(list(dict.fromkeys(slower)))}."
    )


def _ahead(rows: Sequence[Row], costs: Costs, template: Sequence[Row]) -> Iterator[str]:
    """Cells where the printed figure of a planner exceeds NEST's."""
    for row in rows:
        for planner, entry in row["baselines"].items():
            printed = entry["published"]
            if printed is None or row["published"] is None or printed <= row["published"]:
                continue
            lead = (
                f"In print {PLANNERS[planner]} is ahead on {_case(row)}: {ratio(printed)} against "
                f"{ratio(row['published'])}."
            )
            if costs == "published":
                yield f"{lead} {_template_bound(row, planner, printed)}"
            elif template:
                yield f"{lead} {_own_template(template)}"
            else:
                yield lead


def _template_bound(row: Row, planner: str, printed: float) -> str:
    plan, even = row["plan"], row["even_division"]
    widths = join_words([str(width) for width in row["widths"]])
    name = PLANNERS[planner]
    verdict = (
        f"{name} shards inside layers, so its {ratio(printed)}, which is within that, contradicts "
        "nothing"
        if printed <= even
        else f"{name}'s {ratio(printed)} exceeds even that, so no placement of this work reaches it"
    )
    return (
        f"What holds: {ratio(row['ours'])} is the proven optimum of the template space, whole "
        f"layers at tensor width {widths} in {plan['d']} replicas of {plan['p']} stages, which "
        f"work on {plan['devices_used']} of {row['devices']} devices. What does not: it is no "
        f"bound on every space. The same work spread evenly over all {row['devices']} devices "
        f"without idle time or transfers would reach {ratio(even)}; {verdict}. The artifact ships "
        f"no placement of {name}, so its figure cannot be priced again."
    )


def _own_template(template: Sequence[Row]) -> str:
    narrow, _, alpa = template
    said = (
        f"With own costs the template of whole layers reaches {ratio(narrow['of_ours'])} of what "
        "sharding inside layers (tp up to 8) reaches, so here too the gap is the space's, not the "
        "program's"
        if narrow["of_ours"] is not None and narrow["of_ours"] < 1
        else f"With own costs whole layers reach {ratio(narrow['of_ours'])} of tp up to 8, so "
        "sharding inside layers gains nothing"
    )
    if alpa["of_ours"] is None:
        return f"{said}; Alpa-E's program gives no plan ({alpa['reason']})."
    verdict = "is not ahead of ours" if alpa["of_ours"] <= 1 + 1e-9 else "is ahead of ours"
    return f"{said}; Alpa-E's program reaches {ratio(alpa['of_ours'])} of ours and {verdict}."


def _order(gains: Sequence[Row]) -> Iterator[str]:
    known = [gain for gain in gains if gain["right_order"] is not None]
    told = [
        f"{ratio(gain['right_order'])} over {PLANNERS[gain['planner']]}"
        + (f" (printed {ratio(gain['printed'])})" if gain["printed"] is not None else "")
        for gain in known
    ]
    yield f"With own costs our optimum gains {join_words(told)} on average."
    smaller = [g for g in known if g["printed"] is not None and g["right_order"] < g["printed"]]
    if smaller:
        yield (
            f"Differs: over {join_words([PLANNERS[g['planner']] for g in smaller])} it gains less "
            "than is printed. Why: every method chooses here from the same widths, depths, ZeRO "
            "stages and recomputation, so what is left is what its own assumptions cost it: "
            "Manual's rules, a flat network for Phaze and Mist, one pipeline for Alpa-E, chance "
            "for MCMC."
        )
    both = [gain for gain in known if gain["printed"] is not None]
    if len(both) > 1:
        printed = [PLANNERS[g["planner"]] for g in sorted(both, key=lambda g: -g["printed"])]
        here = [PLANNERS[g["planner"]] for g in sorted(both, key=lambda g: -g["right_order"])]
        yield (
            "Agrees: the order of the gains, largest first, is the printed one "
            f"({join_words(here)})."
            if printed == here
            else f"Differs: the gains, largest first, come in the order {join_words(here)}; "
            "printed "
            f"are {join_words(printed)}."
        )


def _widths(rows: Sequence[Row]) -> Iterator[str]:
    planned = [row for row in rows if row["plan"]]
    wide = sum(row["plan"]["t"] > 1 for row in planned)
    light = sum(row["plan"]["recompute"] != "full" for row in planned)
    sharded = sum(row["plan"]["zero"] > 0 for row in planned)
    if planned:
        yield (
            f"Why: {wide} of {len(planned)} optima use tensor parallelism, {sharded} shard states "
            f"(ZeRO) and {light} recompute less than everything; the artifact offers Llama and "
            "Mixtral one tensor width, recomputes everywhere but in BERT, and adds seconds of "
            "transfer to milliseconds of compute, so its transfers count 1,000 times too little."
        )


def _infeasible(name: str, rows: Sequence[Row]) -> Iterator[str]:
    here = {_key(row) for row in rows if row["ours"] is None}
    there = {_key(row) for row in rows if row["published"] is None}
    if name in _WHOLE and here != there:
        yield (
            f"{len(here)} of {len(rows)} cells do not fit here, {len(there)} are an X in print: "
            "flash attention keeps no attention matrix, and tensor parallelism and ZeRO divide "
            "what the artifact's template cannot; on the other side optimizer states count here."
        )


def _key(row: Row) -> tuple[str, int, int]:
    return row["model"], row["devices"], row["micro_batch"]


def _means(name: str, gains: Sequence[Row]) -> Iterator[str]:
    told = [
        f"{PLANNERS[g['planner']]} {ratio(g['printed'])} (cells: {ratio(g['printed_cells'])} "
        f"geometric, {ratio(g['printed_cells_arithmetic'])} arithmetic)"
        for g in gains
        if g["printed"] is not None and g["printed_cells"] is not None
    ]
    if told:
        yield (
            "The averages in the paper's text beside those of its printed cells: "
            f"{join_words(told)}."
        )
    elif name == "figure7":
        yield "The averages in the paper's text come without their cells."


def _absent(rows: Sequence[Row], costs: Costs) -> Iterator[str]:
    missing = sorted({model_name(row["model"]) for row in rows if _without(row)})
    if missing and costs == "published":
        yield f"The artifact ships no instance of {join_words(missing)}: own costs only."
    silent = sorted(
        {
            PLANNERS[planner]
            for row in rows
            for planner, entry in row["baselines"].items()
            if all(r["baselines"][planner]["right_order"] is None for r in rows)
            and entry["right_order"] is None
        }
    )
    if silent and costs == "published":
        yield f"Of {join_words(silent)} the artifact ships no placement, so only print stands here."


def _without(row: Row) -> bool:
    return str(row.get("reason", "")).startswith("Instance:")


def _micro_batches(rows: Sequence[Row]) -> Iterator[str]:
    told = []
    for model in dict.fromkeys(row["model"] for row in rows):
        fitting = [row for row in rows if row["model"] == model and row["ours"] is not None]
        if not fitting:
            continue
        best = max(fitting, key=lambda row: row["ours"])
        first = fitting[0]
        gain = best["ours"] / first["ours"] - 1
        told.append(
            f"{model_name(model)} is fastest at {best['micro_batch']} ({percent(gain)} above "
            f"{first['micro_batch']})"
            if gain > _NOTICEABLE
            else f"{model_name(model)} gains nothing beyond {first['micro_batch']}"
        )
    yield f"Over the micro-batch: {join_words(told)}."


def _case(row: Row) -> str:
    sizes = f"{model_name(row['model'])}, {row['devices']:,} devices"
    return sizes if row["micro_batch"] == 1 else f"{sizes}, micro-batch {row['micro_batch']}"
