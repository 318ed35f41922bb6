"""What README, docs and docstrings show works: examples, commands and files, as written."""

from __future__ import annotations

import doctest
import importlib
import itertools
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from picture_files import MARGIN, content_end
from PIL import Image

from nest_core.api.answer import answer
from nest_core.api.mixes import mix
from nest_core.documents.failures import load_failures
from nest_core.scenario import Scenario, load_fabric, load_scenario
from nest_core.studies.design_space import design_space
from nest_core.studies.study import load_study
from nest_core.studies.whole_bill import scenario_prices
from nest_core.teaching.course.exercise import draw
from nest_core.teaching.course.folder import own_lesson
from nest_studio.cli import run

ROOT = Path(__file__).resolve().parents[1]
MADE = {"api", "gallery"}
"""Folders of docs/ that `make docs` writes."""
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in MADE),
]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("nest_core", "nest_studio")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>>" in path.read_text("utf-8")
]


def fenced(language: str, *pages: Path) -> list[str]:
    """Blocks of one language in some pages, in all without one."""
    return [
        block
        for page in pages or PAGES
        for block in re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.S)
    ]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    """Every ``>>>`` prints what stands below it."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


COMMANDS = [
    line.removeprefix("nest-studio ")
    for block in fenced("sh")
    for line in block.splitlines()
    if line.startswith("nest-studio ")
]


def test_pages_show_commands() -> None:
    """Some are there to be run, and no block of shell shows anything else."""
    lines = [line for block in fenced("sh") for line in block.splitlines()]
    assert len(COMMANDS) > 10
    assert [line for line in lines if not line.startswith("nest-studio ")] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "line",
    [  # draws search again and again
        pytest.param(line, marks=pytest.mark.check if "--draws" in line else ())
        for line in sorted(set(COMMANDS))
    ],
)
@pytest.mark.sampled(6)
def test_commands_of_the_pages(
    line: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every command line ends well and prints something."""
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("block", fenced("python"), ids=itertools.count())
def test_python_of_the_pages(block: str) -> None:
    """Every block of Python runs by itself."""
    exec(compile(block, "a page", "exec"), {})


def test_files_of_the_pages(tmp_path: Path) -> None:
    """The scenario plans, its prices are read; the fabric has its devices; the study its points."""
    blocks = fenced("toml", ROOT / "docs" / "files.md")
    scenario, fabric, prices, failures, study, bought, *mixes, lesson = blocks
    keep = scenario_prices(Scenario(tomllib.loads(f"{scenario}\n{prices}"))).ownership
    assert (keep.years.typical, keep.pue.typical) == (4, 1.58)
    causes = [cause.name for cause in load_failures(tomllib.loads(failures)).cause]
    assert (len(causes), causes[0], "HBM3 memory" in causes) == (6, "GPU", False)
    (tmp_path / "scenario.toml").write_text(scenario)
    (tmp_path / "fabric.toml").write_text(fabric)
    assert answer(load_scenario(str(tmp_path / "scenario.toml"))).result.best is not None
    assert load_fabric(str(tmp_path / "fabric.toml")).devices == 32
    (tmp_path / "study.toml").write_text(study)
    assert len(load_study(str(tmp_path / "study.toml"), tmp_path)) == 36
    (tmp_path / "bought.toml").write_text(bought)
    designs, refused = design_space(load_study(str(tmp_path / "bought.toml"), tmp_path))
    assert (len(designs), len(refused)) == (21, 23)
    for name, text in zip(("mix", "population"), mixes, strict=True):
        (tmp_path / f"{name}.toml").write_text(text)
    assert mix(tmp_path / "mix.toml").result.proven
    assert mix(tmp_path / "population.toml").result.under_one_leaf == pytest.approx(0.4)
    (tmp_path / "lesson.toml").write_text(lesson)
    shown = own_lesson(tmp_path / "lesson.toml")
    assert shown.brief().question.verdict("b") == "Right. 30.4 % of the iteration."
    assert draw(shown, 0, 1)[0].solution.endswith("%")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_the_pages(page: Path) -> None:
    """Every relative link leads to a file of the repository, or to a page that is made."""
    text = re.sub(r"```.*?```|`[^`\n]*`(?!\]\()", "", page.read_text("utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        made = {"api", "gallery"} & set(Path(target).parts)
        assert made or (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "images").glob("*.png")), ids=lambda p: p.name
)
def test_pictures_end_where_the_page_ends(path: Path) -> None:
    """Whole pages to the row; windows of a fixed size may show the end of a page."""
    image = Image.open(path)
    assert image.height - content_end(image) <= MARGIN
