"""The second meaning of oversubscription: a radix divided anew."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from clos_specs import clos, counts
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Clos
from nest_core.fabric.files import build_fabric
from nest_core.network import collapse

MEANINGS = ("remove_uplinks", "split_radix")
RATIOS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 8.0, 15.0, 31.0, 1000.0]


def split(devices: int, radix: int, tiers: int, *ratios: float, **changes: Any) -> Clos:
    return clos(devices, radix, tiers, *ratios, oversubscribe="split_radix", **changes)


@pytest.mark.parametrize("radix", [32, 63, 64, 128, 144])
@pytest.mark.parametrize("ratio", RATIOS)
def test_a_leaf_divides_its_radix_by_the_formula(radix, ratio):
    """d = floor(k o / (o + 1)) down, the other k - d up: one more down is more than asked for.

    Of an odd radix at 1:1 a port stays free: no leaf has more ports up than down.
    """
    size = split(radix, radix, 2, ratio, devices_per_node=1, nics_per_node=1).sizing
    down = min(radix - 1, math.floor(radix * ratio / (ratio + 1)))
    assert (size.down, size.up) == (down, min(down, radix - down))
    assert size.down / size.up <= max(ratio, 1)
    if size.up > 1:
        assert (size.down + 1) / (size.up - 1) > ratio


@st.composite
def fabrics(draw: st.DrawFn, ratio: st.SearchStrategy[float]) -> Clos:
    """Fabrics under the second meaning, of every kind, two tiers and three."""
    kind = draw(st.sampled_from(["leaf_spine", "rail_optimised", "rail_only"]))
    rails = draw(st.integers(1, 4)) if kind.startswith("rail") else 1
    links = draw(st.integers(1, 5))
    radix, tiers = draw(st.integers(2 * max(links, rails), 160)), draw(st.integers(2, 3))
    pods = draw(st.sampled_from(["units", "rails"])) if kind == "rail_optimised" else "units"
    nodes = draw(st.integers(1, 400))
    ratios = [draw(ratio) for _ in range(tiers - 1)]
    try:
        return split(
            nodes * rails,
            radix,
            tiers,
            *ratios,
            kind=kind,
            devices_per_node=rails,
            nics_per_node=rails * links,
            rails=rails,
            pods=pods,
            planes=draw(st.integers(1, 2)),
        )
    except InputError:
        assume(False)
        raise


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(fabrics(st.floats(1, 40, allow_nan=False)))
def test_ports_never_exceed_the_radix_and_the_ratio_is_within_a_port(fabric):
    """A failure: a fabric that cannot be cabled, or one with another ratio than was asked for."""
    size, radix, ratios = fabric.sizing, fabric.radix, fabric.oversubscription
    assert size.down + size.up <= radix
    assert 1 <= size.up <= size.down
    most = math.floor(radix * ratios[0] / (ratios[0] + 1) + 1e-6)
    links = fabric.nics_per_node // fabric.rails
    assert size.down == min(most, radix - 1) // links * links
    _within_a_port(size.down, size.up, ratios[0])
    for leaves, spines, up in zip(size.leaves, size.spines, size.spine_up, strict=True):
        down, spare = divmod(leaves * size.up, spines)
        assert spare == 0
        assert down + up <= radix
        if fabric.tiers == 3:
            _within_a_port(down, up, ratios[1])
    if fabric.tiers == 3:
        tops = fabric.rails if fabric.kind == "rail_only" else 1
        ends = sum(s * up for s, up in zip(size.spines, size.spine_up, strict=True))
        assert ends <= size.cores * tops * radix
    for tier in fabric.switch_ports():
        assert tier.down + tier.up + tier.free == tier.radix
        assert tier.free >= 0


def _within_a_port(down: int, up: int, ratio: float) -> None:
    """Moving one port over, or one uplink more or less, brackets the ratio asked for."""
    if up > 1:
        assert (down + 1) / (up - 1) >= ratio * (1 - 1e-9)
    assert down / (up + 1) <= ratio * (1 + 1e-9)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(fabrics(st.just(1.0)))
def test_both_meanings_are_one_at_full_bisection(fabric):
    plain = clos(
        fabric.slots,
        fabric.radix,
        fabric.tiers,
        kind=fabric.kind,
        devices_per_node=fabric.devices_per_node,
        nics_per_node=fabric.nics_per_node,
        rails=fabric.rails,
        pods=fabric.pods,
        planes=fabric.planes,
    )
    assert plain.sizing == fabric.sizing


@pytest.mark.sampled(12)
@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize("kind", ["leaf_spine", "rail_optimised", "rail_only"])
@pytest.mark.parametrize(("devices", "tiers"), [(1024, 2), (2000, 2), (8192, 3)])
def test_more_oversubscription_never_costs_more(devices, tiers, kind, meaning):
    """Leaves, uplinks and the spines that their ports need fall as the ratio grows.

    Uplinks may not where a leaf divides its radix by whole nodes: one that takes another node of
    eight links at 3:1 has 16 uplinks, just before that 13.
    Spines in place may rise where uplinks have few divisors (13 or 11 of them spread evenly over
    13 or 11 switches only), so switches are compared at ratios whose uplinks halve.
    """

    def sized(ratio: float) -> Clos:
        ratios = (ratio,) * (tiers - 1)
        return clos(devices, 64, tiers, *ratios, kind=kind, oversubscribe=meaning)

    rows = []
    whole_nodes = kind == "leaf_spine" and meaning == "split_radix"
    for ratio in RATIOS if whole_nodes else [1 + step / 16 for step in range(160)] + RATIOS[-3:]:
        fabric = sized(ratio)
        switches, links = counts(fabric)
        needed = [-(-ends // 64) for ends in links[1:]]
        rows.append((switches[0], links[1], needed[0]))
    for more, less in pairwise(rows):
        assert all(after <= before for before, after in zip(more, less, strict=True))
    even = (1, 3, 7, 15, 31) if meaning == "split_radix" else (1, 2, 4, 8, 16, 32)
    totals = [sum(counts(sized(float(ratio)))[0]) for ratio in even]
    assert totals == sorted(totals, reverse=True)


@pytest.mark.parametrize("ratio", [2.0, 3.0, 7.0])
def test_one_meaning_keeps_the_leaf_and_the_other_moves_it(ratio):
    """1,024 devices on radix 64: leaves of 32 devices whatever the ratio, or of more."""
    base = clos(1024, 64, 2, kind="rail_optimised")
    kept = clos(1024, 64, 2, ratio, kind="rail_optimised")
    moved = split(1024, 64, 2, ratio, kind="rail_optimised")
    down = math.floor(64 * ratio / (ratio + 1))
    assert base.sizing.nodes_per_unit == kept.sizing.nodes_per_unit == 32
    assert moved.sizing.nodes_per_unit == down
    for fabric, of_leaf in ((kept, 32), (moved, down)):
        assert fabric.group_of(1).tolist().count(0) == of_leaf
    assert kept.switch_counts()["leaf"] == 32
    assert moved.switch_counts()["leaf"] == 8 * math.ceil(128 / down) <= 32


@pytest.mark.parametrize("ratio", [3.0, 7.0])
def test_levels_move_with_the_leaf(ratio):
    """The leaf level's groups, and the bandwidth of a device above it, with all sending."""
    kept, moved = (
        collapse(clos(1024, 64, 2, ratio, oversubscribe=meaning)).levels for meaning in MEANINGS
    )
    leaf = math.floor(64 * ratio / (ratio + 1))  # 48 and 56: six and seven whole nodes
    assert [level.group_size for level in kept] == [8, 32, 1024]
    assert [level.group_size for level in moved] == [8, leaf, 1024]
    assert moved[1].groups == math.ceil(1024 / leaf)
    assert moved[2].bandwidth_Bps == pytest.approx(50e9 / ratio)
    realised = 32 / round(32 / ratio)
    assert kept[2].bandwidth_Bps == pytest.approx(50e9 / realised)


