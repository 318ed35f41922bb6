"""What ``[search]`` leaves to choose from: its table as the planner's search space.

An axis that is absent takes every valid degree; of degrees that are asked for, the valid ones are
kept. Where none is left, the error names some that are valid.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from nest_core.costs import REPLAYED, USUAL_SCHEDULES
from nest_core.documents.errors import require
from nest_core.documents.schema import Range, SearchTable, WorkloadTable
from nest_core.fabric import Fabric, torus_of
from nest_core.planner import ORDERS, SearchSpace
from nest_core.workload import RECOMPUTE, Model, check_modules, offloading, recomputation

__all__ = ["search_space"]

T = TypeVar("T")
LEAST_CHUNK = 128
"""Tokens of a context-parallel rank's chunk: a tile of attention kernels."""


def search_space(
    search: SearchTable, workload: WorkloadTable, model: Model, fabric: Fabric
) -> SearchSpace:
    """Return the plans that a job on a fabric may choose from.

    Parameters
    ----------
    search : SearchTable
    workload : WorkloadTable
        Its batch and sequence length decide which degrees are valid.
    model : Model
    fabric : Fabric

    Raises
    ------
    InputError
        If nothing valid is left on an axis.
    """
    batch, tokens = workload.global_batch_sequences, workload.sequence_length_tokens
    devices = fabric.devices
    sizes = range(1, batch + 1)
    shares = [size for size in sizes if batch % size == 0]
    parts = list(sizes) if search.pad_batch else shares
    usual = {*shares, *(2**n for n in range(batch.bit_length()))} if search.pad_batch else shares
    widths = [w for w in range(1, min(model.heads, devices) + 1) if _splits(model, w)]
    by_batch = f"{'not exceed' if search.pad_batch else 'divide'} the batch of {batch}"
    layers = sum(count for _, count in model.runs)
    depths = list(range(1, min(layers, devices) + 1))
    owners = [n for n in range(1, model.experts + 1) if model.experts % n == 0 and n <= devices]
    virtual_stages = _chosen(
        "interleave",
        search.interleave,
        list(range(1, layers // 2 + 1)),
        f"leave each virtual stage one of {layers} layers",
    )
    contexts = [
        1,
        *(
            cp
            for cp in range(2, min(devices, tokens // (2 * LEAST_CHUNK)) + 1)
            if tokens % (2 * cp) == 0
        ),
    ]
    order: Any = search.order
    listed = order if order and isinstance(order[0], list) else [order]
    orders = ORDERS if order is None else tuple(dict.fromkeys(map(tuple, listed)))
    words = list(RECOMPUTE) if search.recompute is None else search.recompute
    recompute = _each_once(words, recomputation, "search.recompute")
    check_modules(model, recompute, "search.recompute")
    return SearchSpace(
        tp=_chosen("tp", search.tp, widths, f"divide {model.heads} heads"),
        sp=_listed(search.sp, (False, True)),
        cp=_chosen(
            "cp",
            search.cp,
            contexts,
            f"divide the sequence of {tokens} tokens into two chunks per rank, each of at least "
            f"{LEAST_CHUNK} tokens",
        ),
        ep=_chosen(
            "ep",
            search.ep,
            owners,
            f"divide the {model.experts} experts"
            if model.experts > 1
            else "be 1 for a dense model, which has no experts",
        ),
        etp=_expert_tensor(search, workload, model, widths),
        dp=_chosen("dp", search.dp, [size for size in parts if size <= devices], by_batch),
        pp=_chosen("pp", search.pp, depths, f"not exceed {layers} layers or {devices} devices"),
        micro_batch=_chosen(
            "micro_batch_sequences",
            search.micro_batch_sequences,
            sorted(usual) if search.micro_batch_sequences is None else parts,
            by_batch,
        ),
        zero=_listed(search.zero, (0, 1, 2, 3)),
        zero_groups=_zero_groups(search),
        recompute=recompute,
        offload=_each_once(search.offload, offloading, "search.offload"),
        orders=orders,
        device_orders=_device_orders(search.device_order, torus_of(fabric) is not None),
        seating=search.seating,
        idle_devices=search.idle_devices,
        schedules=_schedules(search.schedule, virtual_stages),
        interleave=virtual_stages,
        layouts=search.layouts,
        mixed=search.stage_strategies == "mixed",
        as_needed=search.memory_rule == "as_needed",
    )


def _zero_groups(search: SearchTable) -> tuple[int, ...]:
    """Return sizes of groups, 0 for all."""
    groups = tuple(0 if group == "all" else group for group in _listed(search.zero_group, ("all",)))
    require(
        0 in groups or set(_listed(search.zero, (1,))) != {0},
        "search.zero_group",
        "must hold all where search.zero is 0, which shards nothing",
        search.zero_group,
        "leave it out, or allow a ZeRO stage",
    )
    return groups


def _each_once(value: Any, convert: Callable[[Any, str], T], field: str) -> tuple[T, ...]:
    """Return what is listed as core values, each once; tables of the file as plain ones."""
    plain = (
        entry if isinstance(entry, str) else entry.model_dump(exclude_none=True, mode="json")
        for entry in (value if isinstance(value, list) else [value])
    )
    return tuple(dict.fromkeys(convert(entry, field) for entry in plain))


def _expert_tensor(
    search: SearchTable, workload: WorkloadTable, model: Model, widths: list[int]
) -> tuple[int, ...]:
    """Expert tensor degrees; none for a dense model, which has no experts to divide."""
    dense = model.experts == 1
    rule = "be 1 for a dense model, which has no experts" if dense else "divide what tp may be"
    if search.etp is None and not workload.expert_tensor:
        return () if dense else (1,)
    degrees = _chosen("etp", search.etp, [1] if dense else widths, rule)  # refuses others
    return () if dense else degrees


def _schedules(value: Any, virtual_stages: tuple[int, ...]) -> tuple[str, ...]:
    """Those listed that go with the virtual stages: one without, several with interleaving."""
    listed = _listed(value, USUAL_SCHEDULES)
    free = ("interleaved", *REPLAYED)
    schedules = tuple(name for name in listed if name in free or 1 in virtual_stages)
    require(
        any(max(virtual_stages) > 1 or not name.startswith("interleaved") for name in schedules),
        "search.schedule",
        f"must go with interleave = {list(virtual_stages)[:6]}",
        list(listed),
        "add interleaved for two virtual stages per stage and more, or interleave = 1 for "
        "the others",
    )
    return schedules


def _splits(model: Model, width: int) -> bool:
    """Return whether tensor-parallel ranks of a width get whole heads and equal parts of MLPs."""
    shared = model.kv_heads % width == 0 or width % model.kv_heads == 0
    inner = all(size % width == 0 for size in (model.ffn, model.shared_ffn, model.expert_ffn))
    return model.heads % width == 0 and shared and inner


def _listed(value: Any, everything: tuple[Any, ...]) -> tuple[Any, ...]:
    if value is None:
        return everything
    return tuple(dict.fromkeys(value)) if isinstance(value, list) else (value,)


def _device_orders(value: Any, torus: bool) -> tuple[str, ...]:
    """Return those of the listed orders that the fabric has a meaning for."""
    orders = tuple(
        order
        for order in _listed(value, ("natural",))
        if torus or order not in ("snake", "hilbert")
    )
    require(
        orders,
        "search.device_order",
        "must be natural, rail or rack unless the fabric is a torus",
        value,
        "pick natural",
    )
    return orders


def _chosen(
    name: str, value: int | list[int] | Range | None, valid: list[int], rule: str
) -> tuple[int, ...]:
    if value is None:
        return tuple(valid)
    if isinstance(value, Range):
        require(
            value.min <= value.max,
            f"search.{name}",
            "must have a min of at most its max",
            _bounds(value),
            "swap them",
        )
        chosen = [entry for entry in valid if value.min <= entry <= value.max]
    else:
        chosen = sorted(set(value if isinstance(value, list) else [value]) & set(valid))
    require(
        chosen,
        f"search.{name}",
        f"must {rule}",
        _bounds(value) if isinstance(value, Range) else value,
        f"valid are {', '.join(map(str, valid[:12]))}",
    )
    return tuple(chosen)


def _bounds(value: Range) -> str:
    """As a person writes them."""
    ends = ((name, getattr(value, name)) for name in ("min", "max"))
    return ", ".join(f"{name} {end}" for name, end in ends if name in value.model_fields_set)
