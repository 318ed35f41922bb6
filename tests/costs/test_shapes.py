"""Shapes of plans, and how often runs of them were measured."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from benchmarks.validation.training.shapes import shapes_toml
from nest_core.costs import shapes
from nest_core.costs.plan import Plan, Point
from nest_core.costs.shapes import PlanShape, measured_like, measured_words, shape_of
from nest_core.hardware.posterior import load_posterior
from nest_core.hardware.stacks import all_stacks

POINT = Point(8, True, 8, 4, 1, 1, ("tp", "cp", "dp", "pp"))
SHAPE = PlanShape(8, 4, 1, 1, 1, "none")


def plan(*recompute, **changes):
    return Plan(replace(POINT, **changes), (0, 3, 6, 9, 12), recompute or ("none",) * 4)


def test_a_shape_is_what_a_plan_does_and_not_how_it_is_written():
    assert shape_of(plan()) == SHAPE
    assert shape_of(plan(zero=0, dp=1)) == shape_of(plan(dp=1)) == SHAPE._replace(zero=0)
    assert shape_of(plan(dp=2, micro_batch=2, schedule="interleaved", interleave=3)) == SHAPE


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("none", "selective"), "selective"),
        (("mlp", "none"), "selective"),
        (("none", "uniform:3"), "full"),
        (("full", "selective"), "full"),
    ],
)
def test_of_stages_that_differ_the_one_that_recomputes_most_counts(names, kind):
    assert shape_of(plan(*names, *names)).recompute == kind


def test_shapes_are_alike_that_differ_in_one_thing_and_not_by_far():
    near = [SHAPE, SHAPE._replace(pp=8), SHAPE._replace(tp=4), SHAPE._replace(zero=3)]
    near += [SHAPE._replace(recompute="full"), SHAPE._replace(pp=3)]
    far = [SHAPE._replace(pp=16), SHAPE._replace(tp=4, pp=8), SHAPE._replace(zero=0, ep=2)]
    for other in (*near, *far):
        assert SHAPE.like(other) == other.like(SHAPE) == (other in near)


def test_what_is_written_is_read_back_and_counted(tmp_path, monkeypatch):
    rows = [
        ("h100", "b", SHAPE, 5),
        ("h100", "b", SHAPE._replace(pp=8), 9),
        ("h100", "b", SHAPE._replace(pp=16), 70),
        ("h100", "a", SHAPE, 300),
        ("a100", "b", SHAPE, 1000),
    ]
    text = shapes_toml(rows)
    assert len(tomllib.loads(text)["measured"]) == 3
    (tmp_path / "shapes.toml").write_text(text)
    monkeypatch.setattr(shapes, "preset_path", lambda *_: tmp_path / "shapes.toml")
    monkeypatch.setattr(shapes, "_measured", shapes._measured.__wrapped__)
    assert measured_like("h100", "b", plan()) == 14
    assert measured_like("h100", "a", plan(tp=1)) == 0
    assert measured_like("h100", "c", plan()) == 0


def test_a_count_is_a_sentence():
    said = [measured_words(runs, "h100", "x") for runs in (0, 1, 14)]
    assert said[2] == "Plans of its shape were measured 14 times on family h100 with x."
    assert "never measured on" in said[0]
    assert "measured once on" in said[1]


def test_shipped_shapes_are_of_known_families_and_stacks():
    known = shapes._measured()
    assert {stack for _, stack in known} <= {stack.name for stack in all_stacks()}
    for family, stack, rows in load_posterior().measured:
        assert sum(known[family, stack].values()) >= rows
