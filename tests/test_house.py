"""The rules of the house: who may import what, and what files may not say."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOT_OURS = {"__pycache__", "node_modules", "build", "dist"}
KEPT_HIDDEN = {".ci", ".streamlit"}

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:opt|work|root|home)/|file:/{2}")
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian\.org", re.I)

UI_MODULES = {"streamlit", "nest_studio"}
TORCH_FOLDERS = ("nest_core/workload/tracing", "nest_core/hardware/profiling")


def _files() -> Iterator[Path]:
    for folder, names, files in os.walk(ROOT):
        names[:] = [
            name
            for name in names
            if name not in NOT_OURS and (not name.startswith(".") or name in KEPT_HIDDEN)
        ]
        yield from (Path(folder, name) for name in files if name != ".git")


def _sources() -> list[Path]:
    return [path for path in _files() if path.suffix == ".py"]


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _imported(path: Path) -> set[str]:
    """Top-level packages that a source names in an import, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _may_import_streamlit(name: str) -> bool:
    return name == "app.py" or name.startswith(("pages/", "nest_studio/", "tests/", "benchmarks/"))


def _may_import_torch(name: str) -> bool:
    return name.startswith((*TORCH_FOLDERS, "tests/", "benchmarks/"))


def _may_import_jax(name: str) -> bool:
    return name.startswith(("nest_core/calibration/compiler/program.py", "tests/", "benchmarks/"))


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("streamlit", _may_import_streamlit),
        ("torch", _may_import_torch),
        ("jax", _may_import_jax),
    ],
)
def test_only_the_named_places_import(package, allowed):
    offenders = [
        _relative(path)
        for path in _sources()
        if package in _imported(path) and not allowed(_relative(path))
    ]
    assert not offenders


def test_the_core_knows_no_user_interface():
    offenders = {
        _relative(path): _imported(path) & UI_MODULES
        for path in _sources()
        if _relative(path).startswith("nest_core/")
    }
    assert not {name: found for name, found in offenders.items() if found}


@pytest.mark.parametrize("module", ["nest_core", "nest_studio.cli"])
def test_importing_stays_light(module):
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"streamlit", "torch", "numba", "numpy", "pandas", "plotly"} & set(loaded)


def test_a_plan_imports_no_more_than_it_needs():
    """On fabrics that are counted; half of a short plan went into libraries that it did not use."""
    script = (
        "import sys, nest_core.api.answer, nest_studio.commands.output, nest_studio.jobs.workers;"
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "nest_core.planner" in loaded
    other = {"networkx", "scipy.sparse", "pandas", "plotly", "streamlit", "sqlalchemy", "psutil"}
    assert not (other | {"nest_core.bill", "nest_core.interop", "rich"}) & set(loaded)


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["path", "registry"])
def test_files_name_no_machine(pattern):
    found = []
    for path in _files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{_relative(path)}: {match.group()}" for match in pattern.finditer(text)]
    assert not found


def test_no_share_is_minus_nothing():
    """Measurements said that a figure had moved by −0.0 %: z in a format writes it without sign."""
    signed = re.compile(r":\+\.?\d*[f%]\}")
    for path in _sources():
        if path.relative_to(ROOT).parts[0] in ("nest_core", "nest_studio", "pages"):
            assert not signed.search(path.read_text(encoding="utf-8")), path


def test_a_share_has_a_space_before_its_sign():
    """It stood closed beside open ones ("10 % of the throughput"): `units.percent` spells it."""
    closed = re.compile(r":[+ ,z]*\d*(?:\.\d+)?%\}|[\d}]% [a-z]")
    for path in _sources():
        if path.relative_to(ROOT).parts[0] in ("nest_core", "nest_studio", "pages"):
            text = path.read_text(encoding="utf-8")
            # What earlier files called a column is read as they wrote it.
            older = '"80% interval": "tokens_per_s_interval"'
            assert not closed.search(text.replace(older, "")), path


