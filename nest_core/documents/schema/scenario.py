"""The tables of a scenario's and an accelerator's file as pydantic models; units stand in the keys.

What can be set states its bounds, label and help in the tables of this package and nowhere else:
forms, addresses, sweeps and messages read them off these fields
(`nest_core.documents.schema.parameters`). Price lists and models have tables of their own, whose
fields say as much with `label`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from nest_core.documents.schema.checking import (
    LONGEST_NAME,
    Count,
    Name,
    NotNegative,
    Positive,
    SchemaTable,
    label,
)
from nest_core.documents.schema.fabric import FabricFile

__all__ = [
    "AcceleratorFile",
    "Range",
    "ScenarioFile",
    "SearchTable",
    "StackFile",
    "StudyTable",
    "WorkloadTable",
    "add_kind",
]

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


Memory = Annotated[float, Field(ge=1e-3, le=1e6)]
_BUDGET = label("budget", "For the network alone; empty: what the first costs or draws.")


class CollectivesTable(SchemaTable):
    """Which fitted curves price messages; presets in ``presets/collectives``."""

    links: Name | None = None
    network: Name | None = None


Precision = Literal["bf16", "fp16", "fp8", "int8", "nvfp4", "tf32", "fp32"]


class UsualNodeTable(SchemaTable):
    """``accelerator.usual_node``: what logs and tables leave to be assumed."""

    devices: Count = 8
    nic_bandwidth_GBps: Positive = 50.0


class AcceleratorFile(SchemaTable):
    """An accelerator preset, or its overridden form: what the device has.

    What kernels reach of it are the fitted parameters of its family.
    """

    name: Name
    family: Name = "uncalibrated"
    memory_GiB: Annotated[Memory, label("memory per device")]
    memory_bandwidth_GBps: Positive
    scale_up_GBps: Positive | None = None
    scale_up_devices: Count | None = None
    aliases: list[Name] = []
    usual_node: UsualNodeTable = UsualNodeTable()
    peak_TFLOPs: Annotated[dict[Precision, Positive], Field(min_length=1)]
    matmul_TFLOPs: dict[Precision, Positive] = {}
    units: Count
    tile: Annotated[list[Count], Field(min_length=2, max_length=2)]
    power_W: Positive | None = None
    reserved_GiB: NotNegative
    communicator_MiB: NotNegative = 0.0
    host_bandwidth_GBps: Positive | None = None
    source: Annotated[str, Field(min_length=1, max_length=1000)]
    collectives: CollectivesTable | None = None
    profile: Annotated[str, Field(min_length=1, max_length=4096)] | None = None


class WorkloadTable(SchemaTable):
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
        Precision,
        label("precision", "Those the device computes in."),
    ] = "bf16"
    optimizer: Annotated[
        Literal["adam", "adam_bf16", "adam_8bit", "sgd"],
        label("optimizer", "Sets the bytes per parameter."),
    ] = "adam"
    gradient_bytes: Literal[2, 4] | None = None
    attention: Annotated[
        Literal["stack", "flash", "unfused"],
        label("attention kernel", "As the stack has it. Unfused stores the scores."),
    ] = "stack"
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


class OverlapTable(SchemaTable):
    """Precisions in which a class of traffic hides behind compute."""

    tp: list[Precision]
    pp: list[Precision]
    dp: list[Precision]


Factor = Annotated[float, Field(ge=0, le=1e6)]
OwnFigure = Literal[
    "gemm_efficiency",
    "wave_tail",
    "depth_tail",
    "memory_efficiency",
    "attention_efficiency",
    "biased_attention_efficiency",
    "host_s",
    "overlap_tp",
    "overlap_pp",
    "overlap_dp",
    "network",
    "run_factor",
]


class StackFile(SchemaTable):
    """A software stack: a preset, or a cluster's own as ``nest-studio calibrate`` writes it.

    A file's name is the stack's; in a scenario, as a table, it has its ``name`` in itself.
    """

    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    framework: Literal["megatron", "fsdp", "deepspeed", "jax"]
    year: Annotated[int, Field(ge=2016, le=2100)]
    release: Annotated[str, Field(min_length=1, max_length=300)]
    families: Annotated[list[Name], Field(min_length=1)]
    model_parallel: bool = True
    attention: Literal["flash", "unfused"] = "flash"
    fused: bool = True
    joined: bool = True
    checkpoint: Literal["whole", "per_operator", "jax"] = "whole"
    launch: Literal["eager", "layer_graphs", "iteration_graphs"] = "eager"
    eager_experts: bool = False
    scaled_activations: bool = False
    fp8: Literal["", "delayed", "tensorwise", "rowwise", "blockwise"] = ""
    deepspeed_zero: bool = False
    eager_loss: bool = False
    accumulation: Literal["product", "pass", "none"] = "product"
    copies: list[Literal["weights", "gradients"]] = []
    sharded_gradients: bool = False
    source: Annotated[str, Field(min_length=1, max_length=2000)]
    rows: list[str] = []
    overlap: OverlapTable
    parameters: dict[OwnFigure, Factor] = {}
    curves: Annotated[list[dict[str, Any]], Field(max_length=2)] = []
    covariance: list[list[Annotated[float, Field(ge=-100, le=100)]]] = []


class BaselinesTable(SchemaTable):
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


class ScenarioFile(SchemaTable):
    """A scenario with its references resolved: fabric and accelerator as tables."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    description: str = ""
    fabric: FabricFile
    accelerator: AcceleratorFile
    stack: Name | StackFile | None = None
    prices: Name | dict[str, Any] | None = None
    failures: Name | dict[str, Any] | None = None
    costs: Literal["own"] = "own"
    workload: WorkloadTable
    search: SearchTable = SearchTable()
    baselines: BaselinesTable = BaselinesTable()


class StudyTable(SchemaTable):
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
