"""Tori and meshes, link by link."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from fabric_specs import EVERY, TORI, TWISTED, torus
from routes import Counter

from nest_core.fabric import Torus
from nest_core.network import collapse, collectives, price_phases, transfers
from nest_core.network.groups import exchange
from nest_core.network.traffic import multi_ring_reduce_scatter, ring_reduce_scatter

GB = 1e9
US = 1e-6
EACH = [*TORI, *TWISTED]


def everyone(devices: int) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs, a device and itself too."""
    source, target = np.divmod(np.arange(devices**2), devices)
    return source, target


def beyond(fabric: Torus, place: int, axis: int, step: int) -> int:
    """Neighbour of a place, one link up or down a dimension; twisted ones shift as they close."""
    at = list(np.unravel_index(place, fabric.shape, order="F"))
    at[axis] += step
    turn = at[axis] // fabric.shape[axis]
    if turn:
        at = [here + turn * shift for here, shift in zip(at, fabric.shifts[axis], strict=True)]
    at = [here % size for here, size in zip(at, fabric.shape, strict=True)]
    return int(np.ravel_multi_index(at, fabric.shape, order="F"))


def names(fabric: Torus) -> list[object]:
    """Node of the explicit graph at every place."""
    place = fabric.place_of().tolist()
    return [
        place.index(here) if here in place else ("router", here) for here in range(fabric.places)
    ]


@pytest.mark.parametrize("name", EACH)
def test_routes_walk_along_links_from_source_to_target(name):
    """Every crossing starts where the last one ended, over a link of the explicit graph, and
    there are as many as hops on a shortest path. A failure: traffic appears from nowhere."""
    fabric = EVERY[name]
    link_map, graph, at = collapse(fabric).link_map, fabric.explicit(), names(fabric)
    source, target = everyone(fabric.devices)
    routes = link_map.routes(source, target)
    dims = len(fabric.shape)
    walks: list[list[int]] = [[] for _ in source]
    for flow, link_group in zip(routes.flow.tolist(), routes.link_group.tolist(), strict=True):
        walks[flow].append(link_group)
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    place = fabric.place_of()
    for a, b, walk in zip(source.tolist(), target.tolist(), walks, strict=True):
        here = int(place[a])
        for link_group in walk:
            number, down = divmod(link_group, 2)
            start, axis = divmod(number, dims)
            assert start == here
            here = beyond(fabric, start, axis, -1 if down else 1)
            assert graph.has_edge(at[start], at[here])
        assert here == place[b]
        assert len(walk) == hops[a][b]
    assert (routes.share == 1).all()
    assert not routes.outside.any()
    assert routes.latency_s == pytest.approx(
        [1e-6 * hops[a][b] for a, b in zip(source, target, strict=True)]
    )


@pytest.mark.parametrize("name", EACH)
def test_routes_go_dimension_by_dimension(name):
    """The first one first; so a flow turns at most once per dimension."""
    fabric = EVERY[name]
    routes = collapse(fabric).link_map.routes(*everyone(fabric.devices))
    axis = routes.link_group // 2 % len(fabric.shape)
    way = routes.link_group % 2
    order = np.argsort(routes.flow, kind="stable")
    same = routes.flow[order][1:] == routes.flow[order][:-1]
    assert (np.diff(axis[order])[same] >= 0).all()
    straight = np.diff(axis[order]) == 0
    assert (np.diff(way[order])[same & straight] == 0).all()


@pytest.mark.parametrize("name", TORI)
def test_everyone_to_everyone_is_counted_link_by_link(name):
    """Against a walk over the explicit graph."""
    fabric = TORI[name]
    network = collapse(fabric)
    phase = exchange(np.arange(fabric.devices)[None], volume=1.0, steps=1)
    flows = np.stack([phase.source, phase.target], axis=1)
    found = price_phases(network.link_map, [phase], 1).beta_s_per_byte.item()
    assert found == pytest.approx(max(Counter(fabric).seconds_per_byte(flows)))


@pytest.mark.parametrize("name", TWISTED)
def test_a_twist_shortens_the_way_and_keeps_places_alike(name):
    """Less far on average than without, and no farther at most; all devices see the same hops."""
    fabric = EVERY[name]
    plain = torus(fabric.shape, fabric.wrap)
    device = np.arange(fabric.devices)
    twisted, straight = (
        collapse(each).level(device[:, None], device[None]) + 1 for each in (fabric, plain)
    )
    assert twisted.mean() < straight.mean()
    assert twisted.max() <= straight.max()
    assert (np.sort(twisted, axis=1) == np.sort(twisted[0])).all()


