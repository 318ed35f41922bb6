"""The accelerator and the fabric of a run.

Presets of accelerators say what sources call them, and what a node of them usually has; a row's
own columns come first. The fabric is two levels: nodes whose devices reach
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
    InputError,
    from_gbps_bytes,
    kept_per_edition,
    load_toml,
    preset_names,
    preset_path,
    require,
)
from nest_core.documents.schema import AcceleratorFile, checked
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware import Accelerator, load_accelerator
from nest_core.network import collapse
from nest_core.workload import Model

__all__ = [
    "BY_FACT",
    "BY_NAME",
    "PUBLISHED",
    "TIED",
    "Machine",
    "accelerator_of",
    "fabric_of",
    "family_of",
    "find_machine",
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


_PACKAGE = re.compile(r" (?:SXM|\d+ GB|\()")
"""Where the name of a preset goes on with its package and memory."""


def find_machine(name: str) -> Machine | None:
    """Return the machine behind an accelerator's name; None where no preset is meant.

    It is that of the preset with most of its words in the name, the memory or else the most.
    The words of a preset are those of its file and of its `aliases`.

    Examples
    --------
    >>> [find_machine(name).preset for name in ("NVIDIA A100-SXM4-40GB", "H100 PCIe", "8xV100")]
    ['a100-40gb', 'h100-pcie-80gb', 'v100-32gb']
    """
    words = _words(name)
    return max(
        (entry for entry in _machines() if entry[0] <= words),
        key=lambda entry: (len(entry[0]), f"{entry[1]:.0f}gb" in words, entry[1]),
        default=(None, 0.0, None),
    )[2]


def machine_of(name: str) -> Machine:
    """Return the machine behind an accelerator's name.

    Raises
    ------
    InputError
        If no preset is meant.
    """
    if machine := find_machine(name):
        return machine
    raise InputError(
        "accelerator",
        "must have a preset",
        name,
        "name the nearest one, or add a file to presets/accelerators",
    )


def _words(name: str) -> frozenset[str]:
    """Return the words of a name.

    Examples
    --------
    >>> sorted(_words("8xA100 SXM 40 GB"))
    ['40gb', 'a100', 'sxm']
    """
    text = re.sub(r"(\d) gb\b", r"\1gb", name.lower())
    return frozenset(re.findall(r"(?:\b\d+x)?([a-z0-9]+)", text))


@kept_per_edition(1)
def _machines() -> tuple[tuple[frozenset[str], float, Machine], ...]:
    """Return the words of every name of every preset, its memory in GiB and what it is built in."""
    entries = []
    for preset in preset_names("accelerators"):
        file = checked(
            AcceleratorFile,
            load_toml(preset_path("accelerators", f"{preset}.toml")),
            "accelerator.",
        )
        machine = Machine(
            _PACKAGE.split(file.name)[0],
            preset,
            file.usual_node.devices,
            from_gbps_bytes(file.scale_up_GBps or 0.0),
            from_gbps_bytes(file.usual_node.nic_bandwidth_GBps),
        )
        names = (re.sub(r"-\d+gb", "", preset), *file.aliases)
        entries += [(_words(alias), file.memory_GiB, machine) for alias in names]
    return tuple(entries)


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


network_of = lru_cache(maxsize=256)(collapse)
"""Levels of a fabric; runs on the same fabric share them."""


BY_NAME = (
    (r"deepseek-?v2", "deepseek_v2"),
    (r"deepseek-?v3|kimi-?k2|moonlight", "deepseek_v3"),
    (r"gpt-?oss", "gpt_oss"),
    (r"grok", "grok1"),
    (r"bloom", "bloom"),
    (r"\bmpt", "mpt"),
    (r"nemotron", "nemotron"),
    (r"qwen3-?next", "qwen3_next"),
    (r"qwen3-.*-a\d+b", "qwen3_moe"),
    (r"qwen3", "qwen3"),
    (r"qwen", "qwen2"),
    (r"\bbert", "bert"),
    (r"llama-?4", "llama4"),
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
    latent = _size(preset, "kv_rank") > 0
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
    routed = preset if preset.get("experts") == run.experts else {}
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
        expert_groups=_size(routed, "expert_groups") or 1,
        top_groups=_size(routed, "top_groups") or 1,
        source=run.source,
    )


def _size(preset: dict[str, object], field: str) -> int:
    return int(str(preset.get(field, 0)))


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
