"""The accelerator and the fabric of a run.

`MACHINES` names the preset behind an accelerator as sources write it, and what a node of it
usually has; a row's own columns come first. The fabric is two levels: nodes whose devices reach
one another over links of their own, and above them a network that every device enters through a
port of its own and that blocks nowhere (rails). A job takes the fewest nodes that hold its
groups whole, evenly filled.

The model that a row of a table describes.

The columns give the sizes; the family says the rest (norm, activation, positions) and follows
from the model's name, else from what the notes state, else from the columns alone. Sizes that no
column holds (ranks of latent attention, shared experts, the width of a head) come from the notes,
else from a preset of the same structure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from nest_core.calibration.training.runs import Run
from nest_core.documents import (
    GB,
    InputError,
    kept_per_edition,
    load_toml,
    preset_names,
    preset_path,
    require,
)
from nest_core.fabric import Fabric, Hierarchical, Tier
from nest_core.hardware import Accelerator, load_accelerator
from nest_core.network import Network, collapse
from nest_core.workload import Model

__all__ = [
    "BY_FACT",
    "BY_NAME",
    "MACHINES",
    "PUBLISHED",
    "TIED",
    "Machine",
    "accelerator_of",
    "fabric_of",
    "family_of",
    "machine_of",
    "model_of",
    "network_of",
]

NODE_LATENCY_S = 1e-6
NETWORK_LATENCY_S = 5e-6
"""One way, all hops; what software adds is in the curves of ``presets/collectives``."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What an accelerator is usually built into.

    Parameters
    ----------
    name : str
    preset : str
    per_node : int
    intra_Bps, inter_Bps : float
        Per device and direction.
    """

    name: str
    preset: str
    per_node: int
    intra_Bps: float
    inter_Bps: float


MACHINES: tuple[tuple[str, Machine], ...] = (
    (r"v100", Machine("V100", "v100-32gb", 8, 150 * GB, 12.5 * GB)),
    (r"a800", Machine("A100", "a100-80gb", 8, 200 * GB, 25 * GB)),
    (r"a100.*40", Machine("A100", "a100-40gb", 8, 300 * GB, 25 * GB)),
    (r"a100", Machine("A100", "a100-80gb", 8, 300 * GB, 25 * GB)),
    (r"h800", Machine("H100", "h100-80gb", 8, 200 * GB, 50 * GB)),
    (r"h100.*hbm2e", Machine("H100", "h100-96gb-hbm2e", 8, 450 * GB, 50 * GB)),
    (r"h100", Machine("H100", "h100-80gb", 8, 450 * GB, 50 * GB)),
    (r"(?<!g)h200", Machine("H200", "h200-141gb", 8, 450 * GB, 50 * GB)),
    (r"gb300", Machine("GB300", "gb300-288gb", 72, 900 * GB, 100 * GB)),
    (r"gb200", Machine("GB200", "gb200-186gb", 72, 900 * GB, 50 * GB)),
    (r"b300", Machine("B300", "b300-288gb", 8, 900 * GB, 100 * GB)),
    (r"b200", Machine("B200", "b200-180gb", 8, 900 * GB, 50 * GB)),
    (r"mi300x", Machine("MI300X", "mi300x-192gb", 8, 448 * GB, 50 * GB)),
    (r"mi355x", Machine("MI355X", "mi355x-288gb", 8, 535.5 * GB, 50 * GB)),
    (r"tpu ?v4", Machine("TPU v4", "tpu-v4", 4096, 270 * GB, 6.25 * GB)),
    (r"tpu ?v5e", Machine("TPU v5e", "tpu-v5e", 256, 200 * GB, 3.125 * GB)),
    (r"tpu ?v5p", Machine("TPU v5p", "tpu-v5p", 8960, 600 * GB, 6.25 * GB)),
    (r"tpu ?v6e", Machine("TPU v6e", "tpu-v6e", 256, 400 * GB, 12.5 * GB)),
    (r"gaudi ?2", Machine("Gaudi 2", "gaudi2-96gb", 8, 262.5 * GB, 37.5 * GB)),
    (r"gaudi ?3", Machine("Gaudi 3", "gaudi3-128gb", 8, 525 * GB, 75 * GB)),
    (r"trainium ?2", Machine("Trainium 2", "trainium2-96gb", 16, 640 * GB, 25 * GB)),
)
"""Patterns in column ``accelerator``, ignoring case, in order.