def test_the_two_commands_of_the_readme_are_targets():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    named = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / "README.md").read_text(), re.M)
    assert {"app", "test"} <= set(named)
    assert set(named) <= set(targets)


def test_ci_runs_the_tests_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make test"]


def test_the_license_is_mit():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text().startswith("MIT License\n")


LOCKS = tuple(sorted(path.name for path in ROOT.glob("requirements*.lock")))
_PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^ ;]+)( ; [^\\]+)?((?: --hash=sha256:[0-9a-f]{64})+)")


def _pins(name: str) -> dict[str, str]:
    """Versions by package; every line must be a pin with the hashes of its files."""
    lines = (ROOT / name).read_text().replace(" \\\n   ", "").splitlines()
    found = [_PIN.fullmatch(line) for line in lines]
    assert all(found), [line[:60] for line, pin in zip(lines, found, strict=True) if pin is None]
    return {pin[1]: pin[2] for pin in found if pin}


def test_lock_files_pin_exactly_and_agree():
    runtime, development = _pins("requirements.lock"), _pins("requirements-dev.lock")
    assert runtime.items() <= development.items()
    assert not {"torch", "nvidia-nccl-cu13"} & development.keys()
    assert not any("+" in version for version in development.values())
    torch, cpu = _pins("requirements-torch.lock"), _pins("requirements-torch-cpu.lock")
    assert (torch["torch"], cpu["torch"]) == ("2.13.0", "2.13.0+cpu")
    for one in (torch, cpu):
        assert {name: development[name] for name in one.keys() & development.keys()}.items() <= (
            one.items()
        )
    assert not any(name.startswith(("cuda", "nvidia", "triton")) for name in cpu)


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_has_a_hash_and_names_no_host(name):
    assert len(LOCKS) == 4
    assert len(_pins(name)) >= 10
    assert not re.search(r"://|--index|--find-links|--trusted", (ROOT / name).read_text())


def test_whatever_installs_a_lock_asks_for_its_hashes():
    for name in ("Makefile", "Containerfile"):
        for line in (ROOT / name).read_text().splitlines():
            if re.search(r"install\b.*(?:-r|--requirement) ", line):
                assert "--require-hashes" in line, line


def test_the_base_of_the_container_is_pinned_by_its_digest():
    bases = re.findall(r"^FROM (.+)$", (ROOT / "Containerfile").read_text(), re.M)
    assert bases
    assert all(re.search(r":[0-9][^@]+@sha256:[0-9a-f]{64}$", base) for base in bases)


def test_every_test_in_a_browser_is_where_make_looks_for_it():
    makefile = (ROOT / "Makefile").read_text()
    assert "IN_BROWSER := tests/browser " in makefile
    assert "--ignore tests/browser " in makefile
    paths = {_relative(path): path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py")}
    folder = {name for name in paths if name.startswith("tests/browser/")}
    assert len(folder) > 5
    assert {name for name, text in paths.items() if "mark.browser" in text} - folder == {
        "tests/test_house.py"
    }
    assert all("mark.browser" in paths[name] for name in folder)


def test_every_promise_of_security_names_a_test_that_there_is():
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| test |" not in line]
    named = re.findall(r"`(tests/\S+?\.py)::(\w+)`", text)
    assert len(rows) > 20
    assert not [row for row in rows if "::test_" not in row]
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file()
        or not re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.M)
    ]
    assert not missing


def test_the_line_of_every_mutant_is_there_once():
    listed = tomllib.loads((ROOT / "benchmarks" / "mutants.toml").read_text())["mutant"]
    assert len(listed) > 60
    found = [(ROOT / one["file"]).read_text(encoding="utf-8").count(one["line"]) for one in listed]
    wrong = [one for one, count in zip(listed, found, strict=True) if count != 1]
    assert not wrong
    assert not [one for one in listed if one["instead"] == one["line"]]


def test_modules_of_tests_have_names_of_their_own():
    """Pytest imports them by file name alone, and collects nothing when two have one name."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]
