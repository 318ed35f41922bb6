"""Pipeline schedules, replayed pass by pass, against what `price` says.

The replay knows only who waits for whom: a forward pass for the one before it in the chain, a
backward pass for the one after it, and every stage for its own passes in the schedule's order.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from nest_core.costs import LayerTable, Plan, Point, Problem, Report, StateBytes, price, schedules
from nest_core.costs.schedules import PassOrder, in_flight, paired
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse

Pass = tuple[str, int, int]
"""Forward, backward or weights, micro-batch, virtual stage of the whole chain."""

_SECONDS = {"F": 2.0, "B": 5.0}
"""Of a virtual stage."""

_SPLIT = ({"F": 2.0, "B": 3.0, "W": 2.0}, {"F": 4.0, "B": 3.5, "W": 1.0})
"""The same where gradients of weights are a pass of their own."""


def gpipe(pp: int, s: int, m: int, v: int) -> list[Pass]:
    """Everything forward, then everything backward."""
    assert v == 1
    return [("F", k, s) for k in range(m)] + [("B", k, s) for k in range(m)]


def one_forward_one_backward(pp: int, s: int, m: int, v: int) -> list[Pass]:
    """As many passes forward as there are stages behind, then in turn."""
    assert v == 1
    ahead = min(pp - 1 - s, m)
    return in_turn([("F", k, s) for k in range(m)], [("B", k, s) for k in range(m)], ahead)


def interleaved(pp: int, s: int, m: int, v: int) -> list[Pass]:
    """Groups of pp micro-batches go through one virtual stage after another, and so back."""
    groups = range(m // pp)
    forward = [
        ("F", group * pp + k, virtual_stage * pp + s)
        for group in groups
        for virtual_stage in range(v)
        for k in range(pp)
    ]
    backward = [
        ("B", group * pp + k, virtual_stage * pp + s)
        for group in groups
        for virtual_stage in reversed(range(v))
        for k in range(pp)
    ]
    ahead = min(2 * (pp - 1 - s) + (v - 1) * pp, m * v)
    return in_turn(forward, backward, ahead)


def in_turn(forward: list[Pass], backward: list[Pass], ahead: int) -> list[Pass]:
    """Some passes forward, then one forward and one backward, then the rest backward."""
    order = forward[:ahead]
    for number, one in enumerate(forward[ahead:]):
        order += [one, backward[number]]
    return order + backward[len(forward) - ahead :]


ORDERS = {"gpipe": gpipe, "1f1b": one_forward_one_backward, "interleaved": interleaved}


def zero_bubble(pp: int, s: int, m: int, more: int) -> list[Pass]:
    """Like 1F1B, with ``more`` times its passes ahead, and each W as many behind as stages are
    before; ``more`` 1 is ZB-H1, 2 is ZB-H2."""
    ahead, late = min(more * (pp - 1 - s), m), more * s
    order = [("F", k, s) for k in range(ahead)]
    for k in range(m):
        order += [("F", k + ahead, s)] * (k + ahead < m) + [("B", k, s)]
        order += [("W", k - late, s)] * (k >= late)
    return order + [("W", k, s) for k in range(max(0, m - late), m)]


def replay(
    orders: list[list[Pass]],
    virtual_stages: int,
    takes: list[dict[str, float]],
    answer: str = "B",
    kept: Sequence[int] = (),
) -> tuple[float, float, list[int]]:
    """When the last pass ends, the longest that a stage takes from its first pass to its last, and
    the most passes forward that each stage has yet to answer, each with what its virtual stage
    keeps."""
    kept = kept or [1] * virtual_stages
    done: dict[Pass, float] = {}
    begun: dict[int, float] = {}
    clock, place = [0.0] * len(orders), [0] * len(orders)
    open_passes, most = [0] * len(orders), [0] * len(orders)
    while any(place[s] < len(order) for s, order in enumerate(orders)):
        moved = False
        for s, order in enumerate(orders):
            while place[s] < len(order):
                kind, k, virtual_stage = one = order[place[s]]
                needs = []
                if kind == "F" and virtual_stage > 0:
                    needs = [("F", k, virtual_stage - 1)]
                if kind == "B":
                    needs = [
                        ("B", k, virtual_stage + 1)
                        if virtual_stage < virtual_stages - 1
                        else ("F", k, virtual_stage)
                    ]
                if any(need not in done for need in needs):
                    break
                ready = max([clock[s], *(done[need] for need in needs)])
                begun.setdefault(s, ready)
                clock[s] = done[one] = ready + takes[virtual_stage][kind]
                open_passes[s] += kept[virtual_stage] * ((kind == "F") - (kind == answer))
                most[s] = max(most[s], open_passes[s])
                place[s] += 1
                moved = True
        assert moved, "the schedule waits for itself"
    spans = [end - begun[s] for s, end in enumerate(clock)]
    return max(clock), max(spans), most


def priced(
    schedule: str,
    pp: int,
    m: int,
    v: int,
    takes: list[dict[str, float]] | None = None,
    recompute: str = "none",
    cuts: Sequence[int] = (),
) -> Report:
    """Virtual stages of one layer unless cut otherwise, links that take no time, one byte kept per
    layer."""
    takes = takes or [_SECONDS] * pp * v
    layers = len(takes)
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    table = LayerTable(
        compute_s=np.array([sum(one.values()) for one in takes]),
        forward_s=np.array([one["F"] for one in takes]),
        weight_s=np.array([one.get("W", 0.0) for one in takes]),
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=np.ones((3, layers)) * np.array([[1.0], [0.5], [0.25]]),
        working_bytes=none,
        boundary_bytes=np.zeros(layers + 1),
    )
    problem = Problem(
        network=collapse(Hierarchical("one", (Tier("node", pp, 1.0, 0.0),))),
        table=lambda tp, sp, micro_batch, cp, ep, etp: table,
        batch=m,
        tokens=1,
        memory_bytes=1e9,
        reserved_bytes=0.0,
        state=StateBytes(0.0, 0.0, 0.0),
        update_Bps=1.0,
        model_flops=1.0,
        peak_flops=1.0,
    )
    order = ("tp", "cp", "dp", "pp")
    point = Point(1, False, 1, pp, 1, 0, order, schedule=schedule, interleave=v)
    return price(problem, Plan(point, tuple(cuts or range(layers + 1)), (recompute,) * pp))


CASES = [
    (schedule, pp, m, v)
    for schedule in ORDERS
    for pp in (1, 2, 3, 4, 7)
    for m in (1, 2, 3, 4, 6, 12, 14)
    for v in ((2, 3, 5) if schedule == "interleaved" else (1,))
    if schedule != "interleaved" or (pp > 1 and m % pp == 0)
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("schedule", "pp", "m", "v"), CASES)
def test_time_and_memory_are_those_of_the_replay(schedule, pp, m, v):
    orders = [ORDERS[schedule](pp, s, m, v) for s in range(pp)]
    seconds, _, most = replay(orders, pp * v, [_SECONDS] * (pp * v))
    report = priced(schedule, pp, m, v)
    assert report.iteration_s == pytest.approx(seconds, rel=1e-12)
    held = [stage.memory.activations + stage.memory.stash for stage in report.stages]
    assert held == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("v", [2, 4])
def test_interleaving_trades_bubble_for_memory(v):
    """The bubble is a v-th of 1F1B's, and the first stage holds more."""
    plain, chunked = priced("1f1b", 4, 8, 1), priced("interleaved", 4, 8, v)
    assert plain.bubble == pytest.approx(3 / 8)  # (p - 1) / m
    assert chunked.bubble == pytest.approx(3 / 8 / v)
    first, other = chunked.stages[0].memory, plain.stages[0].memory
    assert first.stash / first.activations > other.stash / other.activations


