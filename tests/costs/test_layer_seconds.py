"""What a layer and an iteration take, by hand: launches, overlap, groups of context and experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from plain_chain import chain, plan, problem

from nest_core.costs import IDEAL_OVERLAP, Calls, Overlap, StateBytes, price
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse

_quick = settings(max_examples=100, deadline=None, derandomize=True, database=None)
seconds = st.floats(0, 1e3)
shares = st.floats(0, 1)


def calls(kind: str, number: float, size: float, layers: int = 4) -> Calls:
    """The same calls in every layer, none when it is replayed."""
    none = np.zeros((3, layers))
    return Calls(kind, np.full(layers, number), np.full(layers, size), none, none)


# --- launches ------------------------------------------------------------------------------------


def test_a_slow_host_sets_the_pace():
    """Launches of 30 s against 3 s on the device: the launches, and the wait is named."""
    table = chain(launch_s=np.full((3, 4), 30.0))
    report = price(problem(table), plan())
    assert report.iteration_s == pytest.approx(8 * 4 * 30)
    (stage,) = report.stages
    assert stage.launch_s == pytest.approx(8 * 4 * (30 - 3))
    assert stage.communication_s == pytest.approx(0, abs=1e-9)
    assert dict(report.terms)["kernel launches of the slowest stage"] == stage.launch_s


def test_a_quick_host_changes_nothing():
    """Launches that take less than the device in either pass, 1 s and 2 s, are hidden."""
    quick, none = (price(problem(chain(launch_s=np.full((3, 4), s))), plan()) for s in (1.9, 0.0))
    assert quick == none


def test_each_pass_waits_for_its_own_launches():
    """Launches of 1.45 s for either pass, of 1 s forward and 2 s backward."""
    report = price(problem(chain(launch_s=np.full((3, 4), 2.9))), plan())
    assert report.iteration_s == pytest.approx(8 * 4 * (1.45 + 2.0))


# --- overlap -------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["tp", "pp", "dp", "slowdown"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_shares_outside_0_and_1_are_refused(field, value):
    with pytest.raises(InputError, match=rf"overlap\.{field} must lie between 0 and 1"):
        Overlap("fitted", **{field: value})


@pytest.mark.parametrize(("size", "shown"), [(4.0, 0.0), (6.0, 0.5), (12.0, 3.0)])
def test_tensor_collectives_hide_behind_their_pass(size, shown):
    """Halves of 4 (6, 12) bytes in pairs: 1 (1.5, 3) s either way, behind 1 s and 2 s."""
    given_calls = {"tp": calls("reduce_scatter", 1.0, size)}
    asked = problem(chain(calls=given_calls), overlap=IDEAL_OVERLAP, batch=1)
    report = price(asked, plan(tp=2))
    assert report.iteration_s == pytest.approx(4 * (3.0 + shown))
    exposed = price(replace(asked, overlap=Overlap("none")), plan(tp=2))
    assert exposed.iteration_s == pytest.approx(4 * (3.0 + size / 2))


@pytest.mark.parametrize(
    ("schedule", "load", "filled"),
    [
        # Two stages of 6 s each wait for 5 s of activations and 5 s of gradients.
        ("1f1b", 16.0, 16.0),
        # 6 of 10 hide in the steady state, and do not while the pipeline fills and drains.
        ("gpipe", 10.0, 10.0 + 2 * 6.0),
        # Gradients of weights, 2 s of either stage, shorten that threefold.
        ("zb_2p", 10.0, 10.0 + 2 * 6.0 - 3 * 2.0),
    ],
)
def test_transfers_hide_where_a_stage_is_far_enough_ahead(schedule, load, filled):
    table = chain(boundary_bytes=np.array([0, 5.0, 10.0, 5.0, 0]), weight_s=np.full(4, 1.0))
    asked = problem(table, overlap=Overlap("fitted", pp=1.0), batch=8)
    report = price(asked, plan((0, 2, 4), pp=2, schedule=schedule))
    assert [stage.micro_batch_s for stage in report.stages] == pytest.approx([load] * 2)
    assert report.iteration_s == pytest.approx(8 * load + filled)


def test_gradients_hide_behind_the_backward_pass_of_their_layer():
    """2 (6) parameters of 1 byte: two collectives of 1 s (3 s) a layer, behind 8 s of four layers.

    The first layer's come last, and show whole.
    """
    for held, shown in ((2.0, 2.0), (6.0, 24.0 - 8.0)):
        table = chain(parameters=np.full(4, held))
        asked = problem(table, overlap=Overlap("ideal", dp=1.0), batch=2)
        report = price(asked, plan(dp=2))
        assert report.stages[0].sync_s == pytest.approx(shown)


def test_new_weights_hide_behind_the_forward_pass():
    """ZeRO 1: of 4 s of gradients 3 hide behind 8 s, of 4 s of weights 3 behind 4 s."""
    asked = problem(chain(parameters=np.full(4, 2.0)), overlap=Overlap("ideal", dp=1.0), batch=2)
    assert price(asked, plan(dp=2, zero=1)).stages[0].sync_s == pytest.approx(2.0)
    slow = problem(chain(parameters=np.full(4, 6.0)), overlap=Overlap("ideal", dp=1.0), batch=2)
    # 9 s behind 8 s and 9 s behind 4 s, beside 3 s of either that nothing hides.
    assert price(slow, plan(dp=2, zero=1)).stages[0].sync_s == pytest.approx(1.0 + 5.0 + 6.0)


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_sharded_weights_are_gathered_behind_each_micro_batch(micro_batches):
    """ZeRO 3: weights gathered for 1 s behind 1 s and 2 s, gradients scattered behind the rest.

    Of the first layer of either pass nothing hides what is waited for.
    """
    table = chain(parameters=np.full(4, 2.0))
    for overlap, load in ((Overlap("none"), 24.0), (IDEAL_OVERLAP, 12.0 + 2.0)):
        asked = problem(table, overlap=overlap, batch=2 * micro_batches)
        report = price(asked, plan(dp=2, zero=3))
        assert report.stages[0].micro_batch_s == pytest.approx(load)
        assert report.stages[0].sync_s == pytest.approx(0, abs=1e-20)


def test_reductions_of_the_last_micro_batch_have_no_forward_pass_to_hide_behind():
    """ZeRO 2: 3 s behind 2 s of its backward pass, of three in four behind 1 s of the next too."""
    table = chain(parameters=np.full(4, 6.0))
    for m, load in ((1, 4 * (3.0 + 1.0)), (4, 4 * (3.0 + 0.25))):
        asked = problem(table, overlap=Overlap("ideal", dp=1.0), batch=2 * m)
        assert price(asked, plan(dp=2, zero=2)).stages[0].micro_batch_s == pytest.approx(load)


# --- context and experts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("ring", 2.0, 6.0),
        ("reduce_scatter", 2.0, 6.0),
        ("all_to_all", 2.0, 6.0),
        ("all_reduce", 2.0, 6.0),
    ],
)
def test_three_quarters_of_a_buffer_leave_each_of_four_ranks(kind, number, expected):
    """8 bytes in two calls: every kind sends 6 of them through a port."""
    for axis, degrees in (("cp", {"cp": 4}), ("ep", {"dp": 4, "ep": 4}), ("tp", {"tp": 4})):
        table = chain(calls={axis: calls(kind, number, 8.0)})
        report = price(problem(table), plan(**degrees))
        assert report.stages[0].micro_batch_s == pytest.approx(4 * (3.0 + expected))


@pytest.mark.parametrize(("micro_batches", "beside"), [(1, 0.0), (2, 0.5), (8, 0.875)])
def test_experts_hide_behind_another_micro_batch(micro_batches, beside):
    """Of 1.5 s a fifth hides in its layer; with passes beside it four fifths of the share do."""
    table = chain(calls={"ep": calls("all_to_all", 1.0, 2.0)})
    for experts, hidden in ((False, 0.2), (True, 0.2 + beside * 0.6)):
        overlap = Overlap("fitted", tp=0.2, dp=0.8, experts=experts)
        asked = problem(table, overlap=overlap, batch=4 * micro_batches)
        report = price(asked, plan(dp=4, ep=4))
        assert report.stages[0].micro_batch_s == pytest.approx(4 * (3.0 + 1.5 * (1 - hidden)))


def test_a_ring_pays_each_step_and_an_exchange_one():
    """Latency of 1 s: three steps round four ranks, one to all at once."""
    slow = collapse(Hierarchical("slow", (Tier("node", 8, 1e30, 1.0),)))
    for kind, steps in (("ring", 3.0), ("all_to_all", 1.0), ("reduce_scatter", 2.0)):
        table = chain(calls={"cp": calls(kind, 1.0, 8.0)})
        report = price(problem(table, network=slow), plan(cp=4))
        assert report.stages[0].micro_batch_s == pytest.approx(4 * (3.0 + steps))


def test_context_ranks_share_weights_and_experts_do_not():
    """dp 2, cp 2, ep 2: dense states over 4 ranks, experts' over 2; both reduced among theirs."""
    table = chain(parameters=np.full(4, 8.0), expert_parameters=np.full(4, 8.0))
    asked = problem(table, state=StateBytes(1.0, 1.0, 2.0))
    memory = price(asked, plan(dp=2, cp=2, ep=2, zero=1)).stages[0].memory
    assert memory.optimizer == pytest.approx(2.0 * 32 / 4 + 2.0 * 32 / 2)
    memory = price(asked, plan(dp=2, cp=2, ep=2, zero=3)).stages[0].memory
    assert memory.weights == pytest.approx(32 / 4 + 32 / 2)
    # Weights, gradients and their sum of one layer whole, and the weights of the one before.
    assert memory.buffers == pytest.approx(4 * 16.0)
    alone = price(asked, plan(dp=2, cp=2, ep=4, zero=3)).stages[0].memory
    assert alone.weights == pytest.approx(32 / 4 + 32)
    # Halves of 8 bytes: 3/4 of them among four ranks, 1/2 among two.
    sync = price(asked, plan(dp=2, cp=2, ep=2)).stages[0].sync_s
    assert sync == pytest.approx(4 * 2 * (8 * 3 / 4 + 8 / 2))