def test_pods_grow_with_the_spines_down_ports():
    """3:1 on radix 64: 48 of a leaf's ports down, and 48 leaves in a pod."""
    fabric = split(48 * 48 * 2, 64, 3, 3.0, 3.0, devices_per_node=1, nics_per_node=1)
    size = fabric.sizing
    assert size.leaves == (48, 48)
    assert size.spines == (16, 16)  # 48 leaves of 16 uplinks on 48 ports each
    assert size.spine_up == (16, 16)
    assert size.cores == 2 * 16 * 16 // 64
    by_rail = split(48 * 48 * 8, 64, 3, 3.0, 3.0, kind="rail_optimised", pods="rails").sizing
    assert by_rail.leaves == (48,) * 8
    assert [level.group_size for level in collapse(fabric).levels] == [1, 48, 48 * 48, fabric.slots]


def test_whole_nodes_leave_ports_free():
    """Nodes of eight links on one leaf: 6 of them on 51 ports, and a quarter of 48 up."""
    (leaf, spine) = split(1024, 64, 2, 4.0).switch_ports()
    assert (leaf.down, leaf.up, leaf.free) == (48, 12, 4)
    assert (leaf.stated, leaf.realised) == (4.0, 4.0)
    assert (spine.up, spine.stated, spine.realised) == (0, None, None)


FILE: dict[str, Any] = {
    "schema": 1,
    "name": "x",
    "kind": "rail_optimised",
    "clos": {
        "devices": 1024,
        "devices_per_node": 8,
        "nics_per_node": 8,
        "nic_bandwidth_GBps": 50.0,
        "radix": 64,
        "tiers": 2,
        "oversubscription": [3.0],
        "hop_latency_us": 0.6,
    },
    "intra_node": {"bandwidth_GBps": 450.0, "latency_us": 0.5},
}


@pytest.mark.parametrize(
    ("key", "down"),
    [({}, 32), ({"oversubscribe": MEANINGS[0]}, 32), ({"oversubscribe": MEANINGS[1]}, 48)],
)
def test_the_key_reaches_the_fabric(key, down):
    """Absent, it is the first meaning."""
    fabric = build_fabric(checked(FabricFile, {**FILE, "clos": {**FILE["clos"], **key}}))
    assert isinstance(fabric, Clos)
    assert fabric.sizing.down == down


def test_what_cannot_be_is_refused():
    table = {**FILE["clos"], "oversubscribe": "both"}
    with pytest.raises(InputError, match=r"clos.oversubscribe must be 'remove_uplinks' or 'split_"):
        checked(FabricFile, {**FILE, "clos": table})
    with pytest.raises(
        InputError, match=r"clos.oversubscribe must be remove_uplinks or split_radix"
    ):
        clos(1024, 64, 2, oversubscribe="both")
    with pytest.raises(InputError, match="of 12 NICs on the 10 ports of the leaf that point down"):
        split(48, 16, 2, 2.0, devices_per_node=12, nics_per_node=12)
    with pytest.raises(InputError, match="65 leaves exceed radix 64, but is 2: use 3 tiers"):
        split(64 * 48 + 1, 64, 2, 3.0, devices_per_node=1, nics_per_node=1)
    with pytest.raises(InputError, match="at most 10, because a pod of whole units has 10 leaves"):
        split(132, 16, 3, 1.0, 2.0, kind="rail_optimised", devices_per_node=12, nics_per_node=12)
