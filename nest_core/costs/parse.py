"""Plans as people give them: JSON, ``dp=8,tp=4,pp=2,…``, or a Megatron-LM command.

JSON is a plan's fields, or a strategy file of Galvatron's (`nest_core.costs.galvatron`).

What is left out takes a stated default: degree 1 (of etp tp), ZeRO 0 (over all that share weights),
no recomputation, micro-batch 1, 1F1B (interleaved where a stage has several virtual stages),
Megatron-LM's axis order, and layers cut as evenly as they go.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nest_core.costs.galvatron import is_strategy, read_strategy
from nest_core.costs.layout import DEVICE_ORDERS, SEATING, DeviceOrder
from nest_core.costs.megatron import read_flags
from nest_core.costs.megatron_job import Setting
from nest_core.costs.plan import SCHEDULES, V_SHAPED, Plan, Point, StageStrategy, even_cuts
from nest_core.costs.shell import has_flags
from nest_core.documents import InputError, parsed_json, read_text, require
from nest_core.workload import offloading, recomputation

__all__ = ["Pasted", "parse_plan", "read_given", "read_pasted", "read_plan"]

_DEGREES = ("tp", "dp", "pp", "cp", "ep", "micro_batch", "interleave")
_KNOWN = (
    *_DEGREES,
    "etp",
    "sp",
    "zero",
    "zero_group",
    "schedule",
    "recompute",
    "order",
    "device_order",
    "cuts",
    "stage_recompute",
    "stage_strategies",
    "devices_used",
    "offload",
)
_STRATEGY = ("tp", "sp", "cp", "ep", "zero", "etp", "zero_group")
_BETWEEN = re.compile(r"\s*[,;\n]\s*|\s+(?=\w+\s*=)")


@dataclass(frozen=True, slots=True)
class Pasted:
    """A plan that a person typed or pasted.

    Parameters
    ----------
    plan : Plan
    settings : dict
        What the text says is trained and how, by the keys of scenario files.
    unpriced : tuple of str
        Flags that may move time or memory and have no price here.
    ignored : tuple of str
        Flags that change nothing in a steady iteration.
    notes : tuple of str
        What in the text contradicts the fabric, sentence by sentence; the fabric counts.
    hidden : mapping of str to bool
        Which classes of traffic the text hides behind compute; what it leaves open is missing.
    """

    plan: Plan
    settings: Mapping[str, Setting] = field(default_factory=dict)
    unpriced: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: Mapping[str, bool] = field(default_factory=dict)


def read_plan(text: str, layers: int, devices: int, *, whole_experts: bool = False) -> Plan:
    """Return a plan from a file's name, ``key=value`` pairs or Megatron-LM flags.

    Parameters
    ----------
    layers, devices : int
        Of the problem: for default cuts, and for Megatron's data-parallel degree, which is what
        the other degrees leave.
    whole_experts : bool
        Whether experts are whole where a plan does not say: etp 1 and not tp.

    Raises
    ------
    InputError
        If the text is none of these or names an unknown key.
    """
    return read_given(text, layers, devices, whole_experts=whole_experts).plan


def read_given(text: str, layers: int, devices: int, *, whole_experts: bool = False) -> Pasted:
    """Return a plan from a file's name or from text; a file holds JSON or a Megatron-LM command.

    Parameters and errors as of `read_pasted`.
    """
    inline = has_flags(text) or "=" in text or text.lstrip().startswith("{")
    if inline and not os.path.isfile(text):
        return read_pasted(text, layers, devices, whole_experts=whole_experts)
    content = _file(text)
    if not content.lstrip().startswith(("{", "[")) and has_flags(content):
        return read_pasted(content, layers, devices, whole_experts=whole_experts)
    return _of_fields(_document(content, text), layers, devices, whole_experts)


def read_pasted(text: str, layers: int, devices: int, *, whole_experts: bool = False) -> Pasted:
    """Return a plan from text alone: ``key=value`` pairs, a JSON object, or a Megatron-LM command.

    Pairs are divided by commas, semicolons or white space; files are never opened.

    Parameters
    ----------
    layers, devices : int
        Of the problem; see `nest_core.costs.megatron.read_flags`.
    whole_experts : bool
        See `read_plan`; a command that leaves it out divides experts as Megatron-LM does.

    Raises
    ------
    InputError
        If the text is none of these, names an unknown key, or contradicts itself.
    """
    if has_flags(text):
        flags = read_flags(text, layers, devices)
        return Pasted(
            parse_plan(flags.fields, layers),
            flags.job.settings,
            tuple(flags.unpriced),
            flags.job.harmless,
            tuple(flags.notes),
            flags.hidden,
        )
    fields = _document(text, "plan") if text.lstrip().startswith("{") else _pairs(text)
    return _of_fields(fields, layers, devices, whole_experts)


def _of_fields(fields: Mapping[str, Any], layers: int, devices: int, whole_experts: bool) -> Pasted:
    """Return a plan from its fields, or from Galvatron's."""
    if is_strategy(fields):
        strategy = read_strategy(fields, layers, devices)
        plan = parse_plan(strategy.fields, layers, whole_experts=whole_experts)
        return Pasted(plan, strategy.settings, notes=strategy.notes)
    return Pasted(parse_plan(fields, layers, whole_experts=whole_experts))


