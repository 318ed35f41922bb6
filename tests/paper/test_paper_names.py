"""Every figure and table under both costs: fields, words, sentences."""

from __future__ import annotations

import json

import pytest

from nest_core.documents.errors import InputError
from nest_core.paper import NAMES, reproduce
from nest_core.paper.cases import FIGURES
from nest_core.paper.reproduction import Costs, Reproduction

COSTS: tuple[Costs, ...] = ("published", "own")


def check(found: Reproduction, name: str, costs: Costs) -> None:
    """What holds of every reproduction."""
    fields = found.to_json()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert (found.name, found.costs, found.tables[0].key) == (name, costs, "rows")
    assert fields["rows"]
    for sentence in (found.printed, *found.paragraph):
        assert sentence.endswith((".", '."')), sentence
        assert "None" not in sentence
        assert "nan" not in sentence.split()
    assert found.paragraph
    for table in found.tables:
        assert table.words
        assert len({tuple(line) for line in table.words}) == 1


@pytest.mark.sampled(6)
@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("name", NAMES)
def test_every_name_runs_under_both_costs(name: str, costs: Costs) -> None:
    found = reproduce(name, costs)
    check(found, name, costs)
    assert all(row["costs"] == costs for row in found.rows)


@pytest.mark.check
@pytest.mark.parametrize("name", list(FIGURES))
def test_whole_figures_run_with_own_costs(name: str) -> None:
    found = reproduce(name, "own")
    check(found, name, "own")
    assert len(found.rows) == len(FIGURES[name].cells)
    for row in found.rows:
        for planner, entry in row["baselines"].items():
            if entry["right_order"] is not None:
                assert entry["right_order"] <= row["ours"] * (1 + 1e-9), (row["model"], planner)


def test_pictures_without_numbers_say_so() -> None:
    for name in ("figure2", "figure11"):
        assert "picture only" in reproduce(name, "published").printed


@pytest.mark.parametrize("name", ["figure2", "figure10"])
def test_without_an_instance_rows_say_so(name: str) -> None:
    for row in reproduce(name, "published").rows:
        assert row["reason"].startswith("Instance: the artifact ships none")


def test_another_name_is_refused() -> None:
    with pytest.raises(InputError, match="NAME must be a figure or table") as refused:
        reproduce("figure4", "published")
    assert str(refused.value).endswith(f"pick {', '.join(NAMES)}.")
