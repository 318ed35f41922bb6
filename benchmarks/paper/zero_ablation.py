"""Table 7: ZeRO where memory is cut until no layer fits a device.

Published: the artifact's memory of one-layer stages under its rule of raising ZeRO
(`benchmarks.paper.zero`). Own: the planner on the same cut of memory, with and without ZeRO,
in the paper's space (whole layers) and with tensor parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from benchmarks.paper.zero import Sharding, sharding, stage_needs
from nest_core.documents.units import GIB, humanise_bytes, join_words
from nest_core.paper.cases import Cell, shipped_instance
from nest_core.paper.own import degrees, own_result, own_scenario
from nest_core.paper.published import Instance
from nest_core.paper.published.solver import least_memory
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    ResultTable,
    Row,
    model_name,
    plan_words,
    printed,
    ratio,
)
from nest_core.planner import SearchResult

__all__ = ["table7", "table7_paragraph"]

DEVICES = 1024
_GRAPH = {
    "llama3": Cell("tpuv4_fatTree", "llama3", DEVICES, 1),
    # The graph whose blocks' activations leave room in 120 MB; figure 5's do not.
    "bert": Cell("h100_spineLeaf", "bertlarge", DEVICES, 1),
}
_SPACES = {
    "whole layers, no ZeRO": {"search.tp": 1, "search.zero": 0},
    "whole layers, ZeRO": {"search.tp": 1},
    "tp up to 8, no ZeRO": {"search.zero": 0},
    "tp up to 8, ZeRO": {},
}


def table7(costs: Costs) -> Reproduction:
    """The ablation beside the printed one."""
    rows = _published_rows() if costs == "published" else _own_rows()
    words = tuple((_published_words if costs == "published" else _own_words)(row) for row in rows)
    return Reproduction(
        "table7",
        "Table 7: ZeRO under reduced memory, 1,024 devices",
        costs,
        "The paper prints the plan, the devices used and the ZeRO stage and degree of both kinds "
        "of layer; it prints no throughput.",
        (ResultTable("rows", "ZeRO under reduced memory", rows, words),),
        table7_paragraph(costs, rows),
    )


def _published_rows() -> tuple[Row, ...]:
    return tuple(_published_row(entry) for entry in printed()["table7"])


def _published_row(entry: dict[str, Any]) -> Row:
    whole = shipped_instance(_GRAPH[entry["model"]])
    # Without recomputation the stash alone exceeds the memory: see `stashing_bytes`.
    instance = replace(whole, memory_bytes=float(entry["memory_bytes"]), recompute=True)
    layers = instance.widths[0]
    needs = stage_needs(instance, layers)
    embedding, blocks = (sharding(part, instance.memory_bytes) for part in (needs[:1], needs[1:]))
    single = [sharding((need,), instance.memory_bytes) for need in needs]
    used = _devices(embedding, blocks, len(needs) - 1)
    fewest = sum(how.degree for how in single if how is not None) if all(single) else None
    return {
        "costs": "published",
        "model": entry["model"],
        "memory_bytes": entry["memory_bytes"],
        "published": {key: entry[key] for key in ("devices", "plan", "embedding", "blocks")},
        "ours": {
            "devices": used and used * (DEVICES // used),
            "plan": used and {"p": len(needs), "d": DEVICES // used, "t": layers.width},
            "embedding": _how(embedding),
            "blocks": _how(blocks),
        },
        "needed_without_zero_bytes": least_memory(instance, layers)[0],
        "devices_per_replica": used,
        "fewest_devices_per_replica": fewest,
        "replicas_with_fewest": fewest and DEVICES // fewest,
        "stashing_bytes": _stashing(instance),
    }


def _devices(embedding: Sharding | None, blocks: Sharding | None, count: int) -> int | None:
    return None if embedding is None or blocks is None else embedding.degree + count * blocks.degree


def _how(how: Sharding | None) -> dict[str, int] | None:
    return None if how is None else {"zero": how.zero, "degree": how.degree}


def _stashing(instance: Instance) -> float:
    """Need of the second stage's activations and stash alone when nothing is recomputed."""
    kept = replace(instance, recompute=False)
    return max(need.rest for need in stage_needs(kept, kept.widths[0]))


def _own_rows() -> tuple[Row, ...]:
    rows: list[Row] = []
    for entry in printed()["table7"]:
        for space in _SPACES:
            result = _planned(entry["model"], entry["memory_bytes"], space)
            best = result.best
            rows.append(
                {
                    "costs": "own",
                    "model": entry["model"],
                    "memory_bytes": entry["memory_bytes"],
                    "space": space,
                    "published": {
                        key: entry[key] for key in ("devices", "plan", "embedding", "blocks")
                    },
                    "feasible": best is not None,
                    "ours": degrees(best.plan) if best else None,
                    "samples_per_s": best.samples_per_s if best else None,
                    "needed_bytes": None if best else result.needed_bytes,
                    "reason": result.reason or None,
                }
            )
    return tuple(rows)


@cache
def _planned(model: str, memory_bytes: int, space: str) -> SearchResult:
    """The planner's answer where a device has so much memory, all of it for tensors."""
    memory = {
        "accelerator.memory_GiB": memory_bytes / GIB,
        "accelerator.reserved_GiB": 0.0,
    }
    return own_result(
        own_scenario("tpuv4_fatTree", model, DEVICES, 1, {**memory, **_SPACES[space]})
    )


def table7_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """What holds of the ablation and what does not."""
    if costs == "published":
        return tuple(sentence for row in rows for sentence in _published_sentences(row))
    models = dict.fromkeys(row["model"] for row in rows)
    return tuple(
        sentence
        for model in models
        for sentence in _own_sentences([row for row in rows if row["model"] == model])
    )


