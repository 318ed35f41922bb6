"""Published experiments in which a setting was changed: measured beside predicted ratios.

A table of arms (`ARM_COLUMNS`) names for each the arm it is compared with. Both are read as runs
(`nest_core.measured.training.rows`) and priced as all runs are; their ratio leaves out what both
share: the cluster, the software, how well the kernels of that model run. Settings that no cost
describes (graphs of kernels, fused kernels, binding of processes, libraries) are left out with
the reason, and so are arms that do not say what was run.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nest_core.errors import InputError
from nest_core.measured.training.predict import Prediction, predict_rows
from nest_core.measured.training.reading import MAX_ROWS, measured_figure
from nest_core.measured.training.rows import Unusable, run_of
from nest_core.measured.training.runs import Outcome, Row, Run, Unread
from nest_core.workload import load_model
from nest_core.workload.recomputation import spelled

__all__ = ["ARM_COLUMNS", "Pair", "is_pairs", "predict_pairs"]

ARM_COLUMNS = ("group", "arm", "compare_to", "changed", "model", "accelerator", "gpus", "tp", "pp")
"""A table with these is one of arms."""

PRICED = re.compile(
    r"recompute|precision|dispatcher|micro_batch|ep(\+pp\+dp)?|tp|pp_schedule|zero_stage"
    r"|ep_overlap( turned off)?|gpus \(weak scaling\)"
)
"""Column ``changed``: settings that costs describe."""

MODELS = (
    (r"llama-?3\.1-8b", "llama3.1-8b"),
    (r"llama-?3-8b$", "llama3-8b"),
    (r"llama-?2-7b", "llama2-7b"),
    (r"qwen3-30b-a3b", "qwen3-30b-a3b"),
    (r"qwen3-235b-a22b", "qwen3-235b-a22b"),
    (r"qwen3-32b$", "qwen3-32b"),
    (r"gpt-oss-120b", "gpt-oss-120b"),
    (r"deepseek-v3( |-671b|$)", "deepseek-v3"),
)
"""Column ``model``: the preset with its sizes; column ``shape`` may change the layers."""

SIZES = (
    (
        r"moonlight-16b",
        {
            "layers": "27",
            "hidden": "2048",
            "heads": "16",
            "kv_heads": "16",
            "ffn_hidden": "1408",
            "gated_mlp": "1",
            "vocab": "163840",
            "experts": "64",
            "topk": "6",
            "notes": "MLA",
        },
    ),
)
"""Models without a preset, from their published configurations. Moonlight's queries are not
projected down first, which the trace of its family does."""

PROXIES = re.compile("uccl|nvshmem", re.I)
"""Column ``dispatcher``: DeepEP through a proxy on the host, where NICs take no orders of GPUs."""

MEGATRON = re.compile(r"NVIDIA(-NeMo)?/Megatron", re.I)
DEEPSPEED = re.compile("zero-?[23]", re.I)
FSDP = re.compile(r"fsdp", re.I)


@dataclass(frozen=True, slots=True)
class Pair:
    """An arm beside the one it is compared with.

    Parameters
    ----------
    group, arm, compare_to, changed : str
        As written.
    strict : bool
        Whether quality is A and one setting was changed.
    measured, predicted : float
        Ratio of throughputs per device; above 1 this arm is faster.
    memory, predicted_memory : float or None
        Ratio of memory; None where it was not measured.
    """

    group: str
    arm: str
    compare_to: str
    changed: str
    strict: bool
    measured: float
    predicted: float
    memory: float | None
    predicted_memory: float | None


def is_pairs(columns: Sequence[str]) -> bool:
    """Whether a table's columns are those of arms."""
    return set(ARM_COLUMNS) <= {column.strip() for column in columns}


