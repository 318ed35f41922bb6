"""Who may import whom: one table, and no way back to where one came from.

Imports inside functions and those for types alone count like all others.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

import nest_core

ROOT = Path(__file__).resolve().parent.parent

ABOVE_DOCUMENTS = {
    # the spine
    "fabric": set(),
    "network": {"fabric"},
    "workload": set(),
    "hardware": {"workload"},
    "costs.layout": {"network"},
    "costs": {"costs.layout", "hardware", "network", "workload"},
    "simulator": {"costs", "network"},
    "planner": {"costs", "network"},
    "planner.baselines": {"costs", "fabric", "network", "planner", "workload"},
    "scenario": {
        "costs",
        "fabric",
        "hardware",
        "interop.formats",
        "network",
        "planner",
        "workload",
    },
    # satellites, the facade, and what stands on it
    "bill": {"fabric"},
    "reliability": {"bill", "costs", "fabric", "hardware", "network"},
    "interop.formats": {"bill", "fabric", "network"},
    "report": set(),
    "calibration": {
        "costs",
        "fabric",
        "hardware",
        "interop.formats",
        "network",
        "scenario",
        "workload",
    },
    "paper.published": set(),
    "report.explain": {
        "calibration",
        "reliability",
        "costs",
        "fabric",
        "hardware",
        "network",
        "planner",
        "planner.baselines",
        "report",
        "scenario",
        "workload",
    },
    "paper": {"costs", "network", "paper.published", "planner", "planner.baselines", "scenario"},
    "studies": {
        "bill",
        "reliability",
        "costs",
        "report.explain",
        "fabric",
        "hardware",
        "network",
        "planner",
        "planner.baselines",
        "scenario",
        "simulator",
        "workload",
    },
    "interop.exporters": {
        "costs",
        "interop.formats",
        "network",
        "scenario",
        "workload",
    },
    "report.figures": {
        "bill",
        "calibration",
        "costs",
        "report.explain",
        "fabric",
        "hardware",
        "network",
        "paper",
        "planner",
        "planner.baselines",
        "report",
        "simulator",
        "studies",
        "workload",
    },
    "api": {
        "calibration",
        "costs",
        "report.explain",
        "fabric",
        "hardware",
        "interop.exporters",
        "interop.formats",
        "network",
        "planner",
        "planner.baselines",
        "reliability",
        "report",
        "report.figures",
        "report.sheet",
        "scenario",
        "simulator",
        "studies",
        "workload",
    },
    "teaching.lessons": {
        "calibration",
        "costs",
        "fabric",
        "hardware",
        "network",
        "paper",
        "paper.published",
        "planner",
        "reliability",
        "report",
        "scenario",
        "simulator",
        "studies",
        "workload",
    },
    "report.picture": {"bill", "costs", "fabric", "network", "planner.baselines", "report"},
    "report.notebook": {"api", "report", "report.figures", "scenario", "studies"},
    "teaching.drawings": {
        "costs",
        "network",
        "paper",
        "report.figures",
        "simulator",
        "teaching.lessons",
    },
    "report.sheet": {
        "bill",
        "calibration",
        "report.explain",
        "hardware",
        "network",
        "report",
        "report.picture",
        "scenario",
        "studies",
    },
    "teaching.course": {
        "api",
        "report.notebook",
        "report",
        "report.figures",
        "scenario",
        "studies",
        "teaching.drawings",
        "teaching.lessons",
    },
    "nest_core": {"api", "scenario"},
}
"""Packages of `nest_core` and what of it each may import besides `documents`; parts of a package
that have arrows of their own stand as package and part."""


def _modules() -> dict[str, Path]:
    found = {}
    for package in ("nest_core", "nest_studio", "pages"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph[str]:
    """Modules, and an edge to every module of ours that each names in an import."""
    modules = _modules()
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(modules)
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [full if full in modules else node.module for full in targets]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                continue
            graph.add_edges_from((name, one) for one in targets if one in modules and one != name)
    return graph


def _package(module: str) -> str:
    top, *below = module.split(".")
    if top != "nest_core" or not below:
        return top
    part = ".".join(below[:2])
    return part if part in ABOVE_DOCUMENTS else below[0]


def test_no_import_leads_back(imports):
    circles = [sorted(each) for each in nx.strongly_connected_components(imports) if len(each) > 1]
    assert not circles


def test_every_arrow_is_allowed(imports):
    allowed = {name: others | {"documents"} for name, others in ABOVE_DOCUMENTS.items()}
    allowed["documents"] = set()
    wrong = sorted(
        f"{source} -> {target}"
        for source, target in imports.edges
        if source.startswith("nest_core")
        and _package(source) != _package(target)
        and _package(target) not in allowed[_package(source)]
    )
    assert not wrong


def test_the_table_allows_nothing_that_nobody_needs(imports):
    used = {(_package(source), _package(target)) for source, target in imports.edges}
    spare = [
        f"{name} -> {other}"
        for name, others in ABOVE_DOCUMENTS.items()
        for other in others
        if (name, other) not in used
    ]
    assert not spare


def test_no_module_stands_loose():
    assert {path.stem for path in (ROOT / "nest_core").glob("*.py")} == {"__init__"}
    loose = {path.stem for path in (ROOT / "nest_studio").glob("*.py")}
    assert loose == {"__init__", "__main__", "cli", "paths"}


def test_pages_do_not_import_the_command_line(imports):
    command_line = ("nest_studio.commands", "nest_studio.cli")
    wrong = [
        f"{source} -> {target}"
        for source, target in imports.edges
        if target.startswith(command_line)
        and not source.startswith((*command_line, "nest_studio.__main__"))
    ]
    assert not wrong


def test_no_module_hides_a_name_of_its_package():
    """Importing a module ``costs.traffic`` would put it where the function `costs.traffic` was."""
    hidden = []
    for module in pkgutil.walk_packages(nest_core.__path__, "nest_core."):
        package, _, name = module.name.rpartition(".")
        if name in getattr(importlib.import_module(package), "__all__", ()):
            importlib.import_module(module.name)
            if isinstance(getattr(importlib.import_module(package), name), ModuleType):
                hidden.append(module.name)
    assert not hidden
