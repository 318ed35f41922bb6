"""Memory of a stage: states under ZeRO, what is in flight, what is whole for a moment, the rest."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from plain_chain import chain, plan, problem

from nest_core.costs import StateBytes, price
from nest_core.costs.head_room import fits_chance
from nest_core.costs.memory import BUFFERS
from nest_core.costs.stages import stage_memory
from nest_core.costs.tables import keeps_transposed, layer_table, state_bytes
from nest_core.costs.zero import state_shares, traffic
from nest_core.hardware import load_accelerator
from nest_core.hardware.memory_rules import FRAGMENTATION
from nest_core.planner import SearchSpace, search
from nest_core.scenario import load_scenario
from nest_core.workload import Strategy
from nest_core.workload import chain as chain_of
from nest_core.workload.model_files import load_model

MIXED = StateBytes(weights=2.0, gradients=4.0, optimizer=12.0)
SIZES = np.array([5.0, 1.0, 2.0, 7.0])


def memory(table, given, s=0, **changed):
    """Of one stage of a priced plan."""
    return price(problem(table, **changed), given).stages[s].memory


@pytest.mark.parametrize("zero", range(4))
@pytest.mark.parametrize("dp", [1, 4])
def test_zero_shards_states_as_its_paper_counts(zero, dp):
    """Psi parameters on N ranks: 18 Psi, then 12 Psi / N, 4 Psi / N and 2 Psi / N of them."""
    psi = SIZES.sum()
    held = memory(chain(parameters=SIZES), plan(dp=dp, zero=zero), state=MIXED)
    assert held.optimizer == 12 * psi / (dp if zero >= 1 else 1)
    assert held.gradients == 4 * psi / (dp if zero >= 2 else 1)
    assert held.weights == 2 * psi / (dp if zero >= 3 else 1)


def test_experts_are_sharded_over_the_ranks_that_share_them():
    """8 ranks, of which 4 hold different experts: theirs are halved, dense weights are in eight."""
    table = chain(parameters=SIZES, expert_parameters=10 * SIZES)
    held = memory(table, plan(dp=8, ep=4, zero=3), state=MIXED)
    assert held.weights == pytest.approx(2 * (SIZES.sum() / 8 + 10 * SIZES.sum() / 2))
    # Whole while the last layer runs: its weights, both forms of its gradients, the layer before.
    dense = 8 * SIZES[3] + 2 * SIZES[2]
    assert held.whole == pytest.approx(11 * dense)
    # As many experts apart as there are ranks: nobody shares them, so they are never gathered.
    held = memory(table, plan(dp=4, ep=4, zero=3), state=MIXED)
    assert held.whole == pytest.approx(dense + 2 * 10 * SIZES[3])


@pytest.mark.parametrize(
    ("zero", "own", "before"), [(0, 2.0, 0.0), (1, 2.0, 0.0), (2, 6.0, 0.0), (3, 8.0, 2.0)]
)
def test_what_is_whole_for_a_moment(zero, own, before):
    """The worst layer of the stage decides, with what it re-materialises."""
    working = np.array([1.0, 30.0, 4.0, 0.0])
    table = chain(parameters=SIZES, working_bytes=np.tile(working, (3, 1)))
    held = memory(table, plan(dp=4, zero=zero), state=MIXED)
    earlier = np.array([0.0, *SIZES[:-1]])
    assert held.working + held.whole == (working + own * SIZES + before * earlier).max()


def test_the_layer_fetched_beside_the_first_of_a_stage_is_the_one_before():
    """Layer 1 opens the second stage; layer 0 has 5 parameters."""
    table = chain(parameters=np.array([5.0, 1.0, 0.0, 0.0]))
    given = plan((0, 1, 4), pp=2, dp=4, zero=3)
    assert memory(table, given, 1, state=MIXED).whole == 8 * 1 + 2 * 5


def test_alone_nothing_is_gathered():
    """One rank holds everything anyway; a layer's new gradients stand beside the sum."""
    for zero in range(4):
        held = memory(chain(parameters=SIZES), plan(dp=1, zero=zero), state=MIXED)
        assert held.whole == 2 * SIZES.max()


