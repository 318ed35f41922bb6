"""Plans as Megatron-LM's launch scripts state them.

What people paste is a whole command: environment, ``torchrun`` with its own options, and many flags
that say nothing about the plan (`nest_core.costs.shell` has its words). Those that do are read
here; what the others say is `nest_core.costs.megatron_job`'s business. Flags that contradict one
another are refused by name, as Megatron-LM itself refuses them.

Flags and their meaning: ``megatron/training/arguments.py`` and
``megatron/core/transformer/pipeline_parallel_layer_layout.py`` of NVIDIA/Megatron-LM
(@000c4ac2, @00caa53a).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from nest_core.costs.megatron_job import REQUIRED, JobFlags, hidden_traffic, read_job
from nest_core.costs.shell import ends_values, may_hold_flags, script_words
from nest_core.documents.errors import InputError, require
from nest_core.workload.recomputation import MODULES, by_method, spelled

__all__ = ["SHARDING", "Flags", "read_flags"]

_NUMBERS = {
    "--tensor-model-parallel-size": "tp",
    "--pipeline-model-parallel-size": "pp",
    "--context-parallel-size": "cp",
    "--expert-model-parallel-size": "ep",
    "--expert-tensor-parallel-size": "etp",
    "--micro-batch-size": "micro_batch",
    "--data-parallel-size": "dp",
    "--virtual-pipeline-model-parallel-size": "interleave",
    "--num-virtual-stages-per-pipeline-rank": "interleave",
    "--num-layers-per-virtual-pipeline-stage": "virtual_stage_blocks",
    "--decoder-first-pipeline-num-layers": "first_blocks",
    "--decoder-last-pipeline-num-layers": "last_blocks",
    "--recompute-num-layers": "recompute_layers",
    "--num-distributed-optimizer-instances": "instances",
    "--cpu-offloading-num-layers": "offload_layers",
    "--world-size": "world",
    "--nnodes": "nodes",
    "--nproc-per-node": "per_node",
}
_WORDS = {
    "--recompute-granularity": "granularity",
    "--recompute-method": "method",
    "--data-parallel-sharding-strategy": "sharding",
    "--optimizer-offload-fraction": "optimizer_share",
    "--pipeline-model-parallel-layout": "layout",
}
_SWITCHES = {
    "--sequence-parallel": "sp",
    "--use-distributed-optimizer": "distributed",
    "--use-torch-fsdp2": "fsdp",
    "--recompute-activations": "selective",
    "--optimizer-cpu-offload": "optimizer_away",
    "--use-tp-pp-dp-mapping": "pipeline_inside",
    "--account-for-embedding-in-pipeline-split": "count_embedding",
    "--account-for-loss-in-pipeline-split": "count_loss",
}
_SPELLED = {name: flag for flag, name in (_NUMBERS | _WORDS | _SWITCHES).items()}
_MODULES = "--recompute-modules"
SHARDING = ("no_shard", "optim", "optim_grads", "optim_grads_params")
"""What data-parallel ranks share, by ZeRO stage."""
_MOST_PARTS = 100_000


@dataclass(slots=True)
class Flags:
    """What a text says: a plan's fields, the job, which traffic hides, flags without a price, and
    what contradicts."""

    job: JobFlags
    hidden: dict[str, bool]
    fields: dict[str, Any] = field(default_factory=dict)
    unpriced: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_flags(text: str, layers: int, devices: int) -> Flags:
    """Return the plan behind a launch command, and what else it says.

    Parameters
    ----------
    layers, devices : int
        Of the problem.

    Raises
    ------
    InputError
        For a flag without its value, and for flags that contradict one another.
    """
    words, conditional = script_words(text)
    settings, others, unset = _told(words)
    stated = {
        _SPELLED[name][2:].replace("-", "_"): str(value) for name, value in settings.items()
    } | {flag[2:].replace("-", "_"): " ".join(values) or "True" for flag, values in others.items()}
    is_complete = stated.keys() >= REQUIRED and not unset
    modules = others.pop(_MODULES, ())
    flags = Flags(
        read_job(others, is_complete=is_complete),
        hidden=hidden_traffic(stated, is_complete=is_complete),
        unpriced=unset,
    )
    if taken := [flag for flag in conditional if flag not in flags.job.harmless]:
        flags.notes.append(f"Taken as given, though under a condition: {', '.join(taken)}.")
    _recomputation(settings, modules, flags)
    _sharding(settings, flags)
    for name in ("tp", "pp", "cp", "ep", "etp", "micro_batch"):
        if name in settings:
            flags.fields[name] = settings[name]
    tp, pp = flags.fields.get("tp", 1), flags.fields.get("pp", 1)
    if settings.get("sp") and tp == 1:
        flags.notes.append("--sequence-parallel does nothing at tensor-parallel size 1.")
    elif settings.get("sp"):
        flags.fields["sp"] = True
    if settings.get("pipeline_inside"):
        flags.fields["order"] = ("tp", "cp", "pp", "dp")
    virtual_stages = _virtual_stages(settings, pp, layers)
    if "interleave" in settings:
        flags.fields["interleave"] = settings["interleave"]
    if virtual_stages:
        flags.fields["interleave"] = len(virtual_stages) // pp
        flags.fields["cuts"] = _cuts(virtual_stages, layers)
    _by_method(settings, flags.fields, virtual_stages, layers)
    _offload(settings, flags, layers)
    world = _world(settings, devices, flags.notes)
    if "dp" in settings:
        flags.fields["dp"] = settings["dp"]
    else:
        flags.fields["dp"] = max(1, world // (tp * pp * flags.fields.get("cp", 1)))
    _instances(settings, flags)
    flags.unpriced += flags.job.unpriced
    return flags


def _told(
    words: Sequence[str],
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]], list[str]]:
    """Return what the plan's flags say, by our names, the values of all others, and unset
    variables.
    """
    settings: dict[str, Any] = {}
    others: dict[str, tuple[str, ...]] = {}
    unset: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        flag, equals, given = word.partition("=")
        if not flag.startswith("--"):  # the program's name, or a word that no flag asks for
            if may_hold_flags(word):
                unset.append(word)
            continue
        name = flag.replace("_", "-")
        if name in _SWITCHES:
            require(
                not equals,
                "plan",
                "must give a switch no value",
                f"{flag}={given}",
                f"write {flag}",
            )
            _tell(settings, _SWITCHES[name], True, flag)
            continue
        values = [given] if equals else []
        while queue and not equals and not ends_values(queue[0]):
            values.append(queue.pop(0))
        if name not in _NUMBERS and name not in _WORDS:
            if others.setdefault(name, tuple(values)) != tuple(values):
                raise InputError(flag, "must be given once", " ".join(values), "drop one of them")
            continue
        require(values, "plan", "must give every flag its value", flag, "add it")
        if name in _NUMBERS:
            _tell(settings, _NUMBERS[name], _number(flag, values[0]), flag)
        else:
            _tell(settings, _WORDS[name], values[0], flag)
    return settings, others, unset


def _tell(settings: dict[str, Any], name: str, value: Any, flag: str) -> None:
    require(
        settings.setdefault(name, value) == value,
        flag,
        f"must agree with {_SPELLED[name]} {settings[name]} before it",
        value,
        "drop one of the two",
    )


def _number(flag: str, text: str) -> int:
    require(
        text.isascii() and text.isdecimal() and int(text[:9]) > 0 and len(text) < 9,
        flag,
        "must be a whole number from 1",
        text,
        "write the number in place of the variable" if "$" in text else "correct it",
    )
    return int(text)


def _recomputation(settings: Mapping[str, Any], modules: tuple[str, ...], flags: Flags) -> None:
    granularity = settings.get("granularity", "selective" if settings.get("selective") else None)
    if settings.get("selective") and granularity != "selective":
        raise _contradiction("--recompute-activations", f"--recompute-granularity {granularity}")
    require(
        granularity in (None, "selective", "full"),
        "--recompute-granularity",
        "must be selective or full",
        granularity,
        "pick one",
    )
    if granularity == "selective" and "method" in settings:
        raise _contradiction("--recompute-method", "selective recomputation")
    require(
        settings.get("method") in (None, "uniform", "block"),
        "--recompute-method",
        "must be uniform or block",
        settings.get("method"),
        "pick one",
    )
    if "method" in settings and granularity is None:
        flags.notes.append("--recompute-method does nothing without --recompute-granularity full.")
    if modules and granularity == "selective":
        recomputed = dict.fromkeys(name for name in modules if name in MODULES)
        granularity = spelled(recomputed) if recomputed else "none"
        if not set(modules) <= set(MODULES):
            flags.unpriced.append(" ".join((_MODULES, *modules[:3])))
    elif modules:
        flags.notes.append(f"{_MODULES} does nothing without selective recomputation.")
    if granularity:
        flags.fields["recompute"] = granularity


def _by_method(
    settings: Mapping[str, Any], fields: dict[str, Any], virtual_stages: Sequence[int], layers: int
) -> None:
    """Return what full recomputation does by which method; all layers of a stage are no more than
    all.
    """
    if fields.get("recompute") != "full":
        return
    parts = fields.get("pp", 1) * fields.get("interleave", 1)
    most = max(virtual_stages, default=-(-(layers - 2) // parts))
    method, count = (
        settings.get("method", "uniform"),
        min(settings.get("recompute_layers", 1), most),
    )
    if method == "uniform" or count < most:
        fields["recompute"] = by_method(method, count)


def _offload(settings: Mapping[str, Any], flags: Flags, layers: int) -> None:
    """Layers whose activations are on the host, and the optimizer's share, all by default."""
    shares: dict[str, Any] = {}
    if "offload_layers" in settings:
        shares["activations"] = min(1.0, settings["offload_layers"] / (layers - 2))
    if settings.get("optimizer_away"):
        shares["optimizer"] = settings.get("optimizer_share", 1.0)
    elif "optimizer_share" in settings:
        flags.notes.append("--optimizer-offload-fraction does nothing alone.")
    if shares:
        flags.fields["offload"] = shares


