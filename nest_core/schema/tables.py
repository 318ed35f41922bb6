"""The tables of a fabric's and a scenario's file as pydantic models; units stand in the keys.

What can be set states its bounds, label and help here and nowhere else: forms, addresses, sweeps
and messages read them off these fields (`nest_core.schema.parameters`). Price lists and models have
tables of their own, whose fields say as much with `label`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

__all__ = [
    "LONGEST_NAME",
    "AcceleratorFile",
    "FabricFile",
    "LevelTable",
    "Name",
    "Range",
    "ScenarioFile",
    "SearchTable",
    "StudyTable",
    "WorkloadTable",
    "add_kind",
    "label",
]

MAX_ENTRIES = 4096
Count = Annotated[int, Field(ge=1, le=10_000_000)]
# Below these floors times overflow to infinity, and infinities become NaN.
Positive = Annotated[float, Field(ge=1e-9, le=1e18)]
NotNegative = Annotated[float, Field(ge=0, le=1e18)]
Memory = Annotated[float, Field(ge=1e-3, le=1e6)]
Ratio = Annotated[float, Field(ge=1, le=1e6)]
LONGEST_NAME = 200
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]


def label(
    title: str, text: str = "", unit: str = "", usual: float | None = None, short: str = ""
) -> Any:
    """What people read of a field: its label and help, a unit that its key does not say, up to
    where a slider reaches, and a shorter name than its key's.
    """
    more: Any = {"unit": unit, "usual": usual, "short": short}
    return Field(title=title, description=text, json_schema_extra=more)


_BUDGET = label("budget", "For the network alone; empty: what the first costs or draws.")
_RATIO = label("oversubscription", "1 : 1 is full bisection.", "down : up", 16.0)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class LevelTable(_Table):
    """One ``[[level]]`` of a hierarchical fabric."""

    name: Name
    group_size: Annotated[Count | None, label("node size", unit="devices")] = None
    group_sizes: Annotated[list[Count], Field(min_length=1, max_length=65_536)] | None = None
    uplink_per: Literal["device", "child"] = "device"
    bandwidth_GBps: Annotated[Positive, label("link speed")]
    oversubscription: Annotated[Positive, _RATIO] = 1.0
    latency_us: NotNegative


class ClosTable(_Table):
    """``[clos]``."""

    devices: Annotated[
        Count, label("devices", "In whole nodes; many leaves need a fabric with another tier.")
    ]
    devices_per_node: Annotated[Count, label("node size", unit="devices")]
    nics_per_node: Count
    nic_bandwidth_GBps: Annotated[Positive, label("NIC speed")]
    radix: Count
    tiers: Annotated[int, Field(ge=1, le=3)]
    oversubscription: Annotated[list[Annotated[Ratio, _RATIO]], Field(max_length=2)] = []
    hop_latency_us: NotNegative
    planes: Annotated[int, Field(ge=1, le=64)] = 1
    rails: Count | None = None
    pods: Literal["units", "rails"] = "units"
    oversubscribe: Annotated[
        Literal["remove_uplinks", "split_radix"],
        label(
            "oversubscription",
            "A fixed leaf loses uplinks, its nodes stay; or the ports of a switch are split anew, "
            "so that a leaf holds more nodes and there are fewer of them.",
        ),
    ] = "remove_uplinks"


class IntraNodeTable(_Table):
    """``[intra_node]``."""

    interconnect: Literal["switch", "mesh", "ring", "hybrid_cube_mesh"] = "switch"
    bandwidth_GBps: Annotated[Positive, label("link speed in the node")]
    latency_us: NotNegative


class TorusTable(_Table):
    """``[torus]``."""

    shape: Annotated[list[Count], Field(min_length=2, max_length=3)]
    wrap: Annotated[list[bool], Field(min_length=2, max_length=3)]
    link_bandwidth_GBps: Annotated[Positive, label("link speed")]
    hop_latency_us: NotNegative
    twisted: bool = False


class TpuSliceTable(_Table):
    """``[tpu_slice]``: a torus whose wrap and link rate follow from the generation."""

    generation: Literal["v4", "v5p", "v5e", "v6e"]
    shape: Annotated[list[Count], Field(min_length=2, max_length=3)]
    twisted: bool = False
    link_bandwidth_GBps: Annotated[Positive | None, label("link speed")] = None
    hop_latency_us: NotNegative = 1.0


class DragonflyTable(_Table):
    """``[dragonfly]``."""

    routers_per_group: Count
    nodes_per_router: Count
    global_links_per_router: Count
    local_bandwidth_GBps: Annotated[Positive, label("local link speed")]
    global_bandwidth_GBps: Annotated[Positive, label("global link speed")]
    hop_latency_us: NotNegative
    groups: Count | None = None
    devices_per_node: Count = 1
    nic_bandwidth_GBps: Positive | None = None


class ElementTable(_Table):
    """One ``[[element]]`` of a graph; ``group``, ``x`` and ``y`` are for drawings.

    ``count`` equal NICs or switches may be drawn as one.
    """

    id: Name
    role: Literal["device", "nic", "switch"]
    radix: Count | None = None
    count: Count = 1
    group: Annotated[str, Field(max_length=400)] = ""
    x: Coordinate | None = None
    y: Coordinate | None = None


class LinkTable(_Table):
    """One ``[[link]]`` of a graph."""

    a: Name
    b: Name
    bandwidth_GBps: Positive
    count: Count = 1
    latency_us: NotNegative = 0.0


class FabricFile(_Table):
    """A fabric; ``kind`` says which of the tables it has."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    kind: Literal[
        "hierarchical",
        "leaf_spine",
        "fat_tree",
        "rail_optimised",
        "rail_only",
        "dragonfly",
        "torus",
        "tpu_slice",
        "graph",
    ]
    routing: Literal["adaptive", "shortest_path", "ecmp"] = "adaptive"
    ecmp_seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    missing: Annotated[list[Name], Field(max_length=65_536)] = []
    devices_per_host: Count | None = None
    source: str = ""
    level: Annotated[list[LevelTable], Field(max_length=16)] | None = None
    clos: ClosTable | None = None
    intra_node: IntraNodeTable | None = None
    dragonfly: DragonflyTable | None = None
    torus: TorusTable | None = None
    tpu_slice: TpuSliceTable | None = None
    element: Annotated[list[ElementTable], Field(max_length=400_000)] | None = None
    link: Annotated[list[LinkTable], Field(max_length=400_000)] | None = None