def order_of_passes(pp, v, m, s):
    """Forward passes (+1) and backward passes (-1) of one position under Megatron-LM's schedule."""
    total = m * v
    first = min(total, 2 * (pp - s - 1) + (v - 1) * pp)
    passes = [1] * first
    while passes.count(1) < total:
        passes += [1, -1]
    return passes + [-1] * (total - passes.count(-1))


@pytest.mark.parametrize("v", [1, 2, 4])
@pytest.mark.parametrize("m", [4, 8, 32])
def test_the_stash_follows_schedule_and_position(v, m):
    """Kept bytes times micro-batches in flight; a virtual stage keeps a part."""
    pp = 4
    layers = pp * v
    kept = np.tile(np.full(layers, 3.0), (3, 1))
    table = chain(layers, kept_bytes=kept)
    cuts = tuple(range(layers + 1))
    if v > 1:
        schedules = {"interleaved": lambda s: max(np.cumsum(order_of_passes(pp, v, m, s))) / v}
    else:
        schedules = {"1f1b": lambda s: min(m, pp - s), "gpipe": lambda s: m}
    for schedule, held in schedules.items():
        given = plan(cuts, pp=pp, schedule=schedule, interleave=v)
        report = price(problem(table, batch=m), given)
        for s, stage in enumerate(report.stages):
            assert stage.memory.activations == 3.0 * v
            assert stage.memory.activations + stage.memory.stash == pytest.approx(3.0 * v * held(s))


def test_zero_shards_no_activations():
    kept = np.tile([3.0, 4.0, 5.0, 6.0], (3, 1))
    found = [memory(chain(kept_bytes=kept), plan(dp=4, zero=zero)) for zero in range(4)]
    assert {(held.activations, held.stash) for held in found} == {(18.0, 0.0)}


@pytest.mark.parametrize("zero", [0, 1])
def test_the_optimizer_step_counts_where_it_needs_more_than_the_passes(zero):
    """Nothing is in flight then, so the two do not add up."""
    state = replace(MIXED, gradients=2.0, temporary=4.0)
    ranks = 4 if zero else 1
    for kept in (1.0, 100.0):
        table = chain(parameters=SIZES, kept_bytes=np.full((3, 4), kept))
        held = memory(table, plan(dp=4, zero=zero), state=state)
        passes = 4 * kept + 2 * SIZES.max()
        needs = 4 * SIZES.sum() / ranks
        assert held.tensors - SIZES.sum() * (4 + 12 / ranks) == max(passes, needs)


def test_gradients_of_their_own_are_sharded_with_the_others():
    state = replace(MIXED, second_gradients=2.0)
    for zero, ranks in ((1, 1), (2, 4)):
        held = memory(chain(parameters=SIZES), plan(dp=4, zero=zero), state=state)
        assert held.gradients == 6 * SIZES.sum() / ranks


def test_allocator_and_driver_hold_more_than_tensors():
    """A plan fits where exactly its total is there; the planner and the price agree on it."""
    table = chain(parameters=SIZES, kept_bytes=np.full((3, 4), 9.0))
    given = plan()
    asked = problem(table, devices=1, state=MIXED, reserved_bytes=50.0, fragmentation=0.25)
    held = price(asked, given).stages[0].memory
    assert held.total == pytest.approx(1.25 * held.tensors + 50.0)
    assert held.fragmentation == pytest.approx(0.25 * held.tensors)
    assert held.buffers == pytest.approx(sum(getattr(held, part) for part in BUFFERS))
    one = (1,)
    space = SearchSpace(
        one, (False,), one, one, one, zero=(0,), recompute=("none",), orders=(given.point.order,)
    )
    for memory_bytes, fits in ((held.total, True), (held.total * (1 - 1e-6), False)):
        tight = replace(asked, memory_bytes=memory_bytes)
        assert price(tight, given).feasible is fits
        assert (search(tight, space).best is not None) is fits


