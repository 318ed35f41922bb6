"""How far measured memory scatters about what is predicted, by framework."""

from __future__ import annotations

import math
import tomllib

import pytest

from benchmarks.validation.training.memory_spread import measured_spreads, spreads_toml
from nest_core.calibration.training import MeasuredOutcome
from nest_core.calibration.training.predict import Prediction
from nest_core.costs.head_room import FEWEST, POOLED, MemorySpread, spread_of


def made(one, times, framework="megatron-lm", source="a/b @1"):
    """Predictions that are so many times what was measured."""
    run = one(source=source, dist_opt_or_zero="fsdp2(zero3)" if framework == "fsdp" else "").run
    return [
        Prediction(run, MeasuredOutcome(1.0, 8.0, "device"), 1.0, 8.0 * each, True)
        for each in times
    ]


def test_sources_count_alike_however_many_runs_they_give(one):
    """A repository is one source, whatever its revisions."""
    near, far = [math.exp(0.1)] * 6, [math.exp(-0.3)] * 2
    items = made(one, near) + made(one, far, source="c/d @1") + made(one, far, source="c/d @2 x")
    spread = measured_spreads(items)[0]
    assert (spread.runs, spread.sources) == (10, 2)
    assert spread.sd == pytest.approx(math.sqrt((0.1**2 + 0.3**2) / 2), abs=1e-4)


def test_few_runs_take_the_spread_of_all_and_say_so(one):
    items = made(one, [1.1] * FEWEST) + made(one, [2.0] * (FEWEST - 1), "fsdp", "e/f")
    names = [spread.framework for spread in measured_spreads(items)]
    assert POOLED in names
    assert len(names) == 2
    unknown = spread_of("no such framework")
    assert unknown.flat
    assert "fewer than 5" in unknown.in_words("x")
    assert not spread_of("megatron").flat


def test_what_is_written_is_read_back():
    spreads = [MemorySpread("megatron", 0.0618, 76, 3), MemorySpread(POOLED, 0.1, 84, 4)]
    found = tomllib.loads(spreads_toml(spreads))["spread"]
    assert [MemorySpread(**entry) for entry in found] == spreads


def test_the_interval_holds_its_share_and_fits_with_its_chance():
    """Of a normal logarithm: a tenth above the upper end; one that needs all fits half the time."""
    spread = MemorySpread("megatron", 0.1, 9, 2)
    found = spread.to_json(40.0, 40.0, "x")
    assert found["high_bytes"] / 40.0 == pytest.approx(math.exp(0.128155))
    assert found["low_bytes"] * found["high_bytes"] == pytest.approx(40.0**2)
    assert found["fits"] == pytest.approx(0.5)
    assert spread.to_json(found["high_bytes"], 40.0, "x")["fits"] == pytest.approx(0.1)
    assert spread.to_json(40.0, found["surely_bytes"], "x")["fits"] == pytest.approx(0.95)