@pytest.mark.sampled(3)
@pytest.mark.parametrize("schedule", ["zb_h1", "zb_1p", "zb_2p"])
@pytest.mark.parametrize("split", _SPLIT, ids=["W as F", "short W"])
@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 14, 30])
def test_a_zero_bubble_schedule_is_its_replay(schedule, split, pp, m):
    """ZB-H1 ends when its last pass does; the others last as long as their slowest stage."""
    orders = [zero_bubble(pp, s, m, 2 if schedule == "zb_2p" else 1) for s in range(pp)]
    ended, span, most = replay(orders, pp, [split] * pp, answer="W")
    report = priced(schedule, pp, m, 1, [split] * pp)
    seconds = ended if schedule == "zb_h1" else span
    assert report.iteration_s == pytest.approx(seconds, rel=1e-12)
    held = [stage.memory.activations + stage.memory.stash for stage in report.stages]
    assert held == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize(("more", "schedule"), [(1, "zb_h1"), (2, "zb_2p")])
def test_bubbles_and_memory_are_those_of_the_papers_table(more, schedule):
    """(p - 1)(F + B - W) in p micro-batches, and (p - 1)(F + B - 2 W) in 2 p - 1."""
    split = _SPLIT[1]
    report = priced(schedule, 4, 16, 1, [split] * 4)
    assert report.fill_s == pytest.approx(3 * (split["F"] + split["B"] - more * split["W"]))
    for stage in report.stages:
        assert stage.memory.activations + stage.memory.stash == pytest.approx(3 * more + 1)


