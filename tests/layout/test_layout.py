"""Ranks and devices: one device per rank, axes in order, idle devices marked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nest_core.costs.layout import AXES, Layout

DEGREES = [(1, 1, 1, 1), (2, 1, 3, 4), (4, 2, 3, 1), (1, 3, 1, 5), (3, 2, 2, 2), (8, 1, 16, 1)]
ORDERS = list(itertools.permutations(AXES))


def layouts() -> list[Layout]:
    return [Layout(*degrees, order) for degrees in DEGREES for order in ORDERS]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", layouts(), ids=repr)
def test_every_rank_has_one_device_and_every_used_device_one_rank(layout):
    """A failure: two ranks share a device, or one in the middle idles."""
    placed = layout.devices
    assert placed.shape == (layout.pp, layout.dp * layout.cp, layout.tp)
    used = layout.tp * layout.cp * layout.dp * layout.pp
    assert layout.devices_used == used
    assert sorted(placed.reshape(-1).tolist()) == list(range(used))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", layouts(), ids=repr)
def test_neighbours_on_an_axis_are_a_stride_apart(layout):
    """The stride is the product of the degrees inside; index arithmetic, written out."""
    placed = layout.devices.reshape(layout.pp, layout.dp, layout.cp, layout.tp)
    for number, axis in enumerate(("pp", "dp", "cp", "tp")):
        inside = layout.order[: layout.order.index(axis)]
        stride = int(np.prod([getattr(layout, name) for name in inside]))
        assert layout.stride(axis) == stride
        assert (np.diff(placed, axis=number) == stride).all()


def test_the_first_axis_of_the_order_is_innermost():
    """Megatron-LM's order keeps the replicas of a stage side by side, the paper's its stages."""
    megatron = Layout(tp=2, cp=1, dp=3, pp=2, order=("tp", "cp", "dp", "pp"))
    assert megatron.devices[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert megatron.devices[1].tolist() == [[6, 7], [8, 9], [10, 11]]
    paper = Layout(tp=2, cp=1, dp=3, pp=2, order=("tp", "cp", "pp", "dp"))
    assert paper.devices[:, 0].tolist() == [[0, 1], [2, 3]]
    assert paper.devices[:, 1].tolist() == [[4, 5], [6, 7]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", layouts(), ids=repr)
def test_painted_devices_say_who_sits_there(layout):
    """`stage_of` inverts `devices`; what is left over is -1."""
    stages = layout.stage_of(total := layout.devices_used + 5)
    assert stages.shape == (total,)
    for (stage, _, _), device in np.ndenumerate(layout.devices):
        assert stages[device] == stage
    assert (stages[layout.devices_used :] == -1).all()


def test_groups_are_in_ascending_device_order():
    """What `nest_core.network.collectives` asks of its groups."""
    for order in ORDERS:
        placed = Layout(4, 1, 6, 3, order).devices
        assert all((np.diff(placed, axis=axis) > 0).all() for axis in range(3))


def test_an_unknown_axis_has_no_stride():
    with pytest.raises(KeyError):
        Layout(1, 1, 1, 1, AXES).stride("ep")
