"""What the headline figures say that time is spent on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nest_core.api.answer import answer
from nest_core.scenario import load_scenario


@pytest.fixture(scope="module")
def found():
    """One stage on one device: it waits for nobody and hands nothing on."""
    return answer(load_scenario("llama2-7b-64-h100", ["baselines.names=[]"]))


def spent(found):
    (line,) = (line for line in found.headlines()[2].formula if line.startswith("spent on: "))
    return line.removeprefix("spent on: ").split(", ")


def with_terms(found, **seconds):
    """The same answer with other terms of a ten-second iteration."""
    best = replace(found.result.best, iteration_s=10.0, terms=tuple(seconds.items()))
    return replace(found, result=replace(found.result, best=best))


def test_no_term_prints_as_nothing(found):
    assert min(seconds for _, seconds in found.result.best.terms) < 1e-12
    for part in spent(found):
        assert re.match(r"[1-9][\d,.]* (µs|ms|s|min|h|d) ", part)
    assert spent(found)[0].endswith("compute of the slowest stage")


def test_what_takes_a_vanishing_share_is_not_named(found):
    parts = spent(with_terms(found, compute=6.0, waiting=4.0, dust=3e-16, less=-2e-16, none=0.0))
    assert parts == ["6.00 s compute", "4.00 s waiting"]


def test_what_is_short_but_real_is_named(found):
    assert spent(with_terms(found, compute=10.0, launch=2e-6)) == [
        "10.0 s compute",
        "2.00 µs launch",
    ]