def _sharding(settings: Mapping[str, Any], flags: Flags) -> None:
    if settings.get("fsdp") and settings.get("distributed"):
        raise _contradiction("--use-torch-fsdp2", "--use-distributed-optimizer")
    if settings.get("fsdp") and max(settings.get("pp", 1), settings.get("ep", 1)) > 1:
        flags.notes.append("Megatron-LM refuses --use-torch-fsdp2 with pipeline or expert stages.")
    require(
        settings.get("sharding") in (None, *SHARDING),
        "--data-parallel-sharding-strategy",
        "must be one of Megatron-LM's",
        settings.get("sharding"),
        "pick " + ", ".join(SHARDING),
    )
    zero = 3 if settings.get("fsdp") else 1 if settings.get("distributed") else 0
    zero = max(zero, SHARDING.index(settings.get("sharding", "no_shard")))
    if zero:
        flags.fields["zero"] = zero


def _instances(settings: Mapping[str, Any], flags: Flags) -> None:
    """Of the distributed optimizer: each shards over an equal part of dp x cp."""
    instances = settings.get("instances", 1)
    sharers = flags.fields["dp"] * flags.fields.get("cp", 1)
    if instances == 1:
        return
    require(
        sharers % instances == 0,
        _SPELLED["instances"],
        f"must divide dp x cp = {sharers}",
        instances,
        "correct it",
    )
    if "zero" not in flags.fields:
        flags.notes.append(f"{_SPELLED['instances']} does nothing without a sharded optimizer.")
    elif instances < sharers:
        flags.fields["zero_group"] = sharers // instances
    else:
        flags.notes.append(f"{_SPELLED['instances']} {instances} leaves one rank each: ZeRO 0.")
        flags.fields["zero"] = 0