def predict_pairs(text: str, name: str) -> tuple[list[Pair], list[Unread]]:
    """Every pair of arms predicted, or listed with the reason why not.

    Parameters
    ----------
    text : str
        A CSV with the columns of arms.
    name : str
        What to call it in errors.

    Raises
    ------
    InputError
        If it is no such table.
    """
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), restkey="", restval="")
    arms: dict[tuple[str, str], dict[str, str]] = {}
    try:
        reader.fieldnames = columns = [column.strip() for column in reader.fieldnames or ()]
        if not is_pairs(columns):
            raise InputError(
                name,
                "must have the columns of arms",
                ", ".join(columns) or "empty",
                f"name at least {', '.join(ARM_COLUMNS)}",
            )
        for row in reader:
            key = row["group"], row["arm"]
            if key in arms or len(arms) == MAX_ROWS:
                raise InputError(
                    name,
                    f"must name every arm of a group once, {MAX_ROWS:,} at most",
                    "/".join(key),
                    "rename or split",
                )
            arms[key] = row
    except csv.Error as error:
        raise InputError(name, "must be a CSV file", str(error), "save it as CSV") from error
    found: dict[tuple[str, str], Prediction] = {}
    refused: dict[tuple[str, str], str] = {}
    pairs: list[Pair] = []
    left: list[Unread] = []
    for (group, arm), cells in arms.items():
        if not cells["compare_to"]:
            continue
        base = (group, cells["compare_to"])
        reason = _unpriced(cells, arms.get(base))
        for key in ((group, arm), base):
            if not reason and key not in found:
                reason = refused.get(key, "") or _price(arms[key], key, found)
                refused |= {key: reason} if reason else {}
        if not reason and _alike(found[group, arm], found[base]):
            reason = f"changes {cells['changed']} in a way that no cost describes"
        if reason:
            left.append(Unread(f"{group}/{arm}", reason))
        else:
            pairs.append(_pair(cells, found[group, arm], found[base]))
    return pairs, left


def _alike(arm: Prediction, base: Prediction) -> bool:
    """Whether costs see no difference."""
    return replace(arm.run, id=base.run.id, precision_name=base.run.precision_name) == base.run


def _unpriced(cells: Mapping[str, str], base: Mapping[str, str] | None) -> str:
    """Why a pair cannot be predicted, whatever its arms are; empty if it can."""
    if base is None:
        return f"is compared with {cells['compare_to']!r}, which its group lacks"
    if not PRICED.fullmatch(cells["changed"].strip()):
        return f"changes {cells['changed']}, which no cost describes"
    if measured_figure(cells.get("ratio_throughput", "")) is None:
        return "states no ratio of throughput"
    if any(PROXIES.search(each.get("dispatcher", "")) for each in (cells, base)):
        return "sends tokens through a proxy on the host, which has no price"
    return ""


def _price(
    cells: Mapping[str, str], key: tuple[str, str], found: dict[tuple[str, str], Prediction]
) -> str:
    """Price an arm into `found`; why that cannot be, or nothing."""
    try:
        run = _run(cells)
    except (Unusable, InputError) as error:
        return str(error)
    done, left = predict_rows([Row(run, Outcome())])
    if left:
        return left[0].reason
    found[key] = done[0]
    return ""


def _run(cells: Mapping[str, str]) -> Run:
    identity = f"{cells['group']}/{cells['arm']}"
    sizes = _sizes(cells)
    run = run_of(sizes | _settings(cells, sizes["notes"]), identity)
    modules = re.match(r"selective:\[?([a-z_,]*)\]?$", cells.get("recompute", ""))
    if modules is None:
        return run
    named = [module for module in modules[1].split(",") if module]
    return replace(run, recompute=spelled(named) if named else "none")


def _sizes(cells: Mapping[str, str]) -> dict[str, str]:
    """Columns of a run that say what model it is.

    Raises
    ------
    Unusable
        If no preset has its sizes.
    """
    name, shape = cells["model"].strip(), cells.get("shape", "")
    for pattern, sizes in SIZES:
        if re.match(pattern, name, re.I):
            return dict(sizes)
    preset = next((preset for pattern, preset in MODELS if re.match(pattern, name, re.I)), "")
    layers = re.search(r"layers=(\d+)", shape)
    if not preset or (shape not in ("", "as published") and layers is None):
        raise Unusable(f"is of a model without a preset: {name}")
    model = load_model(preset)
    return {
        "layers": layers[1] if layers else str(model.blocks),
        "hidden": str(model.hidden),
        "heads": str(model.heads),
        "kv_heads": str(model.kv_heads),
        "ffn_hidden": str(model.expert_ffn or model.ffn),
        "gated_mlp": "1",
        "vocab": str(model.vocabulary),
        "experts": str(model.experts) if model.experts > 1 else "",
        "topk": str(model.top_k) if model.experts > 1 else "",
        "notes": "",
    }


