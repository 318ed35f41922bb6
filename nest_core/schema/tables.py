"""The tables of a fabric's and a scenario's file as pydantic models; units stand in the keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "LONGEST_NAME",
    "AcceleratorFile",
    "FabricFile",
    "LevelTable",
    "Name",
    "Range",
    "ScenarioFile",
    "SearchTable",
    "WorkloadTable",
]

MAX_ENTRIES = 4096
Count = Annotated[int, Field(ge=1, le=10_000_000)]
# Below these floors times overflow to infinity, and infinities become NaN.
Positive = Annotated[float, Field(ge=1e-9, le=1e18)]
NotNegative = Annotated[float, Field(ge=0, le=1e18)]
Ratio = Annotated[float, Field(ge=1, le=1e6)]
LONGEST_NAME = 200
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class LevelTable(_Table):
    """One ``[[level]]`` of a hierarchical fabric."""

    name: Name
    group_size: Count | None = None
    group_sizes: Annotated[list[Count], Field(min_length=1, max_length=65_536)] | None = None
    uplink_per: Literal["device", "child"] = "device"
    bandwidth_GBps: Positive
    oversubscription: Positive = 1.0
    latency_us: NotNegative


class ClosTable(_Table):
    """``[clos]``."""

    devices: Count
    devices_per_node: Count
    nics_per_node: Count
    nic_bandwidth_GBps: Positive
    radix: Count
    tiers: Annotated[int, Field(ge=1, le=3)]
    oversubscription: Annotated[list[Ratio], Field(max_length=2)] = []
    hop_latency_us: NotNegative
    planes: Annotated[int, Field(ge=1, le=64)] = 1
    rails: Count | None = None
    pods: Literal["units", "rails"] = "units"
    oversubscribe: Literal["remove_uplinks", "split_radix"] = "remove_uplinks"


class IntraNodeTable(_Table):
    """``[intra_node]``."""

    interconnect: Literal["switch", "mesh", "ring", "hybrid_cube_mesh"] = "switch"
    bandwidth_GBps: Positive
    latency_us: NotNegative


class TorusTable(_Table):
    """``[torus]``."""

    shape: Annotated[list[Count], Field(min_length=2, max_length=3)]
    wrap: Annotated[list[bool], Field(min_length=2, max_length=3)]
    link_bandwidth_GBps: Positive
    hop_latency_us: NotNegative
    twisted: bool = False


class TpuSliceTable(_Table):
    """``[tpu_slice]``: a torus whose wrap and link rate follow from the generation."""

    generation: Literal["v4", "v5p", "v5e", "v6e"]
    shape: Annotated[list[Count], Field(min_length=2, max_length=3)]
    twisted: bool = False
    link_bandwidth_GBps: Positive | None = None
    hop_latency_us: NotNegative = 1.0


class DragonflyTable(_Table):
    """``[dragonfly]``."""

    routers_per_group: Count
    nodes_per_router: Count
    global_links_per_router: Count
    local_bandwidth_GBps: Positive
    global_bandwidth_GBps: Positive
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
    memory_GiB: Positive
    memory_bandwidth_GBps: Positive
    peak_TFLOPs: Annotated[
        dict[Literal["fp32", "tf32", "bf16", "fp16", "fp8"], Positive], Field(min_length=1)
    ]
    matmul_TFLOPs: dict[Literal["fp32", "tf32", "bf16", "fp16", "fp8"], Positive] = {}
    units: Count
    tile: Annotated[list[Count], Field(min_length=2, max_length=2)]
    power_W: Positive | None = None
    reserved_GiB: NotNegative
    source: Annotated[str, Field(min_length=1, max_length=1000)]
    collectives: CollectivesTable | None = None
    profile: Annotated[str, Field(min_length=1, max_length=4096)] | None = None


class WorkloadTable(_Table):
    """``[workload]``; a model as a table has the fields of `nest_core.model_files.ModelFile`."""

    model: Name | dict[str, Any]
    sequence_length_tokens: Annotated[int, Field(ge=1, le=10_000_000)]
    global_batch_sequences: Annotated[int, Field(ge=1, le=1_000_000)]
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"] = "bf16"
    optimizer: Literal["adam", "adam_bf16", "adam_8bit", "sgd"] = "adam"
    gradient_bytes: Literal[2, 4] | None = None
    attention: Literal["flash", "unfused"] = "flash"
    context: Literal["ring", "all_gather"] = "ring"
    expert_tensor: bool = True
    imbalance: Annotated[float, Field(ge=1, le=1_000)] = 1.0
    capacity: Annotated[float, Field(ge=0, le=1_000)] = 0.0
    overlap: Literal["none", "ideal", "fitted"] = "fitted"


class Range(_Table):
    """``{min, max}``, either end open."""

    min: Count = 1
    max: Count = 10_000_000


Degree = Count | Annotated[list[Count], Field(min_length=1, max_length=MAX_ENTRIES)] | Range
Recompute = Literal["none", "selective", "full"]
Schedule = Literal["1f1b", "gpipe", "interleaved"]
Zero = Annotated[int, Field(ge=0, le=3)]
Axes = list[Literal["tp", "cp", "dp", "pp"]]
DeviceOrder = Literal["natural", "rail", "rack", "snake", "hilbert"]


class SearchTable(_Table):
    """``[search]``: a scalar pins, a list chooses, ``{min, max}`` bounds, absent is all valid."""

    tp: Degree | None = None
    cp: Degree | None = None
    ep: Degree | None = None
    pp: Degree | None = None
    dp: Degree | None = None
    sp: bool | Annotated[list[bool], Field(min_length=1, max_length=2)] | None = None
    micro_batch_sequences: Degree | None = None
    zero: Zero | Annotated[list[Zero], Field(min_length=1, max_length=4)] | None = None
    recompute: Recompute | Annotated[list[Recompute], Field(min_length=1, max_length=3)] | None = (
        None
    )
    schedule: Schedule | Annotated[list[Schedule], Field(min_length=1, max_length=3)] | None = None
    interleave: Degree | None = None
    order: Axes | Annotated[list[Axes], Field(min_length=1, max_length=24)] | None = None
    device_order: DeviceOrder | Annotated[list[DeviceOrder], Field(min_length=1, max_length=5)] = (
        "natural"
    )
    idle_devices: bool = True
    stage_strategies: Literal["uniform", "mixed"] = "uniform"
    memory_rule: Literal["joint", "as_needed"] = "joint"
    time_limit_s: Positive = 60.0
    top: Annotated[int, Field(ge=1, le=100)] = 1


class BaselinesTable(_Table):
    """``[baselines]``."""

    names: list[Literal["manual", "mcmc", "phaze", "alpa_e", "mist"]] = [
        "manual", "mcmc", "phaze", "alpa_e", "mist",
    ]  # fmt: skip
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