def test_zero_bubbles_need_gradients_of_weights_as_long_as_the_rest():
    even = {"F": 2.0, "B": 2.0, "W": 2.0}
    assert priced("zb_2p", 4, 16, 1, [even] * 4).fill_s == pytest.approx(0.0, abs=1e-9)


def test_what_waits_for_its_weights_is_held_whole():
    """Recomputation holds less only until the backward pass has run it again."""
    stages = priced("zb_h1", 4, 16, 1, [_SPLIT[0]] * 4, "full").stages
    held = [stage.memory.activations + stage.memory.stash for stage in stages]
    assert held == pytest.approx([4 * 0.25, 3 * 0.25 + 1, 2 * 0.25 + 2, 0.25 + 3])


def test_uneven_stages_take_what_the_replay_does_or_little_more():
    """The form lets everything wait for the slowest stage: seldom less, 2 % more in the median."""
    dice, off = np.random.default_rng(7), []
    for _ in range(150):
        pp, m, more = int(dice.integers(2, 8)), int(dice.integers(2, 30)), int(dice.integers(1, 3))
        takes = [
            {"F": 2 * scale, "B": 2.2 * scale, "W": 1.6 * scale} for scale in dice.uniform(1, 2, pp)
        ]
        orders = [zero_bubble(pp, s, m, more) for s in range(pp)]
        ended, span, _ = replay(orders, pp, takes, answer="W")
        report = priced("zb_h1" if more == 1 else "zb_2p", pp, m, 1, takes)
        off.append(report.iteration_s / (ended if more == 1 else span) - 1)
    assert min(off) > -0.005
    assert np.median(off) < 0.03
    assert np.quantile(off, 0.9) < 0.08


def layouts_by_hand() -> Iterator[tuple[int, int, int, list[int]]]:
    """pp, m, v and the layers of every virtual stage: one more here and there, or light ends."""
    dice = np.random.default_rng(8)
    while True:
        pp, v = int(dice.choice([2, 3, 4])), int(dice.integers(2, 5))
        sizes = dice.integers(2, 4, pp * v).tolist()
        if dice.random() < 0.5:
            sizes = [int(dice.integers(1, 5)), *[3] * (pp * v - 2), int(dice.integers(1, 5))]
        yield pp, pp * int(dice.choice([1, 2, 4, 8])), v, sizes


def test_uneven_virtual_stages_take_and_hold_what_the_replay_does():
    """The closed form was up to 10 % off, and every virtual stage held their mean."""
    dice, off = np.random.default_rng(9), []
    for pp, m, v, sizes in islice(layouts_by_hand(), 100):
        layers = [{"F": f, "B": b} for f, b in dice.uniform(1, 2, (sum(sizes), 2))]
        cuts = [0, *accumulate(sizes)]
        takes = [
            {way: sum(one[way] for one in layers[i:j]) for way in "FB"} for i, j in pairwise(cuts)
        ]
        orders = [interleaved(pp, s, m, v) for s in range(pp)]
        played, _, most = replay(orders, pp * v, takes, kept=sizes)
        report = priced("interleaved", pp, m, v, layers, cuts=cuts)
        closed = m * max(loads := [stage.micro_batch_s for stage in report.stages])
        off.append((closed + (sum(loads) - max(loads)) / v) / played - 1)
        if report.plan.is_replayed:
            assert report.iteration_s == pytest.approx(played, rel=1e-12)
            assert report.bubble == pytest.approx(played / (m * max(loads)) - 1, rel=1e-9)
            held = [stage.memory.activations + stage.memory.stash for stage in report.stages]
            assert held == pytest.approx(most, rel=1e-12)
    assert np.abs(off).max() > 0.05