# Real layers: a GPT block with attention in separate kernels, closed forms by hand.


def block(model, *, precision="bf16", recompute=0, **strategy):
    """Kept and working bytes of a block."""
    chosen = Strategy(**{"sequence": 512, "micro_batch": 2, **strategy})
    table = layer_table(load_model(model), chosen, load_accelerator("h100-80gb"), precision)
    return table.kept_bytes[recompute, 1], table.working_bytes[recompute, 1]


@pytest.mark.parametrize("recompute", range(3))
@pytest.mark.parametrize("tp", [1, 8])
def test_a_gpt_block_keeps_what_korthikanti_et_al_count(tp, recompute):
    """sbh (10 + 24 / t + 5 a s / h t), without the scores, and 2 sbh; the rest is made again."""
    model = load_model("gpt3-175b")
    sbh = 512 * 2 * model.hidden
    scores = 5 * model.heads * 512 / model.hidden / tp
    every = 10 + 24 / tp
    kept, working = block("gpt3-175b", attention="unfused", tp=tp, recompute=recompute)
    assert kept == pytest.approx(sbh * (every + scores, every, 2)[recompute])
    again = sbh * (0, scores, every + scores - 2)[recompute]
    # Gradients: of both ends of the GELU (4 h wide), of the scores' softmax, or of a norm.
    widest = max(4 * 4 * sbh / tp, 4 * 2 * model.heads * 512**2 / tp, 4 * sbh)
    assert working == pytest.approx(again + widest)


def test_transformer_engine_keeps_inputs_of_projections_in_fp8():
    """2 + 2 + 2 + 8 of the 34 sbh are inputs of projections."""
    model = load_model("gpt3-175b")
    sbh = 512 * 2 * model.hidden
    for recompute, scores in ((0, 5 * model.heads * 512 / model.hidden), (1, 0.0)):
        kept, _ = block("gpt3-175b", attention="unfused", precision="fp8", recompute=recompute)
        assert kept == pytest.approx(sbh * (34 - 14 / 2 + scores))


def test_the_head_stays_in_sixteen_bits():
    layers = chain_of(load_model("llama2-7b"), Strategy(sequence=512)).runs
    for layer, _ in (layers[0], layers[-1]):
        for recompute in ("none", "selective", "full"):
            assert layer.kept_bytes(recompute, operand_bytes=1.0) == layer.kept_bytes(recompute)


