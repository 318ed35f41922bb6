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
from nest_core.documents.presets import preset_names
from nest_core.workload import load_model
from nest_core.workload.offload import NO_OFFLOAD, Offload
from nest_core.workload.recomputation import by_method, spelled

__all__ = ["arm_run"]

REST = re.compile(
    r"($|[ ,(]|[- ](671b|109b|17b|instruct|base|it|hf|dense)\b)(?!.*\b(lite|mini|next|vl|omni)\b)",
    re.I,
)
"""Column ``model``: what may follow a preset's name; column ``shape`` may change its sizes."""

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
            "recompute": "none",
        },
    ),
    (r"Megatron-Bridge/issues/4439", {"recompute": "none"}),
)
"""Column ``source``: what the recipe says that an arm names and leaves out: Megatron-Bridge,
``docs/performance-summary-archive.md``, 25.09 on B200; Qwen3's recipes recompute nothing
(``scripts/performance/configs`` at 01b2977)."""

SHARDING = (
    (r"megatron-?fsdp|m-?fsdp", "megatron_fsdp"),
    (r"zero-?([123])", "zero-{}"),
    (r"hsdp|fsdp|fully.?shard", "fsdp2"),
    (r"dist(ributed)?[-_ ]?opt", "distributed_optimizer"),
    (r"^(ddp|none)\b", "none"),
)
"""Column ``zero_or_fsdp``, in the words of a run."""

COPIES = re.compile(
    r"(?:instances|replicates?|replicas)[ =:x]*(\d{1,6})"
    r"|\b(\d{1,6}) ?(?:instances|replicas|copies)",
    re.I,
)
SHARDS = re.compile(r"(?:hsdp|shards?(?:_degree)?|mics\w*)[ =:]*(?:\d{1,6} ?x ?)?(\d{1,6})", re.I)
"""Words of hybrid sharding: how many copies of the shards, or how many shards a copy has
(``HSDP 2x8``: two copies of eight)."""

