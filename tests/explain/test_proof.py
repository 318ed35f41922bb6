"""What a certificate says that it is over."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from nest_core.documents.schema import SearchTable
from nest_core.planner import Certificate, SearchSpace
from nest_core.report.explain.summary import axes_of, proven_over
from nest_core.workload.offload import NO_OFFLOAD, Offload

SPACE = SearchSpace(
    tp=(1, 2),
    sp=(False,),
    dp=(1, 2, 4),
    pp=(1, 2),
    micro_batch=(1,),
    schedules=("1f1b", "interleaved"),
    interleave=(1, 2, 3),
)
OTHER = {
    "tp": (1, 4),
    "sp": (False, True),
    "dp": (1, 2, 8),
    "pp": (2,),
    "micro_batch": (1, 2),
    "zero": (0, 1),
    "recompute": ("none", "block:4"),
    "orders": (("tp", "cp", "dp", "pp"),),
    "device_orders": ("natural", "7 per node"),
    "idle_devices": False,
    "cp": (1, 2),
    "ep": (1, 8),
    "schedules": ("1f1b",),
    "interleave": (1, 2),
    "mixed": True,
    "as_needed": True,
    "etp": (1,),
    "layouts": "uneven",
    "zero_groups": (0, 8),
    "offload": (NO_OFFLOAD, Offload(optimizer=1.0)),
}
ASKED_OTHERWISE = {"seating", "pad_batch", "time_limit_s", "top"}
"""Seatings are among device orders, padding shows in what dp and micro-batch may be."""
OF_SOFTWARE = {"sharded_gradients"}
"""What the stack says of a space; no search chooses it."""


def _words(space: SearchSpace) -> str:
    return proven_over(Certificate(1.0, 0.0, True, 1, 1, 0, 0, space))


def test_every_axis_of_a_search_is_named():
    """Layouts of virtual stages and offload were not."""
    assert set(axes_of(SPACE)) == set(SearchTable.model_fields) - ASKED_OTHERWISE
    assert OTHER.keys() == {field.name for field in fields(SearchSpace)} - OF_SOFTWARE - {"seating"}


@pytest.mark.parametrize("name", OTHER)
def test_a_certificate_over_another_set_reads_otherwise(name):
    other = replace(SPACE, **{name: OTHER[name]})
    changed = [key for key, value in axes_of(SPACE).items() if axes_of(other)[key] != value]
    assert len(changed) == 1
    assert _words(other) != _words(SPACE)


def test_what_one_set_says_in_words():
    assert _words(replace(SPACE, **{"layouts": "uneven", "offload": OTHER["offload"]})) == (
        "Over tp 1 and 2, cp 1, ep 1, etp as tp, pp 1 and 2, dp 1 to 4, micro-batch 1, without sp; "
        "ZeRO 0 to 3 over all ranks; recomputation none, selective and full; "
        "offload none or 100 % of optimizer states; "
        "schedules 1F1B and interleaved 1F1B with 2 and 3 virtual stages in even and uneven "
        "layouts; uniform stages cut at any layer; rank orders tp-cp-dp-pp and tp-cp-pp-dp; "
        "ranks on consecutive devices (natural), some idle or none."
    )
