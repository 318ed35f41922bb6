"""A kind of fabric that the library does not have, added by one class and one registration.

HyperX (Ahn et al., SC 2009) in two dimensions: switches of a row, and of a column, are linked
pairwise, and each joins a few devices.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import networkx as nx
import pytest
from pydantic import BaseModel, ConfigDict

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.costs.loads import link_loads
from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, ScenarioFile, checked
from nest_core.fabric import Fabric, Hierarchical, Tier, as_graph
from nest_core.fabric.drawing import drawing_of
from nest_core.fabric.fabric import Document
from nest_core.fabric.files import KINDS, Kind, build_fabric, register
from nest_core.interop.formats import read_fabric, write_fabric
from nest_core.network import Network
from nest_core.network.bisection import bisection_Bps
from nest_core.network.collapse import collapse, is_counted
from nest_core.network.collective import collective
from nest_core.planner import search
from nest_core.report.explain.headlines import fabric_headlines
from nest_core.report.figures.levels import level_figure
from nest_core.report.picture import picture, to_svg
from nest_core.scenario import Scenario, scenario_document
from nest_core.scenario.document import fabric_title, scenario_title

ROWS, COLUMNS, DEVICES = 2, 3, 4
DOCUMENT: Document = {
    "schema": 1,
    "name": "HyperX of 24",
    "kind": "hyperx",
    "routing": "adaptive",
    "hyperx": {
        "shape": [ROWS, COLUMNS],
        "devices": DEVICES,
        "bandwidth_GBps": 50.0,
        "latency_us": 0.5,
    },
}


class HyperXTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    shape: list[int]
    devices: int
    bandwidth_GBps: float
    latency_us: float


@dataclass(frozen=True, slots=True)
class HyperX(Fabric):
    kind = "hyperx"
    noun = "HyperX"

    shape: tuple[int, ...]
    each: int
    rate: float
    latency: float

    @classmethod
    def from_file(cls, file: FabricFile, table: HyperXTable) -> HyperX:
        rate, latency = table.bandwidth_GBps * 1e9, table.latency_us * 1e-6
        return cls(file.name, tuple(table.shape), table.devices, rate, latency)

    def tables(self) -> Document:
        return {
            "hyperx": {
                "shape": list(self.shape),
                "devices": self.each,
                "bandwidth_GBps": self.rate / 1e9,
                "latency_us": self.latency / 1e-6,
            }
        }

    @property
    def devices(self) -> int:
        return self.shape[0] * self.shape[1] * self.each

    def explicit(self) -> nx.Graph[Any]:
        graph: nx.Graph[Any] = nx.Graph(name=self.name)
        graph.add_nodes_from(range(self.devices), role="device")
        link = {"bandwidth_Bps": self.rate, "count": 1, "latency_s": self.latency}
        switches = list(product(*map(range, self.shape)))
        for number, (row, column) in enumerate(switches):
            graph.add_node(("switch", row, column), role="switch")
            for device in range(number * self.each, (number + 1) * self.each):
                graph.add_node(("nic", device), role="nic")
                graph.add_edge(device, ("nic", device), **link)
                graph.add_edge(("nic", device), ("switch", row, column), **link)
        for a, b in combinations(switches, 2):
            if a[0] == b[0] or a[1] == b[1]:
                graph.add_edge(("switch", *a), ("switch", *b), **link)
        return graph


@pytest.fixture(scope="module")
def hyperx() -> Iterator[Fabric]:
    fields, kinds = dict(FabricFile.__pydantic_fields__), dict(KINDS)
    register("hyperx", Kind(HyperX.from_file, ("hyperx",)), {"hyperx": HyperXTable})
    yield build_fabric(checked(FabricFile, DOCUMENT))
    for mine, before in ((FabricFile.__pydantic_fields__, fields), (KINDS, kinds)):
        mine.clear()
        mine.update(before)
    FabricFile.model_rebuild(force=True)
    ScenarioFile.model_rebuild(force=True)


def test_its_document_goes_round(hyperx):
    assert isinstance(hyperx, HyperX)
    assert hyperx.document() == DOCUMENT
    text = write_fabric(hyperx, "toml").text
    assert build_fabric(checked(FabricFile, tomllib.loads(text))) == hyperx


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "hyper"}, "or 'hyperx'"),
        ({"hyperx": None}, "hyperx is required for kind"),
        ({"missing": ["device 0"]}, 'missing must be empty for kind = "hyperx"'),
        ({"kind": "graph", "element": []}, 'hyperx must be absent for kind = "graph"'),
        ({"hyperx": DOCUMENT["hyperx"] | {"shap": []}}, "hyperx.shap is not a known key"),
    ],
)
def test_its_files_are_checked_as_others_are(hyperx, change, message):
    with pytest.raises(InputError, match=message):
        build_fabric(checked(FabricFile, DOCUMENT | change))


def test_it_has_levels_a_bisection_and_collectives(hyperx):
    network = collapse(hyperx)
    assert network.devices == ROWS * COLUMNS * DEVICES
    assert network.levels[0].group_size == DEVICES
    # Halves are whole rows; one link per column joins them.
    assert bisection_Bps(hyperx, network) == pytest.approx(COLUMNS * 50e9)
    # A ring of a switch's four devices is bound by their own links.
    ring = collective(network, "all_reduce", 1e9, DEVICES, algorithm="ring")
    assert ring.time_s == pytest.approx(2 * 3 / 4 * 1e9 / 50e9, rel=0.01)


def test_it_has_a_bill(hyperx):
    found = bill(hyperx, load_prices())
    links = ROWS * COLUMNS * (COLUMNS - 1) // 2 + COLUMNS * ROWS * (ROWS - 1) // 2
    assert sum(total.count for total in found.switches) == ROWS * COLUMNS
    assert found.nics == ROWS * COLUMNS * DEVICES
    assert found.cables == found.nics + links


def test_it_has_a_title_and_a_summary(hyperx):
    assert fabric_title(hyperx) == "24 devices, HyperX"
    assert hyperx.contents() == "HyperX of 24 devices."
    network = collapse(hyperx)
    first = fabric_headlines(hyperx, network, bisection_Bps(hyperx, network), None)[0]
    assert (first.value, first.note) == ("24", "HyperX")


def test_without_a_rule_of_its_own_its_picture_is_that_of_its_links(hyperx):
    """A failure: Plan ends in an error for a kind that files, levels and prices know."""
    problem, best = planned()
    assert "24 devices" in picture(hyperx).title
    plain, coloured = picture(hyperx, best.plan), picture(as_graph(hyperx), best.plan)
    assert to_svg(plain) == to_svg(coloured)
    busy = picture(hyperx, best.plan, loads=link_loads(problem, best))
    assert to_svg(busy) != to_svg(plain)


def test_it_is_drawn_and_exported(hyperx):
    network = collapse(hyperx)
    again = build_fabric(checked(FabricFile, drawing_of(hyperx, network.nesting)))
    assert again.devices == hyperx.devices
    assert collapse(again).levels == network.levels
    assert "switch" in level_figure(network).title
    document = read_fabric(write_fabric(hyperx, "graphml").text.encode(), "x.graphml").document
    assert build_fabric(checked(FabricFile, document)).devices == hyperx.devices
    # Devices with NICs of their own are hosts; equal switches are one logical parent.
    assert "Nodes=node[0000-0023]" in write_fabric(hyperx, "slurm-tree").text
    with pytest.raises(InputError, match="but is 'a HyperX'"):
        write_fabric(hyperx, "astrasim")


def planned():
    """Return the problem of a job on 24 of its devices and the best plan's report."""
    document, _ = scenario_document("llama2-7b-64-h100")
    pinned = {"tp": DEVICES, "cp": 1, "pp": [1, 2], "micro_batch_sequences": 1, "zero": 1}
    small = document["workload"] | {"global_batch_sequences": 48}
    scenario = Scenario(document | {"fabric": DOCUMENT, "search": pinned, "workload": small}).values
    assert scenario_title(scenario).startswith("Llama 2 7B on 24 H100 SXM 80 GB, HyperX, batch")
    problem = scenario.problem()
    return problem, search(problem, scenario.space, time_limit_s=60).best


def test_it_is_planned_on(hyperx):
    _, best = planned()
    assert best is not None
    assert best.feasible
    assert best.plan.point.devices_used <= hyperx.devices


def test_what_it_knows_better_it_registers_in_its_own_module():
    """Of this subclass levels come from counts; the bill follows from the graph as before."""

    class Counted(HyperX):
        pass

    @collapse.register(Counted)
    def _(fabric: Counted) -> Network:
        tiers = (Tier("switch", fabric.each, fabric.rate, fabric.latency),)
        return collapse(Hierarchical(fabric.name, tiers))

    graph = HyperX("one", (1, 1), 4, 50e9, 1e-6)
    counted = Counted("one", (1, 1), 4, 50e9, 1e-6)
    assert (is_counted(counted), is_counted(graph)) == (True, False)
    assert [level.name for level in collapse(counted).levels] == ["switch"]
    assert bill(counted, load_prices()) == bill(graph, load_prices())
