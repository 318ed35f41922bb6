"""What is stored of the paper is what computing it gives."""

from __future__ import annotations

import json

import pytest

from benchmarks.paper.__main__ import COSTS, MODULES, compute, result_document, run, sentences
from nest_core.documents.presets import preset_path
from nest_core.paper.cases import FIGURES
from nest_core.paper.reproduction import STORED, stored, stored_paragraph

QUICK = ("figure3", "figure8", "figure9", "figure10", "table1", "table3", "table6", "table7")
TIMED = ("table4", "table5")
"""Their rows hold seconds that a search took."""


def _read(text: str) -> object:
    """Processors add numbers up in different orders: their last digits are not compared."""
    return json.loads(text, parse_float=lambda digits: f"{float(digits):.12g}")


def test_every_stored_name_can_be_computed() -> None:
    assert set(MODULES) == set(STORED)
    assert set(QUICK) < set(STORED)


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.check)
        for name in STORED
        if name not in TIMED
    ],
)
def test_stored_is_what_is_computed(name, costs) -> None:
    """A failure: costs moved, and ``python -m benchmarks.paper`` was not run."""
    path = preset_path("paper", "results", f"{name}-{costs}.json")
    document = _read(path.read_text(encoding="utf-8"))
    assert _read(result_document(compute(name, costs))) == document


@pytest.mark.parametrize("costs", ["published", pytest.param("own", marks=pytest.mark.check)])
@pytest.mark.parametrize("name", FIGURES)
def test_stored_sentences_are_what_is_computed(name, costs) -> None:
    assert stored_paragraph(name, costs)[:-1] == tuple(sentences(name, costs))


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("name", STORED)
def test_a_stored_result_says_how_it_is_made_again(name, costs) -> None:
    result = stored(name, costs)
    assert (result.name, result.costs, result.tables[0].key) == (name, costs, "rows")
    assert f"`python -m benchmarks.paper {name}`" in result.paragraph[-1]


def test_another_name_is_refused(capsys) -> None:
    assert run(["figure4"]) == 2
    assert "NAME must be one of figure1" in capsys.readouterr().err