def parse_plan(fields: Mapping[str, Any], layers: int, *, whole_experts: bool = False) -> Plan:
    """Return a plan from the fields that ``nest-studio plan`` prints.

    Parameters
    ----------
    whole_experts : bool
        See `read_plan`.

    Raises
    ------
    InputError
        For an unknown field or a value of the wrong kind. Whether the plan fits a problem is
        `nest_core.costs.check_plan`'s business.
    """
    for name, value in fields.items():
        require(
            name in _KNOWN,
            f"plan.{name}",
            "is not a known field",
            value,
            "use " + ", ".join(_KNOWN),
        )
    if fields.get("schedule") in V_SHAPED:
        fields = {"interleave": 2, **fields}
    degrees = {name: _whole(name, fields.get(name, 1)) for name in _DEGREES}
    if whole_experts:
        fields = {"etp": 1, **fields}
    sp = fields.get("sp", False)
    require(isinstance(sp, bool), "plan.sp", "must be true or false", sp, "correct it")
    order = _sequence(fields, "order") or ("tp", "cp", "dp", "pp")
    require(
        sorted(map(str, order)) == ["cp", "dp", "pp", "tp"],
        "plan.order",
        "must name tp, cp, dp and pp once",
        list(order),
        "correct it",
    )
    device_order = _device_order(fields.get("device_order", "natural"))
    pp, virtual_stages = degrees["pp"], degrees["interleave"]
    schedule = fields.get("schedule", "1f1b" if virtual_stages == 1 else "interleaved")
    require(
        schedule in SCHEDULES,
        "plan.schedule",
        "must be one of the schedules",
        schedule,
        "pick " + ", ".join(SCHEDULES),
    )
    require(pp <= layers, "plan.pp", f"must not exceed the model's {layers} layers", pp, "lower pp")
    require(
        pp * virtual_stages <= layers,
        "plan.interleave",
        f"times pp = {pp} must not exceed the model's {layers} layers",
        virtual_stages,
        "lower it",
    )
    zero = _whole("zero", fields.get("zero", 0), lowest=0)
    etp = _whole("etp", fields.get("etp", degrees["tp"]))
    point = Point(
        sp=sp,
        zero=zero,
        order=order,
        device_order=device_order,
        schedule=schedule,
        etp=etp,
        zero_group=_zero_group(fields.get("zero_group", "all"), degrees["dp"] * degrees["cp"]),
        **degrees,
    )
    cuts = tuple(_whole("cuts", cut, lowest=0) for cut in _sequence(fields, "cuts"))
    return Plan(
        point,
        cuts or even_cuts(layers, pp * virtual_stages),
        _recompute(fields, pp),
        _strategies(fields),
        offloading(fields.get("offload", "none"), "plan.offload"),
    )


def _recompute(fields: Mapping[str, Any], pp: int) -> tuple[str, ...]:
    listed = _sequence(fields, "stage_recompute")
    if listed:
        return tuple(recomputation(entry, "plan.stage_recompute") for entry in listed)
    common = fields.get("recompute", "none")
    require(
        common != "mixed",
        "plan.recompute",
        "must say what",
        common,
        "give stage_recompute for a mixed plan",
    )
    return (recomputation(common, "plan.recompute"),) * pp