class CollectivesTable(_Table):
    """Which fitted curves price messages; presets in ``presets/collectives``."""

    links: Name | None = None
    network: Name | None = None


class AcceleratorFile(_Table):
    """An accelerator preset, or its overridden form: what the device has.

    What kernels reach of it are the fitted parameters of its family.
    """

    name: Name
    family: Name = "uncalibrated"
    memory_GiB: Annotated[Memory, label("memory per device")]
    memory_bandwidth_GBps: Positive
    peak_TFLOPs: Annotated[
        dict[Literal["fp32", "tf32", "bf16", "fp16", "fp8"], Positive], Field(min_length=1)
    ]
    matmul_TFLOPs: dict[Literal["fp32", "tf32", "bf16", "fp16", "fp8"], Positive] = {}
    units: Count
    tile: Annotated[list[Count], Field(min_length=2, max_length=2)]
    power_W: Positive | None = None
    reserved_GiB: NotNegative
    host_bandwidth_GBps: Positive | None = None
    source: Annotated[str, Field(min_length=1, max_length=1000)]
    collectives: CollectivesTable | None = None
    profile: Annotated[str, Field(min_length=1, max_length=4096)] | None = None


class WorkloadTable(_Table):
    """``[workload]``; a model as a table has the fields of a model preset."""

    model: Name | dict[str, Any]
    sequence_length_tokens: Annotated[
        int, Field(ge=1, le=10_000_000), label("sequence length", short="sequence")
    ]
    global_batch_sequences: Annotated[
        int,
        Field(ge=1, le=1_000_000),
        label(
            "global batch",
            "Per iteration, over all replicas. Replicas times micro-batch divide it.",
            short="batch",
        ),
    ]
    precision: Annotated[
        Literal["bf16", "fp16", "fp8", "tf32", "fp32"],
        label("precision", "Those the device computes in."),
    ] = "bf16"
    optimizer: Annotated[
        Literal["adam", "adam_bf16", "adam_8bit", "sgd"],
        label("optimizer", "Sets the bytes per parameter."),
    ] = "adam"
    gradient_bytes: Literal[2, 4] | None = None
    attention: Annotated[
        Literal["flash", "unfused"], label("attention kernel", "Unfused stores the scores.")
    ] = "flash"
    context: Annotated[
        Literal["ring", "all_gather"],
        label("context exchange", "How context-parallel ranks see each other's keys and values."),
    ] = "ring"
    collectives: Annotated[
        Literal["library", "ring", "multi_rail", "hierarchical_halving", "multi_ring"],
        label("collectives", "What the communication library runs; library: the fastest of all."),
    ] = "library"
    expert_tensor: Annotated[
        bool,
        label(
            "tensor parallelism divides experts",
            "Where neither the search nor a plan names etp; else every rank has them whole.",
        ),
    ] = True
    imbalance: Annotated[
        float,
        Field(ge=1, le=1_000),
        label("imbalance", "Where experts are spread.", "busiest rank over mean"),
    ] = 1.0
    capacity: Annotated[
        float,
        Field(ge=0, le=1_000),
        label("capacity factor", "0 drops no token.", "slots over mean"),
    ] = 0.0
    dispatch: Annotated[
        Literal["all_to_all", "once_per_node", "hybrid"],
        label(
            "expert dispatch",
            "A copy of a token per expert, per host (DeepEP) or per NVLink domain (HybridEP).",
        ),
    ] = "all_to_all"
    expert_overlap: Annotated[
        bool,
        label(
            "expert overlap",
            "All-to-alls of experts hide behind another micro-batch, without a pipeline or "
            "interleaved.",
        ),
    ] = False
    overlap: Annotated[
        Literal["none", "ideal", "fitted"],
        label("overlap", "What of communication hides behind compute."),
    ] = "fitted"


