"""Plans as people give them: a JSON file, ``dp=8,tp=4,pp=2,…``, or Megatron-LM flags.

What is left out takes a stated default: degree 1, ZeRO 0, no recomputation, micro-batch 1,
1F1B (interleaved where a stage has several chunks), Megatron-LM's axis order, and layers cut as
evenly as they go.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nest_core.costs.plan import SCHEDULES, Plan, Point
from nest_core.costs.problem import RECOMPUTE
from nest_core.errors import InputError
from nest_core.layout import DEVICE_ORDERS
from nest_core.presets import read_text

__all__ = ["even_cuts", "parse_plan", "read_plan"]

_DEGREES = ("tp", "dp", "pp", "cp", "ep", "micro_batch", "interleave")
_KNOWN = (
    *_DEGREES, "sp", "zero", "schedule", "recompute", "order", "device_order", "cuts",
    "stage_recompute", "devices_used",
)  # fmt: skip
_MEGATRON = {
    "--tensor-model-parallel-size": "tp",
    "--pipeline-model-parallel-size": "pp",
    "--context-parallel-size": "cp",
    "--expert-model-parallel-size": "ep",
    "--micro-batch-size": "micro_batch",
    "--data-parallel-size": "dp",
    "--recompute-granularity": "recompute",
    "--num-virtual-stages-per-pipeline-rank": "interleave",
    "--num-layers-per-virtual-pipeline-stage": "chunk_blocks",
    "--data-parallel-sharding-strategy": "sharding",
    "--recompute-method": "method",
    "--recompute-num-layers": "uniform",
}
_SWITCHES = {
    "--sequence-parallel": ("sp", True),
    "--use-distributed-optimizer": ("zero", 1),
    "--use-torch-fsdp2": ("zero", 3),
    "--recompute-activations": ("recompute", "selective"),
    "--use-tp-pp-dp-mapping": ("order", ("tp", "cp", "pp", "dp")),
}
_SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}


def read_plan(text: str, layers: int, devices: int) -> Plan:
    """A plan from a file's name, ``key=value`` pairs or Megatron-LM flags.

    Parameters
    ----------
    layers, devices : int
        Of the problem: for default cuts, and for Megatron's data-parallel degree, which is what
        the other degrees leave.

    Raises
    ------
    InputError
        If the text is none of these or names an unknown key.
    """
    if text.lstrip().startswith("--"):
        return parse_plan(_megatron(text, devices, layers), layers)
    if "=" in text and not os.path.exists(text):
        return parse_plan(_pairs(text), layers)
    return parse_plan(_file(Path(text)), layers)


def parse_plan(fields: Mapping[str, Any], layers: int) -> Plan:
    """A plan from the fields that ``nest-studio plan`` prints.

    Raises
    ------
    InputError
        For an unknown field or a value of the wrong kind. Whether the plan fits a problem is
        `nest_core.costs.check_plan`'s business.
    """
    for name, value in fields.items():
        if name not in _KNOWN:
            raise InputError(
                f"plan.{name}", "is not a known field", value, "use " + ", ".join(_KNOWN)
            )
    degrees = {name: _whole(name, fields.get(name, 1)) for name in _DEGREES}
    sp = fields.get("sp", False)
    if not isinstance(sp, bool):
        raise InputError("plan.sp", "must be true or false", sp, "correct it")
    order = _sequence(fields, "order") or ("tp", "cp", "dp", "pp")
    if sorted(map(str, order)) != ["cp", "dp", "pp", "tp"]:
        raise InputError(
            "plan.order", "must name tp, cp, dp and pp once", list(order), "correct it"
        )
    device_order = fields.get("device_order", "natural")
    if device_order not in DEVICE_ORDERS:
        raise InputError(
            "plan.device_order", "must be one of the orders", device_order,
            "pick " + ", ".join(DEVICE_ORDERS),
        )  # fmt: skip
    pp, chunks = degrees["pp"], degrees["interleave"]
    schedule = fields.get("schedule", "1f1b" if chunks == 1 else "interleaved")
    if schedule not in SCHEDULES:
        raise InputError(
            "plan.schedule", "must be one of the schedules", schedule,
            "pick " + ", ".join(SCHEDULES),
        )  # fmt: skip
    if pp > layers:
        raise InputError("plan.pp", f"must not exceed the model's {layers} layers", pp, "lower pp")
    if pp * chunks > layers:
        raise InputError(
            "plan.interleave", f"times pp = {pp} must not exceed the model's {layers} layers",
            chunks, "lower it",
        )  # fmt: skip
    zero = _whole("zero", fields.get("zero", 0), least=0)
    point = Point(
        sp=sp, zero=zero, order=order, device_order=device_order, schedule=schedule, **degrees
    )
    cuts = tuple(_whole("cuts", cut, least=0) for cut in _sequence(fields, "cuts"))
    return Plan(point, cuts or even_cuts(layers, pp * chunks), _recompute(fields, pp))


def even_cuts(layers: int, depth: int) -> tuple[int, ...]:
    """Blocks as evenly as they go, embedding with the first part and head with the last.

    Parameters
    ----------
    depth : int
        Parts: stages, or under the interleaved schedule chunks.

    Examples
    --------
    >>> even_cuts(10, 3)
    (0, 4, 7, 10)
    """
    blocks = layers - 2
    if depth > blocks:
        return tuple(stage * layers // depth for stage in range(depth + 1))
    small, extra = divmod(blocks, depth)
    inner = [1 + stage * small + min(stage, extra) for stage in range(1, depth)]
    return (0, *inner, layers)


def _recompute(fields: Mapping[str, Any], pp: int) -> tuple[str, ...]:
    listed = _sequence(fields, "stage_recompute")
    if listed:
        return tuple(map(str, listed))
    common = fields.get("recompute", "none")
    if common not in RECOMPUTE:
        raise InputError(
            "plan.recompute", "must be none, selective or full", common,
            "give stage_recompute for a mixed plan",
        )  # fmt: skip
    return (str(common),) * pp


def _sequence(fields: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """A list of the fields; empty where it is left out."""
    value = fields.get(name, ())
    if not isinstance(value, (list, tuple)):
        raise InputError(
            f"plan.{name}", "must be a list", value, "give a JSON list, or join its entries with -"
        )
    return tuple(value)


def _whole(name: str, value: Any, *, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**7:
        raise InputError(
            f"plan.{name}", f"must be a whole number from {least}", value, "correct it"
        )
    return value


def _pairs(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(
                "--plan", "must read key=value,key=value", pair, "write dp=8,tp=4,pp=2"
            )
        if key.strip() in fields:
            raise InputError(f"plan.{key.strip()}", "must be given once", text, "drop one of them")
        fields[key.strip()] = _scalar(value.strip())
    return fields


def _scalar(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    parts = text.split("-")
    return tuple(map(_scalar, parts)) if all(parts) and len(parts) > 1 else text


def _megatron(text: str, devices: int, layers: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError("--plan", "must close its quotes", text, "add the missing one") from error
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if equals:
            words.insert(0, value)
        if flag in _SWITCHES and not equals:
            name, setting = _SWITCHES[flag]
            fields[name] = setting
        elif flag in _MEGATRON and words:
            fields[_MEGATRON[flag]] = _scalar(words.pop(0))
        else:
            known = ", ".join((*_MEGATRON, *_SWITCHES))
            raise InputError(
                "--plan", "must consist of known flags with values", flag, f"use {known}"
            )
    _settle_recomputation(fields)
    if "sharding" in fields:
        strategy = fields.pop("sharding")
        if strategy not in _SHARDING:
            raise InputError(
                "--data-parallel-sharding-strategy", "must be one of Megatron-LM's", strategy,
                "pick " + ", ".join(_SHARDING),
            )  # fmt: skip
        fields["zero"] = _SHARDING[strategy]
    tp, cp, pp = (_whole(name, fields.get(name, 1)) for name in ("tp", "cp", "pp"))
    if "chunk_blocks" in fields:
        chunk, blocks = _whole("interleave", fields.pop("chunk_blocks")), layers - 2
        if blocks % (pp * chunk):
            raise InputError(
                "--num-layers-per-virtual-pipeline-stage",
                f"times pp = {pp} must divide the model's {blocks} blocks", chunk,
                "choose a divisor",
            )  # fmt: skip
        fields["interleave"] = blocks // (pp * chunk)
    if "dp" not in fields:
        fields["dp"] = max(1, devices // (tp * cp * pp))
    return fields


def _settle_recomputation(fields: dict[str, Any]) -> None:
    """Full recomputation keeps each layer's input: Megatron-LM's uniform method, one layer each."""
    method, layers = fields.pop("method", "uniform"), fields.pop("uniform", 1)
    if (method, layers) != ("uniform", 1):
        raise InputError(
            "--recompute-method", "must be uniform with one layer each",
            f"{method}, {layers}", "recompute every layer, or give stage_recompute",
        )  # fmt: skip


def _file(path: Path) -> dict[str, Any]:
    name = str(path)
    if not os.path.isfile(name):
        raise InputError(
            "--plan", "must be a JSON file, key=value pairs or Megatron flags", name,
            "check the path",
        )  # fmt: skip
    try:
        document = json.loads(read_text(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(name, "must be valid JSON", str(error), "correct the file") from error
    if isinstance(document, dict):
        document = document.get("plan", document)
    if not isinstance(document, dict):
        raise InputError(name, "must hold a plan", document, "give what plan prints, if feasible")
    return document