def test_experts_of_a_rank_cost_an_optimizer_step_of_their_own():
    table = chain(expert_parameters=np.full(4, 8.0))
    asked = problem(table, update_Bps=1.0)
    for zero, share in ((0, 1), (1, 2)):
        stage = price(asked, plan(dp=4, ep=2, zero=zero)).stages[0]
        update = 32 * (2 * 2.0 + 1.0 + 1.0) / share
        assert stage.sync_s == pytest.approx(update + 4 * 2 * 8 / 2)


# --- virtual stages -----------------------------------------------------------------------------


def test_virtual_stages_multiply_transfers():
    """Two virtual stages each: three hops of 1 s in the chain, the middle from last to first."""
    table = chain(boundary_bytes=np.array([0, 1.0, 1.0, 1.0, 0]))
    asked = problem(table, batch=2)
    report = price(asked, plan((0, 1, 2, 3, 4), pp=2, schedule="interleaved", interleave=2))
    # Each stage has 6 s of layers and three transfers: activations and gradients at inner ends.
    assert [stage.micro_batch_s for stage in report.stages] == pytest.approx([9.0, 9.0])
    assert report.iteration_s == pytest.approx(2 * 9.0 + 9.0 / 2)
    assert report.stages[0].virtual_stages == ((0, 1), (2, 3))


# --- copies of what ZeRO shards ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copies", "per_weight"),
    [
        ((), (0, 0, 0)),
        # Read in 2 bytes and written in 4; of weights each pass copies 2 bytes out.
        (("gradients",), (0, 2 + 4, 2 + 4)),
        (("weights", "gradients"), (0, 2 + 4, 2 + 4 + 2 * (2 + 2))),
    ],
)
def test_what_zero_shards_is_copied_once_a_pass(copies, per_weight):
    """Never where nothing is sharded, and as device time, which no traffic hides."""
    table = chain(parameters=np.full(4, 10.0))
    for zero, size in zip((1, 2, 3), per_weight, strict=True):
        for dp, shared in ((8, 1.0), (1, 0.0)):
            copied, plain = (
                price(
                    problem(
                        table,
                        state=StateBytes(2, 4, 12),
                        update_Bps=100.0,
                        sharded_gradients=True,
                        copies=which,
                    ),
                    plan(dp=dp, zero=zero),
                )
                for which in (copies, ())
            )
            m = plan(dp=dp).point.micro_batches(8)
            assert copied.iteration_s - plain.iteration_s == pytest.approx(
                shared * m * 4 * 10.0 * size / 100.0
            )