def test_beyond_the_passes_that_are_replayed_groups_take_as_long_as_the_last(monkeypatch):
    dice = np.random.default_rng(10)
    for pp, _, v, sizes in islice(layouts_by_hand(), 10):
        layers = [{"F": f, "B": b} for f, b in dice.uniform(1, 2, (sum(sizes), 2))]
        case = ("interleaved", pp, 20 * pp, v, layers)
        cuts = [0, *accumulate(sizes)]
        whole = priced(*case, cuts=cuts).iteration_s
        with monkeypatch.context() as few:
            few.setattr(schedules, "MOST_PASSES", 2 * v * pp**2 * 8)
            assert priced(*case, cuts=cuts).iteration_s == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "uneven"),
    [
        ([2, 2, 2, 2], False),
        ([3, 2, 2, 3], False),
        ([2, 2, 2, 3], True),
        ([1, 2, 2, 1], True),
        ([4, 2, 2, 4], True),
        ([3, 2, 3, 3], True),
    ],
)
def test_equal_virtual_stages_hold_as_many_blocks_or_layers(sizes, uneven):
    """Embedding and head beside the blocks of the first and the last, or as one layer each."""
    order = ("tp", "cp", "dp", "pp")
    point = Point(1, False, 1, 2, 1, 0, order, schedule="interleaved", interleave=2)
    assert Plan(point, (0, *accumulate(sizes)), ("none", "none")).is_replayed is uneven
    plain = Point(1, False, 1, 4, 1, 0, order)
    assert not Plan(plain, (0, *accumulate(sizes)), ("none",) * 4).is_replayed


@pytest.mark.parametrize("head", [0.5, 1.0, 2.0])
def test_the_closed_form_is_exact_where_one_end_is_heavier(head):
    """Even virtual stages with a head of so many blocks; a tenth of one before them adds 0.8 %."""
    off = []
    for embedding in (0.0, 0.1):
        takes = [{"F": 1.0, "B": 2.0} for _ in range(16)]
        takes[-1] = {"F": 1.0 + head, "B": 2.0 + 2.0 * head}
        takes[0] = {"F": 1.0 + embedding, "B": 2.0 + 2.0 * embedding}
        played, _, _ = replay([interleaved(4, s, 16, 4) for s in range(4)], 16, takes)
        off.append(priced("interleaved", 4, 16, 4, takes).iteration_s / played - 1)
    assert off[0] == pytest.approx(0.0, abs=1e-12)
    assert -0.01 < off[1] < 0.0


def test_uneven_stages_of_1f1b_never_take_longer_than_priced():
    """The sum and m - 1 of the longest: 1 % above the replay in the median, at most 16 %."""
    dice, off = np.random.default_rng(10), []
    for _ in range(150):
        pp, m = int(dice.integers(2, 9)), int(dice.integers(1, 40))
        takes = [{"F": f, "B": 2 * b} for f, b in dice.uniform(1, 2, (pp, 2))]
        orders = [one_forward_one_backward(pp, s, m, 1) for s in range(pp)]
        played, _, _ = replay(orders, pp, takes)
        off.append(priced("1f1b", pp, m, 1, takes).iteration_s / played - 1)
    assert min(off) > -1e-12
    assert np.median(off) < 0.02
    assert max(off) < 0.16


@pytest.mark.parametrize(("pp", "v", "m"), [(1, 1, 1), (1, 1, 6), (2, 2, 4), (4, 2, 4), (4, 3, 16)])
def test_passes_that_run_beside_one_another(pp, v, m):
    """One more pass forward before the turns begin; each turn is a pair of the rest.

    In a turn every layer forward is followed by one backward, so beside what a stage held before it
    never holds more than a layer.
    """
    schedule, orders = ("interleaved" if v > 1 else "1f1b"), ("tp", "cp", "dp", "pp")
    point = Point(1, False, 1, pp, 1, 0, orders, schedule=schedule, interleave=v)
    for s in range(pp):
        order = interleaved(pp, s, m, v) if v > 1 else one_forward_one_backward(pp, s, m, v)
        passes = [[one for one in order if one[0] == kind] for kind in "FB"]
        ahead = next(at for at, one in enumerate(order) if one[0] == "B")  # its own pass included
        pairs = len(passes[0][ahead:])
        assert paired(point, m)[s] == pytest.approx(pairs / (m * v))
        layers = 5  # of a virtual stage
        steps = [1] * layers * min(ahead, m * v)  # what each step adds to the layers held
        steps += [1, -1] * layers * pairs + [-1] * layers * (m * v - pairs)
        most = max(accumulate(steps))
        assert in_flight(point, m)[s] * v * layers + (pairs > 0) == pytest.approx(most)


OURS = {"InterleavedZeroBubble": "interleaved_zb", "ZBVZeroBubble": "zbv", "DualPipeV": "dualpipev"}


def recorded() -> list[dict[str, str]]:
    """Rows of PyTorch's own tables, those that it refuses without figures."""
    path = Path(__file__).parents[1] / "data" / "pipeline_orders.csv"
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    return list(csv.DictReader(lines))