Link and port rates: NVIDIA's and Google's data sheets as tabled in stas00/ml-engineering@744d01e
and the TPU pages of docs.cloud.google.com; a TPU slice counts as one node.
"""


def machine_of(name: str) -> Machine:
    """Return the machine behind an accelerator's name.

    Raises
    ------
    InputError
        If none of `MACHINES` is meant, or its preset is not there.
    """
    machine = next((entry for pattern, entry in MACHINES if re.search(pattern, name, re.I)), None)
    if machine and machine.preset in preset_names("accelerators"):
        return machine
    raise InputError("accelerator", "must have a preset", name, "add one to presets/accelerators")


@kept_per_edition(64)
def accelerator_of(name: str) -> Accelerator:
    """Return the device behind an accelerator's name."""
    return load_accelerator(machine_of(name).preset)


def fabric_of(run: Run) -> Hierarchical:
    """Return nodes of a run's devices, and the network between them."""
    machine = machine_of(run.accelerator)
    sizes = _node_sizes(run.devices, run.per_node or machine.per_node, _together(run))
    inside = Tier(
        "node",
        sizes[0],
        run.intra_Bps or machine.intra_Bps,
        NODE_LATENCY_S,
        group_sizes=() if sizes[0] == sizes[-1] else sizes,
    )
    if len(sizes) == 1:
        return Hierarchical("node", (inside,))
    outside = Tier("network", len(sizes), run.inter_Bps or machine.inter_Bps, NETWORK_LATENCY_S)
    return Hierarchical("cluster", (inside, outside))


def _together(run: Run) -> tuple[int, ...]:
    """Return devices side by side that a node had better hold whole.

    Tensor groups, then wider ones.
    """
    point = run.point
    inner = point.tp * point.cp
    ahead = point.order.index("pp") < point.order.index("dp")
    return point.tp, inner, point.tp * max(point.cp, point.ep), inner * point.pp if ahead else inner


