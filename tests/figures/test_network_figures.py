"""The level matrix and the fabric: every cell says what the network and the layout say."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs.plan import Plan, Point
from nest_core.figures import fabric_figure, level_figure
from nest_core.figures.grid import MAX_CELLS, device_grid
from nest_core.figures.levels import ways
from nest_core.network import collapse
from nest_core.network.blocks import MAX_BLOCKS, level_blocks
from nest_core.network.paths import shortest_paths
from nest_core.presets import preset_names
from nest_core.scenario import load_fabric
from nest_core.topology import Clos, Hierarchical, Tier, Torus
from nest_core.topology.drawing import element_names


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


@networks
def test_every_device_has_one_cell(network):
    grid = device_grid(network)
    cells = grid.cells[grid.cells >= 0]
    assert len(cells) == -(-network.devices // grid.size) <= MAX_CELLS
    assert sorted(cells.tolist()) == list(range(len(cells)))
    assert grid.cells.shape == (len(grid.y_edges) - 1, len(grid.x_edges) - 1)
    assert (np.diff(grid.x_edges) > 0).all()
    assert (np.diff(grid.y_edges) > 0).all()


@pytest.mark.parametrize("name", ["h100-spine-leaf-64", "nest-fat-tree-256", "odd"])
def test_groups_stay_together(name):
    """A group's bounding box holds no device of another group."""
    network = collapse(FABRICS[name])
    cells = device_grid(network).cells
    for level in range(len(network.levels)):
        for group in np.unique(network.nesting[level]):
            rows, columns = np.nonzero(
                (cells >= 0) & (network.nesting[level][np.maximum(cells, 0)] == group)
            )
            box = cells[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            inside = box[box >= 0]
            assert (network.nesting[level][inside] == group).all()


def test_neighbours_on_a_plane_of_the_torus_are_one_hop_apart():
    network = collapse(FABRICS["tpu-v4-4x4x4"])
    cells = device_grid(network).cells
    for one, other in ((cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])):
        both = (one >= 0) & (other >= 0)
        assert (network.level(one[both], other[both]) == 0).all()


def plan(tp: int, dp: int, pp: int) -> Plan:
    point = Point(tp, False, dp, pp, 1, 0, ("tp", "cp", "dp", "pp"))
    return Plan(point, tuple(range(pp + 1)), ("none",) * pp)


def test_cells_are_coloured_by_stage_and_idle_ones_apart():
    network = collapse(FABRICS["h100-spine-leaf-64"])
    chosen = plan(2, 5, 3)
    picture = fabric_figure(network, chosen)
    working, idle = picture.plot.data
    grid = device_grid(network)
    stage = chosen.point.layout.stage_of(64)
    shown = np.array(working.z)
    for device in range(64):
        (cell,) = np.argwhere(grid.cells == device)
        expected = stage[device] + 1 if stage[device] >= 0 else np.nan
        assert np.array_equal(shown[tuple(cell)], expected, equal_nan=True)
    assert np.isfinite(np.array(idle.z)).sum() == 64 - 30
    assert picture.subtitle.endswith("grey ones idle")


def test_a_full_fabric_has_no_idle_trace():
    network = collapse(FABRICS["h100-spine-leaf-64"])
    picture = fabric_figure(network, plan(8, 4, 2))
    assert len(picture.plot.data) == 1
    assert (
        picture.title == "tp stays within the node; dp stays within the leaf; pp crosses the spine"
    )


def test_without_a_plan_everything_is_idle():
    network = collapse(FABRICS["long torus"])
    picture = fabric_figure(network, None)
    assert picture.title == "All 15 devices stand idle"
    assert np.isfinite(np.array(picture.plot.data[0].z)).sum() == 15


@networks
def test_a_figure_of_many_devices_stays_small(network):
    figure = fabric_figure(network, plan(1, 2, 2)).plot
    assert len(figure.to_json()) < 1_500_000


@networks
def test_titles_are_sentences_without_a_full_stop(network):
    titles = [level_figure(network).title, fabric_figure(network, plan(1, 2, 2)).title]
    for title in titles:
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
    assert len(fabric_figure(network, example.result.best.plan).plot.to_json()) < 100_000
    assert len(level_figure(network).plot.to_json()) < 1_000_000