def _world(settings: Mapping[str, Any], devices: int, notes: list[str]) -> int:
    """Devices that the command starts on; the fabric's where it does not say."""
    world = settings.get("world", settings.get("nodes", 0) * settings.get("per_node", 0))
    if not world:
        return devices
    if world != devices:
        notes.append(f"The command starts {world:,} ranks; the fabric has {devices:,} devices.")
    return int(world)


def _virtual_stages(settings: Mapping[str, Any], pp: int, layers: int) -> list[int]:
    """Layers of every virtual stage, ends included; empty: cut as evenly as they go."""
    ways = [name for name in ("interleave", "virtual_stage_blocks", "layout") if name in settings]
    if len(ways) > 1:
        raise _contradiction(_SPELLED[ways[0]], _SPELLED[ways[1]])
    ends = [name for name in ("first_blocks", "last_blocks") if name in settings]
    if "layout" in settings:
        if ends:
            raise _contradiction(_SPELLED["layout"], _SPELLED[ends[0]])
        return _layout(settings["layout"], pp, layers)
    if "virtual_stage_blocks" in settings and ends:
        raise _contradiction(_SPELLED["virtual_stage_blocks"], _SPELLED[ends[0]])
    counted = [name for name in ("count_embedding", "count_loss") if name in settings]
    if ends and counted:
        raise _contradiction(_SPELLED[ends[0]], _SPELLED[counted[0]])
    blocks = layers - 2
    if ends:
        return _ends(settings, pp, blocks)
    if not counted and "virtual_stage_blocks" not in settings:
        return []
    total = blocks + len(counted)
    if "virtual_stage_blocks" in settings:
        size = settings["virtual_stage_blocks"]
        require(
            total % (pp * size) == 0,
            "--num-layers-per-virtual-pipeline-stage",
            f"times pp = {pp} must divide the model's {total} blocks"
            + (" and counted ends" if counted else ""),
            size,
            "choose a divisor",
        )
        parts = total // size
    else:
        parts = pp * settings.get("interleave", 1)
        require(
            total % parts == 0,
            _SPELLED[counted[0]],
            f"must make {parts} stages divide the counted layers",
            total,
            "choose another pipeline size",
        )
    virtual_stages = [total // parts] * parts
    virtual_stages[0] += "count_embedding" not in settings
    virtual_stages[-1] += "count_loss" not in settings
    return virtual_stages


def _ends(settings: Mapping[str, Any], pp: int, blocks: int) -> list[int]:
    """First and last stage as told, the rest evenly; every stage's virtual stages are equal."""
    virtual = settings.get("interleave", 1)
    sizes = {0: settings.get("first_blocks"), pp - 1: settings.get("last_blocks")}
    fixed = {stage: size for stage, size in sizes.items() if size is not None}
    rest, open_stages = blocks - sum(fixed.values()), pp - len(fixed)
    flags = " and ".join(
        _SPELLED[name] for name in ("first_blocks", "last_blocks") if name in settings
    )
    require(
        pp >= 2 and rest >= 0 and (not (rest % open_stages if open_stages else rest)),
        flags,
        f"must leave the other {open_stages} stages equal parts of {blocks} blocks",
        ", ".join(map(str, fixed.values())),
        "change them or the pipeline size",
    )
    stages = [fixed.get(stage, rest // max(1, open_stages)) for stage in range(pp)]
    require(
        all(size % virtual == 0 for size in stages),
        "--num-virtual-stages-per-pipeline-rank",
        "must divide the blocks of every stage",
        virtual,
        "change it or the ends",
    )
    virtual_stages = [size // virtual for _ in range(virtual) for size in stages]
    virtual_stages[0] += 1
    virtual_stages[-1] += 1
    return virtual_stages


def _layout(text: str, pp: int, layers: int) -> list[int]:
    """Virtual stages of a custom pipeline layout such as ``Et*3|(tt|)*29,L``."""
    flag = "--pipeline-model-parallel-layout"
    plain = re.sub(r"[,\s'\"]", "", text)
    for repeated in (r"\(([^()]*)\)\*(\d{1,5})", r"([EtmL|])\*(\d{1,5})"):
        plain = re.sub(
            repeated,
            lambda hit: hit[1] * min(int(hit[2]), _MOST_PARTS // max(1, len(hit[1]))),
            plain,
        )
    require("m" not in plain, flag, "must hold no multi-token prediction", text, "leave m out")
    virtual_stages = plain.split("|")
    require(
        len(plain) <= _MOST_PARTS and re.fullmatch("Et*L", plain.replace("|", "")),
        flag,
        "must name the embedding E, blocks t and the loss L in their order",
        text,
        "write it as Megatron-LM does",
    )
    require(
        plain.count("t") == layers - 2,
        flag,
        f"must hold the model's {layers - 2} blocks",
        plain.count("t"),
        "correct it",
    )
    require(
        len(virtual_stages) % pp == 0,
        flag,
        f"must have a multiple of pp = {pp} parts",
        len(virtual_stages),
        "correct it",
    )
    require(
        all(virtual_stages),
        flag,
        "must leave a layer for every part",
        text,
        "move a layer into the empty one",
    )
    return [len(virtual_stage) for virtual_stage in virtual_stages]


def _cuts(virtual_stages: Sequence[int], layers: int) -> tuple[int, ...]:
    cuts = (0, *accumulate(virtual_stages))
    require(
        cuts[-1] == layers and (not any(size < 1 for size in virtual_stages)),
        "plan",
        f"must leave layers for all {len(virtual_stages)} stages",
        list(virtual_stages),
        "use fewer stages",
    )
    return cuts


def _contradiction(first: str, second: str) -> InputError:
    return InputError(
        "plan", f"must give either {first} or {second}", "both", "drop one of the two"
    )
