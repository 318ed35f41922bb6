"""Lessons that step through an algorithm: what devices hold, and that it is what the steps send."""

from __future__ import annotations

import pytest

from nest_core.network.collective import collective
from nest_core.network.steps import steps
from nest_core.teaching.lessons import lesson
from nest_core.teaching.lessons.contents import contents, moves
from nest_core.teaching.lessons.figure import noded
from nest_core.teaching.lessons.groups import block_seconds
from nest_core.teaching.lessons.walk import FABRICS, passed, walked


def _choice(key, which):
    return lesson(key).brief().question.choices[which]


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("algorithm", ["ring", "hierarchical", "all-to-all"])
def test_parts_that_move_are_the_flows_and_bytes_of_the_priced_steps(algorithm, fabric):
    found, held = walked(algorithm, fabric, 50)
    each = found.size_bytes / held.added.shape[2]
    for one, entries in zip(found.states, moves(found), strict=True):
        flows = zip(one.source.tolist(), one.target.tolist(), one.flow_bytes, strict=True)
        sent = sorted((a, b, round(size)) for a, b, size in flows)
        assert sent == sorted((m.source, m.target, round(each * len(m.parts))) for m in entries)


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("algorithm", ["ring", "hierarchical", "tree", "all-to-all"])
def test_in_the_end_everyone_has_everything_and_nothing_is_added_twice(algorithm, fabric):
    found, held = walked(algorithm, fabric, 50)
    assert len(held.added) == len(found.states) + 1
    assert (held.added[-1] == held.full).all()
    assert (held.added <= held.full).all()
    assert (held.added[1:] >= held.added[:-1]).all()
    assert held.just[1:].any(axis=(1, 2)).all()
    if algorithm == "hierarchical":  # halfway, every part is added up at one device
        half = held.added[len(found.states) // 2]
        assert ((half == held.full).sum(axis=0) == 1).all()


def test_unknown_algorithms_have_no_contents():
    found = steps(noded(2, 4, 50), "all_reduce", "halving_doubling", 1e9, 8)
    with pytest.raises(ValueError, match=r"algorithm must be one whose parts can be followed"):
        contents(found)


def test_the_all_reduces_answer():
    # 2 × 7/8 of a gigabyte over each link of the ring, whatever the nodes.
    assert _choice("steps", "c") == "1.75 GB"
    found, _ = walked("ring", "2 × 4", 50)
    assert found.seconds == pytest.approx(14 * (0.125e9 / 50e9 + 5e-6))
    again = collective(noded(2, 4, 50), "all_reduce", 1e9, 8, algorithm="ring")
    assert again.time_s == found.seconds


def test_the_pipelines_answer():
    plain, twice = passed("1F1B", 4, 8, 50), passed("interleaved", 4, 8, 50)
    assert twice.seconds > plain.seconds
    assert lesson("passes").brief().question.right == "c"
    quick = [passed(name, 4, 8, 400).seconds for name in ("interleaved", "1F1B")]
    assert quick[0] < quick[1]


def test_the_tensor_lessons_answer():
    compute_s, calls, size, each_s = block_seconds(8, 8, 1, 8192)
    sent_s = calls * each_s
    assert _choice("tensor", "c") == (
        f"{1e3 * (compute_s + sent_s):.3g} ms: collectives take "
        f"{100 * sent_s / (compute_s + sent_s):.3g} %"
    )
    # Each of 4 pairs of reduce-scatter and all-gather sends 7/8 of 128 MiB over NVLink, at best.
    assert (calls, size) == (8, 2**27)
    assert sent_s > 8 * 7 / 8 * 2**27 / 450e9
    assert sent_s < 2 * 8 * 7 / 8 * 2**27 / 450e9
    # Across nodes the uplinks pace them, the more so the fewer there are.
    assert block_seconds(16, 8, 4, 8192)[3] > 2 * block_seconds(16, 8, 1, 8192)[3]
    assert block_seconds(8, 8, 4, 8192)[3] == pytest.approx(each_s)