def _published_sentences(row: Row) -> list[str]:
    name, mine, theirs = model_name(row["model"]), row["ours"], row["published"]
    have = humanise_bytes(row["memory_bytes"])
    same = [
        label
        for label, key in (
            ("ZeRO of the embedding", "embedding"),
            ("ZeRO of the other layers", "blocks"),
            ("plan", "plan"),
            ("devices used", "devices"),
        )
        if mine[key] == theirs[key]
    ]
    needed = row["needed_without_zero_bytes"]
    found = [
        f"{name} at {have}: computed and printed agree on {join_words(same)}.",
        f"Holds: without ZeRO the least demanding pipeline needs {humanise_bytes(needed)}, so "
        "nothing fits."
        if needed > row["memory_bytes"]
        else f"Does not hold: a pipeline without ZeRO needs {humanise_bytes(needed)} and fits.",
    ]
    fewest, used = row["fewest_devices_per_replica"], row["devices_per_replica"]
    if fewest is not None and used is not None and fewest < used:
        found.append(
            f"Does not hold: the sharding is not the least that fits. One degree for all blocks is "
            f"what the first of them needs, whose stash is the largest; chosen stage by stage, as "
            f"the text says, a replica takes {fewest} devices instead of {used}, and "
            f"{row['replicas_with_fewest']} replicas fit instead of {mine['plan']['d']}."
        )
    if row["stashing_bytes"] > row["memory_bytes"] and row["model"] == "bert":
        found.append(
            f"It needs recomputation: stashing, which table 2 has for {name}, keeps "
            f"{humanise_bytes(row['stashing_bytes'])}, which ZeRO does not shard."
        )
    return found


def _own_sentences(rows: Sequence[Row]) -> list[str]:
    by = {row["space"]: row for row in rows}
    name, have = model_name(rows[0]["model"]), humanise_bytes(rows[0]["memory_bytes"])
    bare, sharded = by["whole layers, no ZeRO"], by["whole layers, ZeRO"]
    wide, best = by["tp up to 8, no ZeRO"], by["tp up to 8, ZeRO"]
    found = []
    if not bare["feasible"]:
        found.append(
            f"{name} at {have} with own costs: whole layers without ZeRO do not fit (the leanest "
            f"plan needs {humanise_bytes(bare['needed_bytes'])}), which holds as printed; with "
            + (
                f"ZeRO they run as {plan_words(sharded['ours'])}."
                if sharded["feasible"]
                else f"ZeRO neither, at {humanise_bytes(sharded['needed_bytes'])}."
            )
        )
    else:
        found.append(
            f"{name} at {have} with own costs: whole layers fit without ZeRO "
            f"({plan_words(bare['ours'])}), which does not hold as printed: recomputation is "
            "chosen per stage here and flash attention keeps no attention matrix, while the "
            "artifact's activations alone nearly fill the device."
        )
    if wide["feasible"] and not bare["feasible"]:
        found.append(
            "Does not hold beyond the template: tensor parallelism alone makes it fit "
            f"({plan_words(wide['ours'])})."
        )
    elif not wide["feasible"]:
        found.append(
            "Holds beyond the template too: with tensor parallelism up to 8 and no ZeRO the "
            f"leanest plan still needs {humanise_bytes(wide['needed_bytes'])}."
        )
    if best["feasible"] and wide["feasible"]:
        gain = best["samples_per_s"] / wide["samples_per_s"]
        found.append(
            f"Where both run, ZeRO makes the best plan {ratio(gain)} times as fast: it frees "
            "memory that saves recomputation or stages."
            if gain > 1.005
            else "Where both run, ZeRO does not make the best plan faster."
        )
    elif best["feasible"]:
        found.append(f"ZeRO and tensor parallelism together run as {plan_words(best['ours'])}.")
    else:
        found.append(
            "Not even together do they fit: the leanest plan needs "
            f"{humanise_bytes(best['needed_bytes'])}; optimizer states and working buffers, which "
            "the artifact leaves out, count here."
        )
    return found


def _sharded(how: dict[str, int] | None) -> str:
    if how is None:
        return "does not fit"
    return f"ZeRO-{how['zero']}, degree {how['degree']}" if how["zero"] else "none"


def _published_words(row: Row) -> dict[str, str]:
    mine, theirs = row["ours"], row["published"]
    return {
        "model": model_name(row["model"]),
        "memory": humanise_bytes(row["memory_bytes"]),
        "devices, printed": str(theirs["devices"]),
        "devices": str(mine["devices"] or "–"),
        "plan, printed": plan_words(theirs["plan"]),
        "plan": plan_words(mine["plan"]),
        "embedding, printed": _sharded(theirs["embedding"]),
        "embedding": _sharded(mine["embedding"]),
        "other layers, printed": _sharded(theirs["blocks"]),
        "other layers": _sharded(mine["blocks"]),
        "a replica, stage by stage": f"{row['fewest_devices_per_replica'] or '–'} devices",
    }


def _own_words(row: Row) -> dict[str, str]:
    return {
        "model": model_name(row["model"]),
        "memory": humanise_bytes(row["memory_bytes"]),
        "space": row["space"],
        "NEST, printed": plan_words(row["published"]["plan"]),
        "our plan": plan_words(row["ours"])
        if row["feasible"]
        else (f"needs {humanise_bytes(row['needed_bytes'])}"),
        "sequences/s": ratio(row["samples_per_s"]),
    }
