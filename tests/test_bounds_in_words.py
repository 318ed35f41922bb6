"""Figures beside a bound, and of names beside their verbs: what is printed contradicts neither."""

from __future__ import annotations

import random

import pytest

from nest_core.documents import agreeing, and_others, at_most_percent, chance_percent
from nest_core.documents import percent_beside as beside
from nest_core.planner.search import Certificate

SEEDS = 300


def shown(text):
    return float(text.removesuffix(" %").replace(",", "").replace("−", "-")) / 100


@pytest.mark.parametrize("seed", range(3))
def test_printed_shares_lie_on_their_side_of_a_bound(seed):
    draw = random.Random(seed)
    for _ in range(SEEDS):
        bound = draw.choice((0.01, 0.02, 0.1, draw.random()))
        share = bound * (1 + draw.choice((-1, 1)) * 10.0 ** draw.uniform(-9, 0))
        for value in (share, bound, draw.random()):
            text = beside(value, bound)
            assert (shown(text) < bound) == (value < bound), (value, bound, text)
            assert abs(shown(text) - value) <= 5.1e-4


@pytest.mark.parametrize("seed", range(3))
def test_what_is_at_most_so_much_is_not_more(seed):
    draw = random.Random(seed)
    for _ in range(SEEDS):
        share = 10.0 ** draw.uniform(-8, 1)
        most = shown(at_most_percent(share))
        assert share * (1 - 1e-8) <= most <= max(1.011 * share, 5.1e-6)


def test_a_gap_is_never_said_smaller_than_it_is():
    for gap in (1e-7, 0.0123456, 0.2, 0.39, 0.999):
        fields = {name: 0 for name in Certificate.__dataclass_fields__ if name != "gap"}
        words = Certificate(**fields | {"gap": gap, "proven": False, "points": 9}).room
        assert words.startswith("optimum at most ")
        assert shown(words.split()[3] + " %") >= gap / (1 - gap) * (1 - 1e-8)


def test_chances_are_certain_only_where_they_are():
    for chance in (0.0, 1e-9, 0.004, 0.005, 0.5, 0.995, 0.99999, 1.0):
        text = chance_percent(chance)
        assert (text == "0 %") == (chance == 0)
        assert (text == "100 %") == (chance == 1)


@pytest.mark.parametrize(
    ("name", "verbs"),
    [
        ("two planes", ("join", "reach", "are", "have", "cost")),
        ("16 thin rails", ("join", "reach", "are", "have", "cost")),
        ("torus", ("joins", "reaches", "is", "has", "costs")),
        ("2:1, 8 NICs", ("joins", "reaches", "is", "has", "costs")),
        ("1 plane", ("joins", "reaches", "is", "has", "costs")),
    ],
)
def test_verbs_agree_with_names(name, verbs):
    assert tuple(agreeing(name, of) for of in ("joins", "reaches", "is", "has", "costs")) == verbs


def test_one_other_is_named():
    assert [and_others(list("abcd")[:count]) for count in (1, 2, 3)] == [
        "a", "a and b", "a and 2 others",
    ]  # fmt: skip