class Range(_Table):
    """``{min, max}``, either end open."""

    min: Count = 1
    max: Count = 10_000_000


Degree = Count | Annotated[list[Count], Field(min_length=1, max_length=MAX_ENTRIES)] | Range
Recompute = Literal["none", "selective", "full"]


class RecomputeTable(_Table):
    """One of what selective recomputation runs again, by Megatron-LM's names; and of the layers
    that full recomputation runs again at once, or of the first that it does."""

    modules: Annotated[list[str], Field(min_length=1, max_length=7)] | None = None
    uniform: Count | None = None
    block: Count | None = None


Share = Annotated[float, Field(ge=0, le=1)]


class OffloadTable(_Table):
    """Shares that are on the host: of activations of blocks, of optimizer states."""

    activations: Share | None = None
    optimizer: Share | None = None


Schedule = Literal["1f1b", "interleaved", "gpipe", "zb_h1", "zb_1p", "zb_2p"]
Zero = Annotated[int, Field(ge=0, le=3)]
ZeroGroup = Literal["all"] | Count
Axes = list[Literal["tp", "cp", "dp", "pp"]]
DeviceOrder = Literal["natural", "rail", "rack", "snake", "hilbert"]


class SearchTable(_Table):
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
        Schedule | Annotated[list[Schedule], Field(min_length=1, max_length=6)] | None,
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
            "Joint: chosen with everything else. As needed: raised only where it does not fit, as "
            "in the paper.",
        ),
    ] = "joint"
    time_limit_s: Annotated[Positive, label("time limit")] = 60.0
    top: Annotated[int, Field(ge=1, le=100), label("best points that are kept")] = 1


class BaselinesTable(_Table):
    """``[baselines]``."""

    names: Annotated[
        list[Literal["nest", "manual", "mcmc", "phaze", "alpa_e", "mist"]],
        label("baselines", short="baselines"),
    ] = ["nest", "manual", "mcmc", "phaze", "alpa_e", "mist"]
    space: Annotated[
        Literal["own", "paper"],
        label(
            "baselines choose from",
            "Own: all that the plan may. Paper: the axes that each has in the NEST paper.",
        ),
    ] = "own"
    seed: Annotated[int, Field(ge=0)] = 0


class ScenarioFile(_Table):
    """A scenario with its references resolved: fabric and accelerator as tables."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    description: str = ""
    fabric: FabricFile
    accelerator: AcceleratorFile
    costs: Literal["own"] = "own"
    workload: WorkloadTable
    search: SearchTable = SearchTable()
    baselines: BaselinesTable = BaselinesTable()


class StudyTable(_Table):
    """What a study asks beside its scenarios."""

    loss: Annotated[
        float,
        Field(ge=0.001, le=0.9),
        label("may cost less than", "Of what the mix trains at the tier's least ratio."),
    ]
    share: Annotated[
        float,
        Field(ge=0.001, le=1e6),
        label("share", "This model's part of the cluster's time.", "parts"),
    ]
    budget_usd: Annotated[float, Field(ge=1, le=1e15), _BUDGET]
    budget_W: Annotated[float, Field(ge=1, le=1e15), _BUDGET]
    device_usd: Annotated[
        float,
        Field(ge=0, le=1e9),
        label("accelerator with its share of the server", "Apiece; empty: what is assumed."),
    ]


def add_kind(name: str, tables: Mapping[str, type[BaseModel]]) -> None:
    """Let fabric files be of one more kind, which may have tables of its own."""
    fields = FabricFile.__pydantic_fields__
    kinds: Any = Literal[(*get_args(fields["kind"].annotation), name)]
    fields["kind"] = FieldInfo.from_annotation(kinds)
    for table, model in tables.items():
        fields[table] = FieldInfo.from_annotated_attribute(cast(Any, model | None), None)
    FabricFile.model_rebuild(force=True)
    ScenarioFile.model_rebuild(force=True)