HIDDEN_TENSORS = re.compile(r"async[-_ ]?(?:tp|tensor)|tp_comm_overlap|userbuffers", re.I)
MEGATRON = re.compile(r"NVIDIA(-NeMo)?/Megatron", re.I)
TITAN = re.compile(r"torchtitan|pytorch/ao|torchao", re.I)
EVERY_NTH = re.compile(r"(?:every[-_ ]|selective_)(other|second|third|[2-9](?:nd|rd|th))", re.I)
PARTLY = re.compile(r"(linears?|grouped gemm|grouped_mm|moe|experts)( only)?$", re.I)
BOTH = re.compile(r"linears? *\+ *grouped", re.I)
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
    products = cells.get("precision_recipe", "")
    if PARTLY.search(products) and not BOTH.search(products):
        raise Unusable("runs some products in 8 bits and others in 16, which no plan states")
    if ZERO_BUBBLE.search(cells.get("vp_layout", "")):
        raise Unusable("runs a zero-bubble schedule of several virtual stages, which is left out")
    sizes = _sizes(cells)
    cells = _filled(cells)
    run = run_of(sizes | _settings(cells, sizes["notes"]), identity)
    words = cells.get("recompute", "")
    if modules := re.match(r"selective:\[?([a-z_,]*)\]?$", words):
        named = [module for module in modules[1].split(",") if module]
        run = replace(run, recompute=spelled(named) if named else "none")
    elif share := EVERY_NTH.search(words):  # as long and as large as so many in a row
        nth = {"other": 2, "second": 2, "third": 3}.get(share[1]) or int(share[1][0])
        stages = run.point.pp * run.point.interleave
        run = replace(run, recompute=by_method("block", max(1, run.layers // stages // nth)))
    elif method := re.match(r"full\W(uniform|block)\W(?:n=)?([1-9]\d{0,3})$", words):
        run = replace(run, recompute=by_method(method[1], int(method[2])))
    offload = _offload(cells.get("offload", ""), run.layers)
    if offload != NO_OFFLOAD:
        run = replace(run, facts=(*run.facts, ("offload", offload.spelled)))
    sharers = run.point.sharers
    group = _shard_group(f"{cells.get('zero_or_fsdp', '')}; {cells.get('other', '')}", sharers)
    return replace(run, point=replace(run.point, zero_group=group if run.point.zero else 0))


def _shard_group(words: str, sharers: int) -> int:
    """Ranks that hold one copy of what is sharded; 0: all of them.

    Examples
    --------
    >>> _shard_group("HSDP 2x8", 16), _shard_group("dist opt, 4 instances", 16)
    (8, 4)
    >>> _shard_group("FSDP2 8", 8), _shard_group("HSDP, dp_replicate=2", 16)
    (0, 8)
    """
    copies, shards = COPIES.search(words), SHARDS.search(words)
    if copies:
        group = sharers // max(1, int(copies[1] or copies[2]))
    else:
        group = int(shards[1]) if shards else 0
    return group if 1 < group < sharers else 0


def _offload(words: str, layers: int) -> Offload:
    """What leaves the device, in the words of sources; all of it where no share is named.

    Raises
    ------
    Unusable
        If what is named is neither activations nor optimizer states.

    Examples
    --------
    >>> _offload("optimizer CPU offload", 32).spelled
    'optimizer:1'
    >>> _offload("cpu_offloading_num_layers=8", 32).spelled, _offload("activations 50%", 32).spelled
    ('activations:0.25', 'activations:0.5')
    """
    if not words or re.match(r"(none|no|off)\b", words, re.I):
        return NO_OFFLOAD
    share = 1.0
    if stated := re.search(r"(\d+(?:\.\d+)?) ?%|fraction\W*(\d?\.?\d+)", words, re.I):
        share = float(stated[1]) / 100.0 if stated[1] else float(stated[2])
    if counted := re.search(r"num_layers\W*(\d{1,4})|(\d{1,4}) (?:of \d+ )?layers", words, re.I):
        share = int(counted[1] or counted[2]) / layers
    held = {
        "activations": re.search(r"activation|act\b|num_layers|layers", words, re.I),
        "optimizer": re.search(r"optimi[sz]er|\badam", words, re.I),
    }
    named = {name: min(share, 1.0) for name, found in held.items() if found}
    if not named:
        raise Unusable(f"offloads {words}, which no cost describes")
    return Offload(**named)


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
    preset = _preset(name)
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


def _preset(name: str) -> str:
    """The preset that a model's name begins with, however it is spelled; the longest, or none.

    Examples
    --------
    >>> _preset("Llama-3-8B (torchtitan PR 778)"), _preset("Llama4-Scout 17Bx16E, 2 layers")
    ('llama3-8b', 'llama4-scout')
    >>> _preset("DeepSeek-V3-671B"), _preset("DeepSeek-V2-Lite 16B"), _preset("Qwen3-320B")
    ('deepseek-v3', '', '')
    """
    found = []
    for preset in preset_names("models"):
        spelled_so = r"[-_ ]?".join(map(re.escape, re.findall(r"[a-z]+|[\d.]+", preset)))
        named = re.match(spelled_so, name, re.I)
        if named and REST.match(name[named.end() :]):
            found.append(preset)
    return max(found, key=len, default="")


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
    usual = "fsdp2" if TITAN.search(f"{source} {cells.get('framework_version', '')}") else ""
    if MEGATRON.search(source):
        usual = "distributed_optimizer"  # what its recipes set
    sharding = next(
        (
            spelling.format(*found.groups())
            for pattern, spelling in SHARDING
            if (found := re.search(pattern, sharded, re.I))
        ),
        usual,
    )
    overlap = f"{cells.get('overlap_flags', '')} {cells.get('other', '')}"
    words = [notes, cells.get("overlap_flags", ""), cells.get("dispatcher", "")]
    words += ["async tp"] * bool(HIDDEN_TENSORS.search(overlap))
    words.append(f"graphs: {cells.get('cuda_graphs', '')}")
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
        # torchao's table says "float8/mx" of all recipes, whichever of both they are.
        "precision": re.sub(r"^float8/mx (?!mx)", "float8 ", cells.get("precision_recipe", ""))
        or "bf16",
        "recompute": _recompute(cells.get("recompute", "")),
        "seq_parallel": "1" if cells["tp"] not in ("", "1") else "0",
        "dist_opt_or_zero": sharding,
        "notes": "; ".join(filter(None, words)),
    }


def _recompute(words: str) -> str:
    """In the words of a run; torchtitan's SAC is selective."""
    if re.search(r"\bSAC\b", words):
        return "selective"
    if EVERY_NTH.search(words):
        return "full"
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
