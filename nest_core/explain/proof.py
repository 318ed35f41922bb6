"""What a certificate is over, axis by axis: for files, and in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nest_core.costs.layout import seatings_among
from nest_core.costs.plan_words import SCHEDULES_IN_WORDS
from nest_core.documents.units import join_words
from nest_core.planner import Certificate, SearchSpace

__all__ = ["axes_of", "proven_over"]

_LISTED = 16
"""So many degrees are listed; of more the bounds are told."""


def axes_of(space: SearchSpace) -> dict[str, Any]:
    """The axes that a search was over, by the keys and in the values of ``[search]``.

    Degrees are those that are valid on their own; ``etp`` is ``tp`` where it is none of its own.

    Examples
    --------
    >>> dp = tuple(range(1, 65))
    >>> space = SearchSpace(tp=(1, 2), sp=(False,), dp=dp, pp=(1,), micro_batch=(1,))
    >>> axes = axes_of(space)
    >>> axes["tp"], axes["dp"], axes["layouts"], axes["offload"]
    ([1, 2], {'min': 1, 'max': 64}, 'even', ['none'])
    """
    return {
        **{axis: _degrees(getattr(space, axis)) for axis in ("tp", "cp", "ep")},
        "etp": _degrees(space.etp) if space.etp else "tp",
        **{axis: _degrees(getattr(space, axis)) for axis in ("pp", "dp")},
        "sp": list(space.sp),
        "micro_batch_sequences": _degrees(space.micro_batch),
        "zero": list(space.zero),
        "zero_group": [group or "all" for group in space.zero_groups],
        "recompute": list(space.recompute),
        "offload": [offload.shares or "none" for offload in space.offload],
        "schedule": list(space.schedules),
        "interleave": _degrees(space.interleave),
        "layouts": space.layouts,
        "order": [list(order) for order in space.orders],
        "device_order": list(space.device_orders),
        "idle_devices": space.idle_devices,
        "stage_strategies": "mixed" if space.mixed else "uniform",
        "memory_rule": "as_needed" if space.as_needed else "joint",
    }


def proven_over(certificate: Certificate) -> str:
    """The same in one sentence.

    Examples
    --------
    >>> space = SearchSpace(tp=(1, 2, 4, 8), sp=(True,), dp=(4, 8), pp=(1,), micro_batch=(1,),
    ...     orders=(("tp", "cp", "dp", "pp"),), device_orders=("rack",))
    >>> print(proven_over(Certificate(1.0, 0.0, True, 1, 1, 0, 0, space)).replace("; ", ";\\n"))
    Over tp 1 to 8, cp 1, ep 1, etp as tp, pp 1, dp 4 and 8, micro-batch 1, with sp;
    ZeRO 0 to 3 over all ranks;
    recomputation none, selective and full;
    offload none;
    schedule 1F1B;
    uniform stages cut at any layer;
    rank order tp-cp-dp-pp;
    ranks on consecutive devices (rack), some idle or none.
    """
    space = certificate.space
    degrees = {
        "tp": space.tp,
        "cp": space.cp,
        "ep": space.ep,
        "etp": space.etp,
        "pp": space.pp,
        "dp": space.dp,
        "micro-batch": space.micro_batch,
    }
    parts = [
        "Over "
        + ", ".join(f"{name} {_values(every)}" for name, every in degrees.items())
        + f", {'with and without' if len(space.sp) > 1 else 'with' if space.sp[0] else 'without'}"
        " sp",
        f"ZeRO {_values(space.zero)} over "
        f"{join_words([str(n or 'all') for n in space.zero_groups])} "
        "ranks",
        f"recomputation {join_words(space.recompute)}",
        f"offload {join_words([offload.words or 'none' for offload in space.offload], 'or')}",
        _schedules(space),
        f"{'mixed' if space.mixed else 'uniform'} stages cut at any layer"
        + (", ZeRO and recomputation as needed" if space.as_needed else ""),
        _counted("rank order", ["-".join(order) for order in space.orders]),
        _seatings(space),
    ]
    return "; ".join(parts) + "."


def _degrees(values: tuple[int, ...]) -> list[int] | dict[str, int]:
    if len(values) <= _LISTED:
        return list(values)
    return {"min": min(values), "max": max(values)}


def _values(values: tuple[int, ...]) -> str:
    if not values:
        return "as tp"
    if len(values) <= 2:
        return join_words([str(value) for value in values])
    return f"{min(values)} to {max(values)}"


def _schedules(space: SearchSpace) -> str:
    schedules = _counted("schedule", [SCHEDULES_IN_WORDS[name] for name in space.schedules])
    if "interleaved" not in space.schedules:
        return schedules
    several = tuple(v for v in space.interleave if v > 1)
    layouts = "even" if space.layouts == "even" else "even and uneven"
    return f"{schedules} with {_values(several)} virtual stages in {layouts} layouts"


def _seatings(space: SearchSpace) -> str:
    seatings = seatings_among(space.device_orders)
    straight = [order for order in space.device_orders if order not in seatings]
    text = f"ranks on consecutive devices ({', '.join(straight)})"
    if seatings:
        text += f" or in {len(seatings)} {_counted('seating', seatings, ': ')}"
    return text + (", some idle or none" if space.idle_devices else ", none idle")


def _counted(noun: str, names: Sequence[str], of: str = " ") -> str:
    return f"{noun}{'s' if len(names) > 1 else ''}{of}{join_words(names)}"
