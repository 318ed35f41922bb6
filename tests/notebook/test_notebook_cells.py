"""Notebooks as values: every edit against a plain list, and what changes are told."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest_core.errors import InputError
from nest_core.notebook.cells import (
    Cell,
    Notebook,
    Summary,
    add_cell,
    changes,
    delete_cell,
    duplicate_cell,
    move_cell,
    new_id,
    rename,
    replace_cell,
)


def notebook(ids):
    return Notebook("N", tuple(Cell(name, "note", name.upper()) for name in ids))


def ids(found):
    return [cell.id for cell in found.cells]


@given(st.permutations("abcde"), st.integers(0, 4), st.integers(-7, 7), st.integers(0, 5))
def test_edits_do_what_lists_do(letters, at, steps, place):
    before = notebook(letters)
    name = letters[at]
    moved = list(letters)
    moved.insert(max(0, min(4, at + steps)), moved.pop(at))
    assert ids(move_cell(before, name, steps)) == moved
    assert ids(delete_cell(before, name)) == [letter for letter in letters if letter != name]
    added = list(letters)
    added.insert(place, "x")
    assert ids(add_cell(before, Cell("x", "note", "X"), place)) == added
    copied = list(letters)
    copied.insert(at + 1, "x")
    twice = duplicate_cell(before, name, "x")
    assert ids(twice) == copied
    assert twice.cell("x") == replace(before.cell(name), id="x", title=f"{name.upper()} (copy)")
    assert ids(before) == list(letters)


def test_a_replaced_cell_keeps_its_place():
    after = replace_cell(notebook("abc"), Cell("b", "note", "New"))
    assert ids(after) == ["a", "b", "c"]
    assert after.cell("b").title == "New"


def test_notebooks_do_not_change_in_place():
    with pytest.raises(FrozenInstanceError):
        notebook("a").name = "M"


@pytest.mark.parametrize(
    "edit",
    [
        lambda n: delete_cell(n, "z"),
        lambda n: move_cell(n, "z", 1),
        lambda n: replace_cell(n, Cell("z", "note", "Z")),
        lambda n: duplicate_cell(n, "z", "y"),
    ],
)
def test_a_cell_that_is_gone_is_one_sentence(edit):
    with pytest.raises(InputError, match="cell must be in the notebook, but is 'z': reload"):
        edit(notebook("ab"))


@pytest.mark.parametrize("name", ["", "x" * 101, " a", "a ", "a\nb", "a\x00b"])
def test_names_that_could_not_be_found_again_are_refused(name):
    with pytest.raises(InputError, match=r"notebook name must (have 1 to 100|be one line)"):
        rename(notebook("a"), name)


def test_two_cells_have_two_ids():
    with pytest.raises(InputError, match="cells must have different ids, but is 'a'"):
        add_cell(notebook("ab"), Cell("a", "note", "A"))
    assert len({new_id() for _ in range(1000)}) == 1000


def test_a_notebook_has_at_most_two_hundred_cells():
    full = notebook([str(number) for number in range(200)])
    with pytest.raises(InputError, match="cells must be at most 200, but is 201"):
        add_cell(full, Cell("x", "note", "X"))


def summary(*rows):
    return Summary(rows, {}, "2026-11-22T12:04:00+00:00")


def test_changes_name_the_figure_and_by_how_much():
    before = summary({"time, s": 2.0, "plan": "tp 8", "fits": True, "cost": None})
    after = summary({"time, s": 1.5, "plan": "tp 4", "fits": False, "cost": 3.0})
    assert changes(before, after) == (
        "time, s: 2 → 1.5 (−25.0 %)",
        "plan: tp 8 → tp 4",
        "fits: True → False",
        "cost: – → 3",
    )


def test_rounding_of_another_machine_is_no_change():
    assert not changes(summary({"t": 1.0}), summary({"t": 1.0 + 1e-12}))
    assert changes(summary({"t": 1.0}), summary({"t": 1.0 + 1e-6}))


def test_changes_of_several_rows_name_the_row():
    before = summary({"t": 1.0}, {"t": 2.0})
    assert changes(before, summary({"t": 1.0}, {"t": 3.0})) == ("row 2, t: 2 → 3 (+50.0 %)",)
    assert changes(before, summary({"t": 1.0})) == ("rows: 2 → 1",)
    assert changes(before, summary({"t": 1.0}, {"u": 2.0})) == (
        "row 2, t: 2 → –",
        "row 2, u: – → 2",
    )
