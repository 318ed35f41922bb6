"""Who may import whom: one table, and no way back to where one came from.

Imports inside functions and those for types alone count like all others.
"""

from __future__ import annotations

import ast
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent

FOUNDATIONS = {
    "compiled",
    "errors",
    "files",
    "kept",
    "overrides",
    "presets",
    "quoting",
    "schema",
    "text",
    "toml_text",
    "units",
}
ABOVE_FOUNDATIONS = {
    # the spine
    "topology": set(),
    "network": {"topology"},
    "workload": set(),
    "hardware": {"workload"},
    "layout": {"network"},
    "costs": {"hardware", "layout", "network", "workload"},
    "planner": {"costs", "layout", "network"},
    "baselines": {"costs", "layout", "network", "planner", "topology", "workload"},
    "scenario": {"costs", "formats", "hardware", "network", "planner", "topology", "workload"},
    # satellites
    "report": set(),
    "bill": {"topology"},
    "formats": {"bill", "network", "topology"},
    "measured": {
        "costs",
        "formats",
        "hardware",
        "network",
        "scenario",
        "topology",
        "workload",
    },
    "explain": {
        "baselines",
        "costs",
        "hardware",
        "layout",
        "measured",
        "network",
        "planner",
        "scenario",
        "topology",
        "workload",
        "report",
    },
    "exporters": {"costs", "formats", "layout", "network", "scenario", "workload"},
    "studies": {
        "baselines",
        "bill",
        "costs",
        "explain",
        "hardware",
        "network",
        "planner",
        "scenario",
        "topology",
        "workload",
    },
    "picture": {"bill", "costs", "explain", "network", "topology"},
    "sheet": {
        "bill",
        "explain",
        "hardware",
        "measured",
        "network",
        "picture",
        "scenario",
        "studies",
        "report",
    },
    "published": set(),
    "paper": {
        "baselines",
        "costs",
        "network",
        "planner",
        "published",
        "scenario",
    },
    "lessons": {
        "costs",
        "hardware",
        "network",
        "paper",
        "planner",
        "published",
        "scenario",
        "topology",
        "workload",
        "report",
    },
    "figures": {
        "baselines",
        "bill",
        "costs",
        "explain",
        "hardware",
        "lessons",
        "measured",
        "network",
        "paper",
        "planner",
        "studies",
        "topology",
        "workload",
        "report",
    },
    # the facade, and what stands on it
    "api": {
        "baselines",
        "costs",
        "explain",
        "exporters",
        "figures",
        "formats",
        "hardware",
        "measured",
        "network",
        "planner",
        "scenario",
        "studies",
        "topology",
        "workload",
        "report",
    },
    "nest_core": {"api", "scenario"},
    "notebook": {"api", "figures", "report", "scenario", "studies"},
    "course": {"api", "figures", "lessons", "notebook", "report", "scenario", "studies"},
    "store": {"notebook", "studies"},
}
"""Packages of `nest_core` and what of it each may import besides the foundations."""


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
    return below[0] if top == "nest_core" and below else top


def test_no_import_leads_back(imports):
    circles = [sorted(each) for each in nx.strongly_connected_components(imports) if len(each) > 1]
    assert not circles


def test_every_arrow_is_allowed(imports):
    allowed = {name: others | FOUNDATIONS for name, others in ABOVE_FOUNDATIONS.items()}
    allowed |= dict.fromkeys(FOUNDATIONS, FOUNDATIONS)
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
        for name, others in ABOVE_FOUNDATIONS.items()
        for other in others
        if (name, other) not in used
    ]
    assert not spare


def test_nothing_stands_loose_but_the_foundations():
    loose = {path.stem for path in (ROOT / "nest_core").glob("*.py")} - {"__init__"}
    assert loose <= FOUNDATIONS


def test_pages_do_not_import_the_command_line(imports):
    command_line = ("nest_studio.commands", "nest_studio.cli")
    wrong = [
        f"{source} -> {target}"
        for source, target in imports.edges
        if target.startswith(command_line)
        and not source.startswith((*command_line, "nest_studio.__main__"))
    ]
    assert not wrong