def _node_sizes(devices: int, per_node: int, together: Sequence[int] = (1,)) -> tuple[int, ...]:
    """Return devices of every node: the fewest nodes that hold groups whole, as evenly as it goes.

    Parameters
    ----------
    together : sequence of int
        Sizes of groups. The first is held whole, or where no node holds it the largest part that
        divides it; of the others the largest for which that takes no more nodes.

    Examples
    --------
    A job on 256 devices of racks of 72 takes 64 in each of four racks; one on 1,024 in groups of 16
    takes 64 in each of 16, not 68 or 69 in each of 15.

    >>> _node_sizes(256, 72), _node_sizes(20, 8), set(_node_sizes(1024, 72, (16,)))
    ((64, 64, 64, 64), (7, 7, 6), {64})
    """
    first = next(
        size for size in range(min(per_node, together[0]), 0, -1) if together[0] % size == 0
    )
    wider = [size for size in together if size <= per_node and devices % size == 0]

    def nodes(group: int) -> int:
        return -(-(devices // group) // (per_node // group))

    group = max([first, *(size for size in wider if nodes(size) <= nodes(first))])
    per_node_groups, more = divmod(devices // group, nodes(group))
    return ((per_node_groups + 1) * group,) * more + (per_node_groups * group,) * (
        nodes(group) - more
    )


@lru_cache(maxsize=256)
def network_of(fabric: Fabric) -> Network:
    """Return a fabric's levels; runs on the same fabric share them."""
    return collapse(fabric)


BY_NAME = (
    (r"deepseek-?v2", "deepseek_v2"),
    (r"deepseek-?v3|kimi-?k2|moonlight", "deepseek_v3"),
    (r"gpt-?oss", "gpt_oss"),
    (r"grok", "grok1"),
    (r"bloom", "bloom"),
    (r"\bmpt", "mpt"),
    (r"nemotron", "nemotron"),
    (r"qwen3-.*-a\d+b", "qwen3_moe"),
    (r"qwen3", "qwen3"),
    (r"qwen", "qwen2"),
    (r"\bbert", "bert"),
    (r"llama|mistral", "llama"),
)
"""Patterns in the model's name, ignoring case, and the family."""

BY_FACT = (
    ("attention kind", "mla", "deepseek_v3"),
    ("position", "alibi", "mpt"),
    ("activation", "relu2", "nemotron"),
)
"""What the notes state, and the family that has it, for names that say nothing."""

PUBLISHED = (
    (r"deepseek-?v2", {"ffn": 12_288, "shared_ffn": 3_072, "dense_blocks": 1}),
    (r"kimi-?k2", {"ffn": 18_432, "shared_ffn": 2_048, "dense_blocks": 1}),
    (r"moonlight", {"ffn": 11_264, "shared_ffn": 2_816, "dense_blocks": 1}),
    (r"deepseek-?v3-16b", {"ffn": 10_944, "shared_ffn": 2_816, "dense_blocks": 1}),
)
"""Sizes that no column holds of models without a preset, from their published configurations."""

TIED = ("gpt", "mpt", "bloom", "bert", "grok1")
"""Families whose head shares the embedding's weights; others do where a preset says so."""

LEARNED = ("gpt", "bert")
"""Families with learned position embeddings, one per token of the sequence."""


@kept_per_edition(1)
def _presets() -> tuple[dict[str, object], ...]:
    names = preset_names("models")
    return tuple(load_toml(preset_path("models", f"{name}.toml")) for name in names)


@kept_per_edition(1)
def _families() -> frozenset[str]:
    return frozenset(path.stem for path in preset_path("traces").glob("*.json"))


def family_of(run: Run) -> str:
    """Return the trace that a run's model uses.

    Raises
    ------
    InputError
        If the notes state a block that no trace has.
    """
    traced = _families()
    require(
        run.fact("attention kind") != "parallel",
        "model",
        "must have attention before the MLP",
        run.model,
        "trace one of its own",
    )
    candidates = [
        *(family for pattern, family in BY_NAME if re.search(pattern, run.model, re.I)),
        *(family for fact, word, family in BY_FACT if run.fact(fact) == word),
        "mixtral" if run.experts > 1 else "llama" if run.gated else "gpt",
    ]
    return next((family for family in candidates if family in traced), candidates[-1])


def model_of(run: Run) -> Model:
    """Return the architecture of a run.

    Raises
    ------
    InputError
        If the row's sizes contradict one another.
    """
    family = family_of(run)
    preset = _nearest(run, family)
    latent = int(str(preset.get("kv_rank", 0))) > 0
    width = run.head_dim or _size(preset, "head_dim") or run.hidden // run.heads
    require(
        not (not run.head_dim and "head_dim" not in preset and run.hidden % run.heads),
        "heads",
        f"must divide hidden = {run.hidden}",
        run.heads,
        "state head_dim in notes",
    )
    dense = min(run.dense_layers or _size(preset, "dense_blocks"), run.layers - 1)
    mixture = run.experts > 1
    groups, top_groups = _groups(preset, run.experts)
    return Model(
        name=run.model,
        family=family,
        blocks=run.layers,
        hidden=run.hidden,
        heads=run.heads,
        kv_heads=run.heads if latent else run.kv_heads,
        head_dim=width,
        ffn=(_size(preset, "ffn") if dense else 0) if mixture else run.ffn,
        vocabulary=run.vocabulary,
        positions=run.sequence if family in LEARNED else 0,
        tied=run.fact("tied") == "yes" or bool(preset.get("tied", family in TIED)),
        window=_size(preset, "window"),
        full_every=_size(preset, "full_every"),
        experts=run.experts,
        top_k=run.top_k,
        expert_ffn=run.ffn if mixture else 0,
        shared_ffn=_size(preset, "shared_ffn") if mixture else 0,
        dense_blocks=dense if mixture else 0,
        q_rank=_size(preset, "q_rank"),
        kv_rank=_size(preset, "kv_rank"),
        rope_dim=_size(preset, "rope_dim"),
        value_dim=_size(preset, "value_dim"),
        expert_groups=groups,
        top_groups=top_groups,
        source=run.source,
    )


def _groups(preset: dict[str, object], experts: int) -> tuple[int, int]:
    """Return groups that tokens choose experts from, of a preset with as many experts; else one."""
    same = preset.get("experts") == experts
    return (
        (_size(preset, "expert_groups") or 1, _size(preset, "top_groups") or 1) if same else (1, 1)
    )


def _size(preset: dict[str, object], field: str) -> int:
    value = preset.get(field, 0)
    return value if isinstance(value, int) else 0


def _nearest(run: Run, family: str) -> dict[str, object]:
    """Return the preset of the family with the row's widths; any with latent attention.

    Else nothing.
    """
    inner = "expert_ffn" if run.experts > 1 else "ffn"
    of_family = [preset for preset in _presets() if preset.get("family") == family]
    same = [
        preset
        for preset in of_family
        if (preset["hidden"], preset["heads"], preset.get(inner))
        == (run.hidden, run.heads, run.ffn)
    ]
    if run.fact("attention kind") == "mla":
        same = same or [preset for preset in _presets() if preset.get("kv_rank")]
    sizes = [sizes for pattern, sizes in PUBLISHED if re.search(pattern, run.model, re.I)]
    return {**(same or [{}])[0], **(sizes or [{}])[0]}