def written(order: PassOrder) -> str:
    """All passes as the recorded checksums have them: what runs together joined, I and W as B."""
    ranks = []
    for s in range(len(order.way)):
        text = ""
        for n, way in enumerate(order.way[s].tolist()):
            stage = order.placed[s, order.virtual_stage[s, n]]
            name = f"{stage}.{order.micro_batch[s, n]}"
            goes_on = bool(order.overlaps[s, n])
            if way == 2 and text.endswith("+"):
                text = text[:-1] + " "  # of a whole backward pass, which stands already
                continue
            text += f"{'B' if way == 1 and goes_on else 'FIW'[way]}{name}{'+' if goes_on else ' '}"
        ranks.append(text.strip())
    return "; ".join(ranks)


def test_replayed_schedules_run_the_passes_of_pytorchs():
    """All passes in order, what is live, how long each rank idles, when the last is done."""
    equal = 0
    for row in recorded():
        schedule, pp, m = OURS[row["schedule"]], int(row["pp"]), int(row["m"])
        case = (schedule, pp, m, 2, [{"F": 1.0, "B": 1.0, "W": 1.0}] * 2 * pp)
        if not row["slots"] or (schedule == "interleaved_zb" and m % pp):
            refusal = r"must divide the|must not exceed half the"
            with pytest.raises(InputError, match=refusal):
                priced(*case)
            continue
        report = priced(*case)
        point = report.plan.point
        order = PassOrder.of(point, m)
        assert zlib.crc32(written(order).encode()) == int(row["order"]), row
        assert report.iteration_s == pytest.approx(float(row["slots"]), rel=1e-12)
        assert (2 * in_flight(point, m)).tolist() == [int(n) for n in row["live"].split()]
        done = order.starts(np.ones((pp, 2, 3)))[:, -1] + 1.0
        assert (done - 6 * m).tolist() == [int(n) for n in row["idle"].split()]
        equal += 1
    assert equal == 68


@pytest.mark.parametrize("pp", [2, 3, 4, 8])
def test_a_v_of_equal_passes_waits_as_its_papers_say(pp):
    """ZB-V: for nothing but the first pass of each stage before. DualPipeV, with W a third of a
    micro-batch: (pp - 1)(F&B + B - 3 W) in DeepSeek's table, F&B being as long as both."""
    even = [{"F": 2.0, "B": 2.0, "W": 2.0}] * 2 * pp
    assert priced("zbv", pp, 4 * pp, 2, even).fill_s == pytest.approx(2.0 * (pp - 1))
    assert priced("dualpipev", pp, 4 * pp, 2, even).fill_s == pytest.approx(2.0 * 2 * (pp - 1))
    for schedule, most in (("zbv", 2 * pp), ("dualpipev", 2 * pp + 1)):
        for stage in priced(schedule, pp, 4 * pp, 2, even).stages:
            assert stage.memory.activations + stage.memory.stash == pytest.approx(most)


def test_a_whole_backward_pass_leaves_nothing_to_gradients_of_weights():
    """Recomputed, DualPipeV's first stages hold a quarter; what waits for W in the end is whole."""
    for schedule in ("zbv", "dualpipev"):
        stages = priced(schedule, 3, 12, 2, [_SPLIT[0]] * 6, "full").stages
        held = [stage.memory.activations + stage.memory.stash for stage in stages]
        waiting = [max(waited(row)) for row in by_hand(schedule, 3, 12)]
        assert held == pytest.approx(waiting)


def by_hand(schedule: str, pp: int, m: int) -> list[str]:
    """Ways of a stage's passes one after another; B for a backward pass with its W."""
    order = PassOrder.of(Point(1, False, 1, pp, 1, 0, (), schedule=schedule, interleave=2), m)
    text = written(order).split("; ")
    return ["".join(part[0] for part in row.replace("+", " ").split()) for row in text]


def waited(ways: str) -> Iterator[float]:
    """Layers that are held after each pass: a quarter until its backward pass, then all until W."""
    now = 0.0
    for way in ways:
        now += {"F": 0.25, "I": 0.75, "W": -1.0, "B": -0.25}[way]
        yield now


def test_beyond_the_passes_that_are_replayed_a_v_goes_on_as_before(monkeypatch):
    dice = np.random.default_rng(37)
    for schedule in OURS.values():
        pp, m = 3, 60 + (0 if schedule == "interleaved_zb" else 1)
        layers = [dict(zip("FBW", row, strict=True)) for row in dice.uniform(1, 2, (2 * pp, 3))]
        whole = priced(schedule, pp, m, 2, layers).iteration_s
        with monkeypatch.context() as few:
            few.setattr(schedules, "MOST_PASSES", 4 * pp**2 * 8)
            assert priced(schedule, pp, m, 2, layers).iteration_s == pytest.approx(whole, rel=1e-9)
