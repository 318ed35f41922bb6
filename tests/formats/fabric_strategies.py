"""Random fabrics for the tests of file formats."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from nest_core.fabric import Element, GraphFabric, Link

# Printable, not only Latin; ids must survive quotes, commas, tags and spaces inside.
NAMES = (
    st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn", "Zl", "Zp")),
        min_size=1,
        max_size=12,
    )
    .map(str.strip)
    .filter(bool)
)
RATES = st.sampled_from([1.0, 12.5, 50.0, 450.0, 100 / 3, 0.1, 1e-9, 46.875])
LATENCIES = st.sampled_from([0.0, 0.5, 0.6, 1.25, 100 / 7, 1e-4])
COORDINATES = st.none() | st.sampled_from([0.0, -12.5, 1e6, 0.1])


@st.composite
def graph_fabrics(draw: Any) -> GraphFabric:
    """A connected graph: a random tree and a few links more, figures as files state them."""
    ids = draw(st.lists(NAMES, min_size=2, max_size=9, unique=True))
    roles = draw(
        st.lists(st.sampled_from(["device", "nic", "switch"]), min_size=len(ids), max_size=len(ids))
    )
    roles[draw(st.integers(0, len(ids) - 1))] = "device"
    elements = tuple(
        Element(
            name,
            role,
            draw(st.sampled_from([0, 0, 10_000])),
            draw(st.sampled_from(["", "", "rack 0/node 3"])),
            draw(COORDINATES),
            draw(COORDINATES),
        )
        for name, role in zip(ids, roles, strict=True)
    )
    pairs = {(draw(st.integers(0, place - 1)), place) for place in range(1, len(ids))}
    pairs |= set(
        draw(
            st.lists(
                st.sampled_from([(a, b) for b in range(len(ids)) for a in range(b)]), max_size=4
            )
        )
    )
    links = []
    for a, b in draw(st.permutations(sorted(pairs))):
        ends = draw(st.sampled_from([(a, b), (b, a)]))
        rate, latency = draw(RATES) * 1e9, draw(LATENCIES) * 1e-6
        count = draw(st.integers(1, 40))
        links.append(Link(ids[ends[0]], ids[ends[1]], rate, count, latency))
    routing = draw(st.sampled_from(["adaptive", "shortest_path", "ecmp"]))
    seed = draw(st.integers(0, 9)) if routing == "ecmp" else 0
    return GraphFabric(draw(NAMES), elements, tuple(links), routing=routing, ecmp_seed=seed)
