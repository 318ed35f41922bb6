"""Caches that are bounded by number and by bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.presets import kept_within


@settings(max_examples=200)
@given(asked=st.lists(st.integers(0, 12), max_size=60), most=st.integers(1, 40))
def test_what_is_kept_stays_within_both_bounds_and_is_what_was_asked_for_last(asked, most):
    """The oracle keeps a plain list of what was used, newest last."""
    made = []

    def square(number: int) -> int:
        made.append(number)
        return number**2

    kept, used = kept_within(5, most, lambda answer: 1 + answer % 7)(square), []
    for number in asked:
        before = len(made)
        assert kept(number) == number**2
        assert (len(made) == before) == (number in used)
        used = [one for one in used if one != number] + [number]
        while len(used) > 1 and (len(used) > 5 or sum(1 + one**2 % 7 for one in used) > most):
            used.pop(0)


def test_answers_are_those_of_equal_content():
    """Lists cannot be keys; their elements can."""
    made = []

    def total(numbers: list[int], times: int = 1) -> int:
        made.append(numbers)
        return sum(numbers) * times

    kept = kept_within(5, 40, lambda answer: 1, lambda numbers, times=1: (*numbers, times))(total)
    assert [kept([1, 2]), kept([1, 2], times=3), kept([1, 2], 3), kept([2, 1])] == [3, 9, 9, 3]
    assert made == [[1, 2], [1, 2], [2, 1]]
