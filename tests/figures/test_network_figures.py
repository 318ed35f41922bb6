"""The level matrix and the fabric: every cell says what the network and the layout say."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.documents.presets import preset_names
from nest_core.fabric import Clos, Hierarchical, Tier, Torus
from nest_core.fabric.drawing import element_names
from nest_core.network import collapse
from nest_core.network.groups import MAX_BLOCKS, level_blocks
from nest_core.network.link_graph import shortest_paths
from nest_core.report.figures import level_figure
from nest_core.report.figures.levels import ways
from nest_core.scenario import load_fabric


def clos(devices: int) -> Clos:
    return Clos(
        "c", "leaf_spine", devices, 8, 8, 50e9, 64, 2 if devices <= 2048 else 3,
        (1.0,) if devices <= 2048 else (1.0, 1.0), 1e-6, 450e9, 1e-6,
    )  # fmt: skip


FABRICS = {
    **{name: load_fabric(name) for name in preset_names("fabrics")},
    "short last leaf": clos(1000),
    "16,384 devices": clos(16_384),
    "65,536 devices": Hierarchical(
        "h",
        (Tier("node", 8, 9e11, 1e-7), Tier("rack", 64, 1e11, 1e-6), Tier("hall", 128, 5e10, 2e-6)),
    ),
    "one level": Hierarchical("one", (Tier("node", 6, 1e11, 1e-6),)),
    "odd": Hierarchical("odd", (Tier("node", 3, 1e11, 1e-6), Tier("rack", 7, 1e11, 1e-6))),
    "262,144 devices": Torus("t", (64, 64, 64), (True,) * 3, 5e10, 1e-6),
    "1,048,576 devices": Torus("t", (1024, 1024), (True, True), 5e10, 1e-6),
    "long torus": Torus("t", (5, 3), (True, False), 5e10, 1e-6),
}  # fmt: skip
networks = pytest.mark.parametrize(
    "network", [collapse(fabric) for fabric in FABRICS.values()], ids=list(FABRICS)
)


@pytest.mark.sampled(3)
@networks
def test_level_blocks_are_few_and_right(network):
    blocks = level_blocks(network)
    count = len(blocks.matrix)
    assert count <= MAX_BLOCKS
    assert (count - 1) * blocks.size < network.devices <= count * blocks.size
    rng = np.random.default_rng(1)
    for i, j in rng.integers(0, count, size=(200, 2)):
        if i != j:
            expected = network.level(i * blocks.size, j * blocks.size)
        else:
            last = min((i + 1) * blocks.size, network.devices) - 1
            expected = network.level(i * blocks.size, last)
        assert blocks.matrix[i, j] == expected


@pytest.mark.parametrize("name", ["h100-spine-leaf-1024", "a100-fat-tree-512", "65,536 devices"])
def test_blocks_straddle_no_group(name):
    network = collapse(FABRICS[name])
    size = level_blocks(network).size
    for level in network.levels:
        assert level.group_size % size == 0 or size % level.group_size == 0


@pytest.mark.sampled(3)
@networks
def test_the_heat_map_shows_the_blocks_and_names_every_level(network):
    picture = level_figure(network)
    (cells,) = picture.plot.data
    blocks = level_blocks(network)
    assert np.array_equal(np.array(cells.z), blocks.matrix)
    text = np.array(cells.text)
    for index, level in enumerate(network.levels):
        shown = set(text[blocks.matrix == index])
        assert all(label.startswith(f"{level.name}: ") for label in shown)
    assert cells.zmin == -0.5
    assert cells.zmax == len(network.levels) - 0.5


@pytest.mark.sampled(3)
@networks
def test_titles_are_sentences_without_a_full_stop(network):
    title = level_figure(network).title
    assert title
    assert not title.endswith(".")
    assert len(title) < 80


def test_pointing_at_a_cell_shows_the_path():
    """A failure: the path of another pair, or a name that plotly takes for a tag."""
    fabric = FABRICS["h100-spine-leaf-64"]
    graph = fabric.explicit()
    names = element_names(graph, fabric) | {("spine", 0): "<b>top</b>"}
    found = ways(shortest_paths(graph, range(64)), names)
    cells = level_figure(collapse(fabric), ways=found, limit=64).plot.data[0]
    assert cells.customdata[0][0] == ""
    assert cells.customdata[0][1].startswith("<br>gpu 0 → node 0 → gpu 1<br>narrowest step 450 GB")
    assert cells.customdata[3][63].startswith("<br>gpu 3 → nic 0.3 → leaf 0 → &lt;b>top&lt;/b> →")
    assert "%{customdata}" in cells.hovertemplate
    assert "customdata" not in level_figure(collapse(fabric)).plot.data[0].hovertemplate


def test_specs_stay_small(answered):
    """A figure that changes with every slider step travels to the browser each time."""
    example = answered("llama3-70b-1024-h100")
    network = example.network
    assert len(level_figure(network).plot.to_json()) < 1_000_000