def _device_order(value: Any) -> DeviceOrder:
    """Return a named order, or the devices of ranks 0, 1, 2, … one after another."""
    if isinstance(value, (list, tuple)):
        return tuple(_whole("device_order", device, lowest=0) for device in value)
    seating = isinstance(value, str) and SEATING.fullmatch(value) is not None
    require(
        value in DEVICE_ORDERS or seating,
        "plan.device_order",
        "must be one of the orders",
        value,
        "pick "
        + ", ".join(DEVICE_ORDERS)
        + ", a seating such as 8 per node, or list the devices of all ranks",
    )
    return str(value)


def _strategies(fields: Mapping[str, Any]) -> tuple[StageStrategy, ...]:
    """Return what stages do where they differ; what one leaves out is as in the point."""
    strategies = []
    for entry in _sequence(fields, "stage_strategies"):
        require(
            isinstance(entry, Mapping) and set(entry) <= set(_STRATEGY),
            "plan.stage_strategies",
            "must hold objects of " + ", ".join(_STRATEGY),
            entry,
            "correct it",
        )
        sp = entry.get("sp", fields.get("sp", False))
        require(
            isinstance(sp, bool),
            "plan.stage_strategies",
            "must have sp true or false",
            sp,
            "correct",
        )
        tp, cp, ep = (
            _whole(name, entry.get(name, fields.get(name, 1))) for name in ("tp", "cp", "ep")
        )
        zero = _whole("zero", entry.get("zero", fields.get("zero", 0)), lowest=0)
        etp = _whole("etp", entry.get("etp", fields.get("etp", tp)))
        group = entry.get("zero_group", fields.get("zero_group", "all"))
        sharers = _whole("dp", fields.get("dp", 1)) * cp
        strategies.append(StageStrategy(tp, sp, cp, ep, zero, etp, _zero_group(group, sharers)))
    return tuple(strategies)


def _zero_group(value: Any, sharers: int) -> int:
    """Ranks that ZeRO shards over; 0 for all of those that share dense weights."""
    if value == "all":
        return 0
    require(
        not isinstance(value, bool) and isinstance(value, int) and (value >= 1),
        "plan.zero_group",
        f"must be all or a divisor of dp x cp = {sharers}",
        value,
        "pick one",
    )
    return 0 if value == sharers else value


def _sequence(fields: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """Return a list of the fields; empty where it is left out."""
    value = fields.get(name, ())
    require(
        isinstance(value, (list, tuple)),
        f"plan.{name}",
        "must be a list",
        value,
        "give a JSON list, or join its entries with -",
    )
    return tuple(value)


def _whole(name: str, value: Any, *, lowest: int = 1) -> int:
    require(
        isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= 10**7,
        f"plan.{name}",
        f"must be a whole number from {lowest} to 10,000,000",
        value,
        "correct it",
    )
    return int(value)


def _pairs(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for pair in _BETWEEN.split(text.strip()):
        key, equals, value = pair.partition("=")
        require(equals, "plan", "must read key=value,key=value", pair, "write dp=8,tp=4,pp=2")
        require(
            key.strip() not in fields,
            f"plan.{key.strip()}",
            "must be given once",
            text,
            "drop one of them",
        )
        fields[key.strip()] = _scalar(value.strip())
    return fields


def _scalar(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    parts = text.split("-")
    return tuple(map(_scalar, parts)) if all(parts) and len(parts) > 1 else text


def _file(name: str) -> str:
    require(
        os.path.exists(name),
        "plan",
        "must be a JSON file, key=value pairs or Megatron flags",
        name,
        "check the path",
    )
    return read_text(Path(name))


def _document(text: str, name: str) -> dict[str, Any]:
    document = parsed_json(text, name, "correct it")
    if isinstance(document, dict):
        document = document.get("plan", document)
    if not isinstance(document, dict):
        raise InputError(name, "must hold a plan", document, "give what plan prints, if feasible")
    return document
