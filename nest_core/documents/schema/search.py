"""``[search]``: what plans may be chosen from; the degrees and choices of every axis."""

from typing import Annotated, Literal

from pydantic import Field

from nest_core.documents.schema.checking import Count, Positive, SchemaTable, label

__all__ = ["Range", "SearchTable"]

MAX_ENTRIES = 4096


class Range(SchemaTable):
    """``{min, max}``, either end open."""

    min: Count = 1
    max: Count = 10_000_000


Degree = Count | Annotated[list[Count], Field(min_length=1, max_length=MAX_ENTRIES)] | Range
Recompute = Literal["none", "selective", "full"]


class RecomputeTable(SchemaTable):
    """One of what selective recomputation runs again, by Megatron-LM's names; and of the layers
    that full recomputation runs again at once, or of the first that it does."""

    modules: Annotated[list[str], Field(min_length=1, max_length=7)] | None = None
    uniform: Count | None = None
    block: Count | None = None


Share = Annotated[float, Field(ge=0, le=1)]


class OffloadTable(SchemaTable):
    """Shares that are on the host: of activations of blocks, of optimizer states."""

    activations: Share | None = None
    optimizer: Share | None = None


Schedule = Literal[
    "1f1b", "interleaved", "gpipe", "zb_h1", "zb_1p", "zb_2p", "interleaved_zb", "zbv", "dualpipev"
]
Zero = Annotated[int, Field(ge=0, le=3)]
ZeroGroup = Literal["all"] | Count
Axes = list[Literal["tp", "cp", "dp", "pp"]]
DeviceOrder = Literal["natural", "rail", "rack", "snake", "hilbert"]


class SearchTable(SchemaTable):
    """``[search]``: a scalar pins, a list chooses, ``{min, max}`` bounds, absent is all valid."""

    tp: Annotated[
        Degree | None,
        label("tensor parallel (tp)", "Divides heads, inner widths, vocabulary.", "ranks"),
    ] = None
    cp: Annotated[
        Degree | None, label("context parallel (cp)", "Divides each sequence.", "ranks")
    ] = None
    ep: Annotated[Degree | None, label("expert parallel (ep)", "Divides the experts.", "ranks")] = (
        None
    )
    etp: Annotated[
        Degree | None,
        label(
            "expert tensor (etp)",
            "Divides each expert: tp, or with sequence parallelism a divisor of it.",
            "ranks",
        ),
    ] = None
    pp: Annotated[Degree | None, label("pipeline parallel (pp)", "Divides layers.", "stages")] = (
        None
    )
    dp: Annotated[Degree | None, label("data parallel (dp)", "Divides the batch.", "replicas")] = (
        None
    )
    sp: Annotated[
        bool | Annotated[list[bool], Field(min_length=1, max_length=2)] | None,
        label(
            "sequence parallel (sp)", "Divides the tokens of what tensor parallelism leaves whole."
        ),
    ] = None
    micro_batch_sequences: Annotated[
        Degree | None, label("micro-batch", "What a replica takes through its stages at once.")
    ] = None
    zero: Annotated[
        Zero | Annotated[list[Zero], Field(min_length=1, max_length=4)] | None,
        label("ZeRO stage", "What of the optimizer's states, gradients and weights is divided."),
    ] = None
    zero_group: Annotated[
        ZeroGroup | Annotated[list[ZeroGroup], Field(min_length=1, max_length=MAX_ENTRIES)],
        label(
            "ZeRO shards over",
            "All replicas and their context-parallel ranks, or groups of so many neighbours among "
            "them: gathers stay inside a group, memory is divided by it.",
            "ranks",
        ),
    ] = "all"
    pad_batch: Annotated[
        bool,
        label(
            "pad the batch",
            "Also replicas and micro-batches that do not divide the batch: the last are padded, "
            "real sequences are counted. Frameworks do not pad.",
        ),
    ] = False
    recompute: Annotated[
        Recompute
        | RecomputeTable
        | Annotated[list[Recompute | RecomputeTable], Field(min_length=1, max_length=MAX_ENTRIES)]
        | None,
        label(
            "recomputation",
            "What backward runs again instead of keeping it: selective is core attention; "
            "{modules = [...]}, {uniform = n} and {block = n} are as in Megatron-LM.",
        ),
    ] = None
    offload: Annotated[
        Literal["none"]
        | OffloadTable
        | Annotated[
            list[Literal["none"] | OffloadTable], Field(min_length=1, max_length=MAX_ENTRIES)
        ],
        label(
            "offload",
            "What is on the host: {activations = 0.5} of what blocks keep, {optimizer = 1.0} of "
            "the optimizer's states.",
        ),
    ] = "none"
    schedule: Annotated[
        Schedule | Annotated[list[Schedule], Field(min_length=1, max_length=9)] | None,
        label("schedule", "In which order a stage works off its micro-batches."),
    ] = None
    interleave: Annotated[Degree | None, label("virtual stages per stage")] = None
    layouts: Annotated[
        Literal["even", "uneven"],
        label(
            "layouts of virtual stages",
            "Even: equally many blocks each. Uneven: also lighter ends and remainders, as in "
            "Megatron-LM's custom pipeline layouts, which takes longer to search.",
        ),
    ] = "even"
    order: Axes | Annotated[list[Axes], Field(min_length=1, max_length=24)] | None = None
    device_order: DeviceOrder | Annotated[list[DeviceOrder], Field(min_length=1, max_length=5)] = (
        "natural"
    )
    seating: Annotated[
        Literal["any", "consecutive"],
        label(
            "seating",
            "Any: where a fabric has failed elements or uneven groups, ranks may leave gaps: whole "
            "nodes first, so many devices of every node or rack. Consecutive: none.",
        ),
    ] = "any"
    idle_devices: bool = True
    stage_strategies: Annotated[
        Literal["uniform", "mixed"],
        label(
            "stages",
            "Uniform: all stages divide their layers alike. Mixed: each picks its own tp, sp, cp, "
            "ep, etp, ZeRO stage and group on equally many devices, which takes longer to search.",
        ),
    ] = "uniform"
    memory_rule: Annotated[
        Literal["joint", "as_needed"],
        label(
            "ZeRO and recomputation",
            "Joint: chosen with everything else. As needed: raised only where it does not fit.",
        ),
    ] = "joint"
    time_limit_s: Annotated[
        Positive | None,
        label("time limit", "Empty: ends by work, and finds the same everywhere.", "s"),
    ] = None
    top: Annotated[int, Field(ge=1, le=100), label("best points that are kept")] = 1
