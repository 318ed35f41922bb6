"""One arm of an experiment as a run.

An arm states what its source prints. What that leaves out is filled in from where the source left
it: sizes from the model's preset or published configuration, degrees and batch from the
configuration of torchtitan that it ran (`TORCHTITAN`), or from the recipe that it names
(`RECIPES`). Nothing measured is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from nest_core.calibration.training.rows import Unusable, run_of
from nest_core.calibration.training.runs import Run
from nest_core.workload import load_model
from nest_core.workload.recomputation import spelled

__all__ = ["arm_run"]

MODELS = (
    (r"llama-?3\.1-8b", "llama3.1-8b"),
    (r"llama-?3-8b($| \(torchtitan)", "llama3-8b"),
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
    (
        r"deepseek-v3-16b",
        {
            "layers": "27",
            "hidden": "2048",
            "heads": "16",
            "kv_heads": "16",
            "ffn_hidden": "1408",
            "gated_mlp": "1",
            "vocab": "102400",
            "experts": "64",
            "topk": "6",
            "notes": "MLA",
        },
    ),
    (
        r"gpt-oss-20b",
        {
            "layers": "24",
            "hidden": "2880",
            "heads": "64",
            "kv_heads": "8",
            "ffn_hidden": "2880",
            "gated_mlp": "1",
            "vocab": "201088",
            "experts": "32",
            "topk": "4",
            "notes": "",
        },
    ),
)
"""Models without a preset, from their published configurations (torchtitan's 16B is DeepSeek-V2
Lite). Queries of Moonlight and of DeepSeek-V2 Lite are not projected down first, which the trace of
their family does."""

TORCHTITAN = (
    (
        r"llama-?3(\.1)?-8b",
        {"micro_batch": "1", "seq_len": "8192", "recompute": "selective"},
    ),
    (r"qwen3-32b", {"micro_batch": "2", "seq_len": "4096", "recompute": "full"}),
    (r"gpt-oss-20b", {"micro_batch": "1", "seq_len": "8192", "recompute": "full"}),
    (
        r"deepseek-v3",
        {"micro_batch": "4", "seq_len": "4096", "recompute": "selective"},
    ),
)
"""Column ``model``: what torchtitan's own configuration of it sets (``config_registry.py`` and
``train_configs`` of its models), for arms that leave it out. Degrees that go unnamed are 1, and
replicas take one micro-batch each where there is no pipeline."""

RECIPES = (
    (
        r"Megatron-Bridge/pull/1760",
        {
            "gpus": "64",
            "tp": "1",
            "pp": "8",
            "cp": "1",
            "ep": "8",
            "micro_batch": "1",
            "global_batch": "1024",
            "seq_len": "4096",
            "vp_layout": "VPP2",
        },
    ),
)
"""Column ``source``: what the recipe says that an arm names and leaves out: Megatron-Bridge,
``docs/performance-summary-archive.md``, 25.09 on B200."""

MEGATRON = re.compile(r"NVIDIA(-NeMo)?/Megatron", re.I)
DEEPSPEED = re.compile("zero-?[23]", re.I)
FSDP = re.compile(r"fsdp", re.I)
TITAN = re.compile(r"torchtitan|pytorch/ao|torchao", re.I)
EVERY_SECOND = re.compile(r"selective_2nd", re.I)
ZERO_BUBBLE = re.compile(r"zero-?bubble|zb-?v", re.I)


def arm_run(cells: Mapping[str, str]) -> Run:
    """The run that an arm describes.

    Raises
    ------
    Unusable
        If too little is stated, or what no plan describes.
    InputError
        If it recomputes modules that are none.
    """
    identity = f"{cells['group']}/{cells['arm']}"
    if EVERY_SECOND.search(cells.get("recompute", "")):
        raise Unusable("recomputes every second layer, which no plan states")
    if ZERO_BUBBLE.search(cells.get("vp_layout", "")):
        raise Unusable("runs a zero-bubble schedule of several virtual stages, which is left out")
    sizes = _sizes(cells)
    cells = _filled(cells)
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


def _filled(cells: Mapping[str, str]) -> Mapping[str, str]:
    """An arm with what its recipe or its framework's configuration says where a cell is empty."""
    named = [facts for pattern, facts in RECIPES if re.search(pattern, cells.get("source", ""))]
    if TITAN.search(f"{cells.get('source', '')} {cells.get('framework_version', '')}"):
        named += [facts for name, facts in TORCHTITAN if re.match(name, cells["model"], re.I)][:1]
        named.append(dict.fromkeys(("tp", "pp", "cp", "ep"), "1"))
    known = {key: value for facts in reversed(named) for key, value in facts.items()}
    filled = dict(cells) | {key: value for key, value in known.items() if not cells.get(key)}
    replicas = _whole(filled, "gpus") // (_whole(filled, "tp") * _whole(filled, "cp"))
    if named and filled["pp"] == "1" and not filled.get("global_batch") and replicas:
        filled["global_batch"] = str(replicas * _whole(filled, "micro_batch"))
    return filled


def _whole(cells: Mapping[str, str], column: str) -> int:
    """A count, for arithmetic among counts; 1 for what is none."""
    text = cells.get(column, "")
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 8 else 1


def _settings(cells: Mapping[str, str], notes: str) -> dict[str, str]:
    """Columns of a run that say how it ran; ``notes`` of its model go before those of it."""
    source, sharded = cells.get("source", ""), cells.get("zero_or_fsdp", "")
    if MEGATRON.search(source):
        sharding = "distributed_optimizer"  # what its recipes set
    elif DEEPSPEED.search(sharded):
        sharding = sharded
    elif FSDP.search(sharded) or TITAN.search(f"{source} {cells.get('framework_version', '')}"):
        sharding = "fsdp2"
    else:
        sharding = ""
    words = [notes, cells.get("overlap_flags", ""), cells.get("dispatcher", "")]
    if etp := cells.get("etp", ""):
        words.append(f"etp={etp}")
    if launched := re.search(r"torch\.compile|\beager\b", cells.get("other", "")):
        words.append(launched[0])
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
        "recompute": _recompute(cells.get("recompute", "")),
        "seq_parallel": "1" if cells["tp"] not in ("", "1") else "0",
        "dist_opt_or_zero": sharding,
        "notes": "; ".join(filter(None, words)),
    }


def _recompute(words: str) -> str:
    """In the words of a run; torchtitan's SAC is selective."""
    if re.search(r"\bSAC\b", words):
        return "selective"
    return re.sub(r"selective:.*|recipe.*", "", words)


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
