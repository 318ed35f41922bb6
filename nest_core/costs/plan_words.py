"""A plan in words: one spelling and one order of its fields, wherever a plan is written."""

from collections.abc import Mapping
from typing import Any

from nest_core.costs.layout import seatings_among
from nest_core.workload.offload import Offload

__all__ = [
    "SCHEDULES_IN_WORDS",
    "degrees_in_words",
    "plan_columns",
    "plan_fields",
    "plan_words",
    "schedule_words",
]

SCHEDULES_IN_WORDS = {
    "1f1b": "1F1B",
    "interleaved": "interleaved 1F1B",
    "gpipe": "GPipe",
    "zb_h1": "ZB-H1",
    "zb_1p": "ZB-1p",
    "zb_2p": "ZB-2p",
    "interleaved_zb": "interleaved ZB-1p",
    "zbv": "ZB-V",
    "dualpipev": "DualPipeV",
    "zero-bubble": "zero bubble",
}
_DEGREES = ("dp", "tp", "devices per stage", "pp", "cp", "ep", "etp")


def plan_columns(plan: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a plan decides, by the names of columns; None where there is no plan.

    Parameters
    ----------
    plan : mapping or None
        The JSON of a plan.
    """
    fields = plan or {}
    return {
        **{name: fields.get(name) for name in ("dp", "tp", "pp", "cp", "ep")},
        "micro_batch_sequences": fields.get("micro_batch"),
        "zero": fields.get("zero"),
        "recompute": fields.get("recompute"),
        "schedule": fields.get("schedule"),
    }


def plan_fields(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return what a plan decides, but its cuts, by name; cp, ep and etp where they divide anything.

    Parameters
    ----------
    plan : mapping
        The JSON of a plan, or the fields of a `Point` or of a measured run; what it lacks is left
        out.

    Examples
    --------
    >>> plan_fields({"tp": 8, "dp": 4, "pp": 1, "cp": 1, "ep": 2, "etp": 1})
    {'dp': '4', 'tp': '8', 'pp': '1', 'ep': '2', 'etp': '1'}
    """
    stages = plan.get("stage_strategies", ())
    widths = [stage["tp"] * stage["cp"] for stage in stages]
    fields: dict[str, Any] = {axis: plan.get(axis) for axis in _DEGREES}
    fields |= {axis: None for axis in ("cp", "ep") if plan.get(axis) == 1}
    if not plan.get("etp") or plan["etp"] == plan.get("tp"):
        fields["etp"] = None
    if len(set(widths)) > 1:
        fields |= {"tp": None, "devices per stage": ", ".join(map(str, widths))}
    if plan.get("tp", 1) > 1 and "sp" in plan:
        fields["sp"] = "on" if plan["sp"] else "off"
    group = plan.get("zero_group") or "all"
    zero = f"{plan.get('zero')} in groups of {group}" if group != "all" else plan.get("zero")
    fields |= {
        "micro-batch": plan.get("micro_batch"),
        "ZeRO": "by stage" if len({stage["zero"] for stage in stages}) > 1 else zero,
        "recomputation": plan.get("recompute") or None,
    }
    if "schedule" in plan:
        fields["schedule"] = schedule_words(plan["schedule"], plan.get("interleave", 1))
    if "offload" in plan:
        fields["offload"] = Offload(**plan["offload"]).words
    order = plan.get("device_order", "natural")
    if not isinstance(order, str):
        fields["seating"] = "by hand"
    elif seatings_among([order]):
        fields["seating"] = order
    return {name: str(value) for name, value in fields.items() if value is not None}


def degrees_in_words(plan: Mapping[str, Any]) -> str:
    """Return the degrees of parallelism among `plan_fields`.

    Examples
    --------
    >>> degrees_in_words({"dp": 4, "tp": 8, "pp": 2, "cp": 1})
    'dp 4, tp 8, pp 2'
    """
    fields = plan_fields(plan)
    return ", ".join(f"{name} {fields[name]}" for name in _DEGREES if name in fields)


def plan_words(plan: Mapping[str, Any]) -> str:
    """Return `plan_fields` in one line.

    Examples
    --------
    >>> plan_words({"dp": 4, "tp": 8, "pp": 2, "micro_batch": 1, "zero": 1, "schedule": "1f1b"})
    'dp 4, tp 8, pp 2, micro-batch 1, ZeRO 1, schedule 1F1B'
    """
    return ", ".join(f"{name} {value}" for name, value in plan_fields(plan).items())


def schedule_words(schedule: str, interleave: int = 1) -> str:
    """Return a schedule's name with its virtual stages.

    Examples
    --------
    >>> schedule_words("gpipe"), schedule_words("interleaved", 3)
    ('GPipe', 'interleaved 1F1B with 3 virtual stages')
    """
    virtual = f" with {interleave} virtual stages" if interleave > 1 else ""
    return SCHEDULES_IN_WORDS[schedule] + virtual