@pytest.mark.parametrize("name", ["llama2-7b-64-h100", "mixtral-8x7b-256-tpuv4like"])
def test_memory_grows_with_the_micro_batch_and_shrinks_with_zero(name):
    """On every stage, for every recomputation, which saves memory in its order."""
    asked = load_scenario(name)
    arrays = replace(asked.problem(), batch=1024)
    layers, devices = arrays.layers, arrays.network.devices
    cuts = (0, layers // 2, layers)

    def totals(**changed):
        given = plan(cuts, **({"pp": 2, "dp": devices // 8, "tp": 4} | changed))
        return np.array([stage.memory.total for stage in price(arrays, given).stages])

    for recompute in ("none", "selective", "full"):
        growing = [totals(micro_batch=size, recompute=recompute) for size in (1, 2, 4)]
        assert all((small < large).all() for small, large in itertools.pairwise(growing))
        shards = [totals(zero=zero, recompute=recompute) for zero in (0, 1, 3)]
        assert all((more > less).all() for more, less in itertools.pairwise(shards))
    none, selective, full = (totals(recompute=name) for name in ("none", "selective", "full"))
    assert (none >= selective).all()
    assert (selective >= full).all()


def test_scenarios_count_the_allocator_and_take_a_width_of_gradients():
    usual = load_scenario("llama2-7b-64-h100").problem()
    assert usual.fragmentation == FRAGMENTATION
    assert usual.state == StateBytes(2, 4, 12)
    narrow = load_scenario("llama2-7b-64-h100", ["workload.gradient_bytes=2"]).problem()
    assert narrow.state == StateBytes(2, 2, 12, temporary=4)


def test_a_plan_must_fit_as_surely_as_the_spread_of_measured_memory_asks():
    """A problem with a spread allows what one with less memory and none does."""
    table = chain(parameters=SIZES, kept_bytes=np.full((3, 4), 9.0))
    asked = problem(table, devices=1, state=MIXED, reserved_bytes=50.0, fragmentation=0.25)
    need = price(asked, plan()).stages[0].memory.total
    for memory, fits in ((1.001, True), (0.999, False)):
        unsure = replace(asked, memory_spread=0.1, memory_bytes=memory * need * math.exp(0.16449))
        assert price(unsure, plan()).feasible == fits
        chance = fits_chance(need, unsure.memory_bytes, 0.1)
        assert (chance > 0.95) == fits
        alone = replace(unsure, memory_spread=0.0, memory_bytes=unsure.planned_bytes)
        assert alone.tensor_bytes == unsure.tensor_bytes
        found = plan().point
        assert stage_memory(unsure, found).limit == unsure.tensor_bytes


def test_every_group_of_several_ranks_has_its_buffers():
    """All ranks, tensor parallel ones, stages, sharers, a replica's; none for one device."""
    table = chain(parameters=SIZES)
    counts = {(): 0, ("dp",): 2, ("tp",): 3, ("tp", "dp"): 4, ("tp", "dp", "pp"): 5}
    for axes, count in counts.items():
        cuts = (0, 2, 4) if "pp" in axes else (0, 4)
        given = plan(cuts, **dict.fromkeys(axes, 2))
        asked = problem(table, devices=2 ** len(axes), state=MIXED, communicator_bytes=7.0)
        held = price(asked, given).stages[0].memory
        assert held.communicators == 7.0 * count == 7.0 * given.point.communicators
        assert held.total == held.reserved + held.context + held.communicators


def test_blackwell_sends_more_of_fp8_weights_than_it_holds():
    """Products of Blackwell read weights either way; scales of blocks lie along one."""
    assert [keeps_transposed(*case) for case in (
        ("h100", "delayed"), ("blackwell", "delayed"), ("blackwell", "blockwise"),
    )] == [True, False, True]  # fmt: skip
    both, one = (state_bytes("fp8", "adam", transposed=kept) for kept in (True, False))
    assert state_shares(1, 4, both)[0] - state_shares(1, 4, one)[0] == 1.0
    assert traffic(1, both) == traffic(1, one)
    assert state_bytes("bf16", "adam", transposed=False) == state_bytes("bf16", "adam")


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_jax_reduces_16_bits_after_every_micro_batch_and_keeps_them_beside_the_sums(zero):
    state = load_scenario("llama2-7b-64-tpu-torus", ['accelerator="tpu-v4"']).problem().state
    sends, ranks = traffic(zero, state), 64
    assert sends.step[0] == 2.0
    assert len(sends.step) == {0: 2, 3: 3}.get(zero, 1)
    assert sends.sync == ((2.0,) if zero in (1, 2) else ())
    gradients = state_shares(zero, ranks, state)[1] * (ranks if zero > 1 else 1)
    assert gradients == 4.0 + 2.0


def test_xla_loses_nothing_between_tensors_and_copies_what_a_layer_kept():
    plain = load_scenario("llama2-7b-64-tpu-torus")
    jax = load_scenario("llama2-7b-64-tpu-torus", ['accelerator="tpu-v4"'])
    assert jax.stack.memory.xla
    assert jax.problem().fragmentation == 0.0 < plain.problem().fragmentation
    table = jax.problem().table(1, False, 1, 1, 1, 1)
    block = table.layers // 2
    working = table.working_bytes[:, block]
    assert (working == working[0]).all()
    assert working[0] > table.kept_bytes[0, block]
