"""What README and docstrings show works: examples, commands and files are run as written."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import nest_core
from nest_core.answer import answer
from nest_core.scenario import load_fabric, load_scenario
from nest_studio.cli import run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
MODULES = [
    module.name
    for module in pkgutil.walk_packages(nest_core.__path__, "nest_core.")
    if not module.name.endswith("__main__")
] + ["nest_studio.scenario_file"]


def fenced(language: str) -> list[str]:
    """Blocks of one language in the README."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    """Every ``>>>`` prints what stands below it."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(
    "line",
    [
        line.removeprefix(".venv/bin/nest-studio ")
        for block in fenced("sh")
        for line in block.splitlines()
        if line.startswith(".venv/bin/nest-studio ")
    ],
)
def test_commands_in_the_readme(
    line: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every command line ends well and prints something."""
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)) == 0
    assert capsys.readouterr().out.strip()


def test_files_in_the_readme(tmp_path: Path) -> None:
    """The scenario plans; the fabric loads and has the devices that its sizes multiply to."""
    scenario, fabric = fenced("toml")
    (tmp_path / "scenario.toml").write_text(scenario)
    (tmp_path / "fabric.toml").write_text(fabric)
    assert answer(load_scenario(str(tmp_path / "scenario.toml"))).result.best is not None
    assert load_fabric(str(tmp_path / "fabric.toml")).devices == 32


def test_links_in_the_readme() -> None:
    """Every relative link leads to a file of the repository."""
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