@pytest.mark.parametrize("shape", [(8, 1), (4, 4), (8, 8), (4, 4, 4), (3, 5)])
def test_a_mesh_takes_twice_as_long_as_a_torus(shape):
    """Without wraparound, rings both ways round meet themselves on the way back; and one ring
    each way is all that there is: half as much at once."""
    dims = len(shape)
    group = np.arange(np.prod(shape))[None]
    whole, mesh = (
        collectives(collapse(torus(shape, (wrap,) * dims)), group).seconds(1e12).item()
        for wrap in (True, False)
    )
    assert mesh / whole == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize(
    ("shape", "box"),
    [
        ((8, 1), (8, 1)), ((4, 4), (4, 4)), ((4, 4, 4), (4, 4, 4)), ((4, 6, 8), (4, 6, 8)),
        ((4, 4, 4), (4, 4, 1)), ((4, 4, 4), (1, 4, 4)), ((4, 4, 4), (4, 1, 4)),
        ((4, 4, 4), (4, 1, 1)), ((4, 4, 4), (1, 1, 4)), ((5, 3), (1, 3)),
    ],
)  # fmt: skip
def test_multi_rings_use_both_ways_of_every_dimension_that_groups_span(shape, box):
    """(n - 1) / n of the buffer over 2 links per dimension in use, all boxes at once.

    Equal sides: every dimension carries the same at every time, so the links are all busy. Of
    unequal ones the longest part of each phase counts; it is worked out link by link below.
    """
    network = collapse(torus(shape, (True,) * len(shape)))
    coordinates = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape, order="F"))
    first = [at // side for at, side in zip(coordinates, box, strict=True)]
    blocks = np.ravel_multi_index(first, [s // b for s, b in zip(shape, box, strict=True)])
    groups = np.argsort(blocks, kind="stable").reshape(-1, int(np.prod(box)))
    half = multi_ring_reduce_scatter(network.torus, network.place, groups)
    found = price_phases(network.link_map, half, len(groups))
    sides = [side for side in box if side > 1]
    # Part p goes over sides p, p + 1, ...; each phase takes as long as its slowest part.
    seconds = 0.0
    for phase in range(len(sides)):
        slowest = 0.0
        for part in range(len(sides)):
            turn = sides[part:] + sides[:part]
            left = 1 / np.prod(turn[:phase])
            slowest = max(slowest, left * (turn[phase] - 1) / turn[phase])
        seconds += slowest / len(sides) / 2 / 50
    assert found.beta_s_per_byte[0] * GB == pytest.approx(np.full(len(groups), seconds))
    if len(set(sides)) == 1:
        n = np.prod(sides)
        assert seconds == pytest.approx((n - 1) / n / (2 * len(sides) * 50))
        steps = len(sides) * (sides[0] - 1)
        assert found.alpha_s[0] / US == pytest.approx(np.full(len(groups), steps))


@pytest.mark.parametrize("name", EACH)
def test_every_member_sends_what_a_reduce_scatter_needs(name):
    """At least (n - 1) / n, exactly that where the whole of an even torus takes part."""
    fabric = EVERY[name]
    network = collapse(fabric)
    n = fabric.devices
    sent = np.zeros(n)
    for phase in multi_ring_reduce_scatter(network.torus, network.place, np.arange(n)[None]):
        np.add.at(sent, phase.source, phase.volume)
    if fabric.missing:
        assert (sent >= (n - 1) / n * (1 - 1e-12)).all()
    else:
        assert sent == pytest.approx(np.full(n, (n - 1) / n))


def test_rows_do_not_disturb_one_another():
    """Four rings at once, each in its own row: as one alone. Columns too; rows and columns at
    once share no link."""
    network = collapse(torus((4, 4), (True, True)))
    rows = np.arange(16).reshape(4, 4)
    alone = price_phases(network.link_map, ring_reduce_scatter(rows[:1]), 1).beta_s_per_byte.item()
    for groups in (rows, rows.T, np.concatenate([rows, rows.T])):
        found = price_phases(network.link_map, ring_reduce_scatter(groups), len(groups))
        assert found.beta_s_per_byte[0] == pytest.approx(np.full(len(groups), alone))


def test_a_missing_chip_still_forwards():
    """4 x 4 without places 0 and 6: 3 -> 1 in the first row is two hops, by place 2.

    Devices 0, 1, 2 are places 1, 2, 3. From place 1 to 3: two hops up, by 2, as 0 would be.
    Place 5 (device 4) to place 7 (device 5) passes the router of place 6.
    """
    network = collapse(TORI["4x4, chips failed"])
    assert network.devices == 14
    found = transfers(network, np.array([0, 4]), np.array([2, 5]))
    assert found.alpha_s[0] / US == pytest.approx([2.0, 2.0])
    assert found.beta_s_per_byte[0] * GB == pytest.approx([1 / 50] * 2)


def test_a_short_dimension_has_one_link_and_a_mesh_no_more_at_its_rim():
    """A ring of two is one link: 2 x 2 has two per chip, 4 x 4 four, a 1 x 7 ring two."""
    ports = {
        name: collapse(TORI[name]).link_map.port_Bps / 50e9
        for name in ("2x2", "4x4", "7x1", "4x4x4", "3x3x3 without wrap")
    }
    assert ports == {"2x2": 2, "4x4": 4, "7x1": 2, "4x4x4": 6, "3x3x3 without wrap": 6}