def _settings(cells: Mapping[str, str], notes: str) -> dict[str, str]:
    """Columns of a run that say how it ran; ``notes`` of its model go before those of it."""
    source, sharded = cells.get("source", ""), cells.get("zero_or_fsdp", "")
    if MEGATRON.search(source):
        sharding = "distributed_optimizer"  # what its recipes set
    elif DEEPSPEED.search(sharded):
        sharding = sharded
    elif FSDP.search(sharded) or re.search(r"torchtitan|pytorch/ao|torchao", source):
        sharding = "fsdp2"
    else:
        sharding = ""
    words = [notes, cells.get("overlap_flags", ""), cells.get("dispatcher", "")]
    if etp := cells.get("etp", ""):
        words.append(f"etp={etp}")
    return {
        "source": source,
        "model": cells["model"],
        "seq_len": cells.get("seq_len", ""),
        "accelerator": cells["accelerator"],
        "gpus": cells["gpus"],
        # Of GB200 and GB300 it counts a host's, four of the 72 that NVLink joins.
        "gpus_per_node": ""
        if cells["accelerator"].startswith("GB")
        else cells.get("gpus_per_node", ""),
        "tp": cells["tp"],
        "pp": cells["pp"],
        "vp_interleave": _virtual_stages(cells.get("vp_layout", ""), cells["pp"]),
        "cp": cells.get("cp", ""),
        "ep": cells.get("ep", ""),
        "dp": cells.get("dp", ""),
        "micro_batch": cells.get("micro_batch", ""),
        "global_batch_seqs": cells.get("global_batch", ""),
        "precision": cells.get("precision_recipe", "") or "bf16",
        "recompute": re.sub(r"selective:.*|recipe.*", "", cells.get("recompute", "")),
        "seq_parallel": "1" if cells["tp"] not in ("", "1") else "0",
        "dist_opt_or_zero": sharding,
        "notes": "; ".join(filter(None, words)),
    }


def _virtual_stages(layout: str, pp: str) -> str:
    """Per stage: as ``VPP4`` names them, or as a layout string of Megatron-LM lists them.

    Examples
    --------
    >>> _virtual_stages("VPP4, Et|(tt|)*30L", "8"), _virtual_stages("Ett|(tt|)*6mL", "4")
    ('4', '2')
    """
    if named := re.match(r"VPP(\d+)", layout):
        return named[1]
    if "|" not in layout or not pp.isdecimal():
        return ""
    again = re.findall(r"\((.*?)\)\*(\d{1,6})", layout)
    bars = layout.count("|") + sum(part.count("|") * (int(times) - 1) for part, times in again)
    return str((bars + 1) // max(int(pp), 1))


def _pair(cells: Mapping[str, str], arm: Prediction, against: Prediction) -> Pair:
    measured = measured_figure(cells["ratio_throughput"])
    assert measured is not None
    memory = measured_figure(cells.get("ratio_memory", ""))
    kind = "allocated" if cells.get("peak_allocated_GB") else "reserved"
    ours, theirs = (dict(one.counted_bytes)[kind] for one in (arm, against))
    return Pair(
        cells["group"],
        cells["arm"],
        cells["compare_to"],
        cells["changed"],
        cells.get("quality") == "A" and cells.get("purity") == "one",
        measured,
        _rate(arm) / _rate(against),
        memory,
        ours / theirs if memory is not None else None,
    )


def _rate(item: Prediction) -> float:
    """Tokens per second and device."""
    return item.run.batch * item.run.sequence / (item.seconds * item.run.devices)
