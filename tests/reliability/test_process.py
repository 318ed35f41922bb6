"""The effective share in closed form, beside the simulated process and formulae of other shape.

Envelope of agreement, 1.5 % of the share: at least 0.2 is effective, recovery takes at most a third
of the mean time between failures and a save at most 0.16, and the horizon holds fifty repairs.
Where training goes on with fewer replicas: recovery at most 0.15, a save at most 0.05, and a repair
lasts ten times as long as recovery and the time between saves together.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nest_core.reliability.checkpoint import Saving, availability_s, daly_s, young_s
from nest_core.reliability.process import LOSSES, Process, effective_shares
from nest_core.reliability.simulation import simulate

HOUR = 3600.0
YEAR = 365.25 * 24 * HOUR
LLAMA = Process(
    rates=(419 / (54 * 24 * HOUR),),
    takes_host=(True,),
    work_s=1800.0,
    blocking_s=30.0,
    lag_s=0.0,
    restart_s=660.0,
    rejoin_s=700.0,
    repair_s=24 * HOUR,
    spares=170,
    replicas=128,
    replica_hosts=16.0,
    shrinks=False,
)


def inside(process: Process) -> bool:
    """Whether a process lies in the envelope."""
    recovery, save = process.restart_s * process.rate, process.blocking_s * process.rate
    cycle = process.restart_s + process.work_s + process.blocking_s
    slow = recovery < 0.15 and save < 0.05 and process.repair_s > 10 * cycle
    return (slow or not process.shrinks) and effective_shares(process).effective > 0.2


def drawn(rng: np.random.Generator) -> Process:
    """A process of any kind."""
    mtbf = float(10 ** rng.uniform(math.log10(0.3), math.log10(150))) * HOUR
    blocking = float(mtbf * 10 ** rng.uniform(-4, -0.8))
    lag = float(rng.choice([0.0, rng.uniform(0, 3) * blocking]))
    restart = float(mtbf * 10 ** rng.uniform(-3, -0.5))
    best = availability_s(mtbf, Saving(blocking + lag, blocking, lag), restart)
    causes = int(rng.integers(1, 5))
    parts = rng.dirichlet(np.ones(causes))
    takes = rng.random(causes) < 0.7
    host_rate = float(parts @ takes) / mtbf
    repair = float(min(YEAR / 50, 10 ** rng.uniform(0, 2) * HOUR))
    replica_hosts = float(2.0 ** rng.integers(-2, 5))
    replicas = int(rng.integers(4, 64))
    # About as many spares as are in repair on the mean, so that they are exhausted at times.
    in_repair = host_rate * repair
    spares = int(in_repair + rng.uniform(-1, 3) * math.sqrt(in_repair) + rng.integers(0, 2))
    return Process(
        rates=tuple((parts / mtbf).tolist()),
        takes_host=tuple(takes.tolist()),
        work_s=max(lag, best * float(rng.uniform(0.5, 2)) - blocking),
        blocking_s=blocking,
        lag_s=lag,
        restart_s=restart,
        rejoin_s=restart * float(rng.uniform(0.3, 1)) + blocking + lag,
        repair_s=repair,
        spares=max(0, spares),
        replicas=replicas,
        replica_hosts=replica_hosts,
        shrinks=bool(rng.random() < 0.5),
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(160))
def test_closed_form_is_what_events_add_up_to(seed):
    rng = np.random.default_rng(seed)
    process = next(process for process in iter(lambda: drawn(rng), None) if inside(process))
    shares = effective_shares(process)
    draws = max(20, min(1000, int(2e6 / (YEAR * process.rate))))
    simulated = simulate(process, draws, seed)
    assert np.allclose(simulated.sum(axis=1), 1.0)
    error = 3 * simulated[:, 0].std() / math.sqrt(draws) / shares.effective
    assert simulated[:, 0].mean() == pytest.approx(shares.effective, rel=0.015 + error)
    assert simulated[:, 1:].mean(0) == pytest.approx(shares.losses, abs=0.015 + error)


@pytest.mark.parametrize("shrinks", [False, True])
@pytest.mark.parametrize("spares", [0, 3, 8, 400])
def test_losses_add_up(shrinks, spares):
    shares = effective_shares(replace(LLAMA, shrinks=shrinks, spares=spares))
    assert len(shares.losses) == len(LOSSES)
    assert min(shares.losses) >= 0
    assert shares.effective + sum(shares.losses) == pytest.approx(1.0, abs=1e-12)


def test_without_failures_saves_alone_are_lost():
    calm = replace(LLAMA, rates=(0.0,))
    assert effective_shares(calm).effective == pytest.approx(1800 / 1830)
    never = replace(calm, work_s=math.inf)
    assert effective_shares(never).effective == 1.0
    assert simulate(never, 3)[:, 0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("shrinks", [False, True])
@pytest.mark.parametrize("spares", [0, 5, 200])
def test_more_of_any_trouble_never_helps(shrinks, spares):
    process = replace(LLAMA, shrinks=shrinks, spares=spares)
    share = effective_shares(process).effective
    worse = [
        process.scaled(2.0),
        replace(process, blocking_s=60.0),
        replace(process, lag_s=60.0),
        replace(process, restart_s=900.0, rejoin_s=940.0),
    ]
    if not shrinks:  # fewer replicas that come back one by one are restarted for each
        worse.append(replace(process, repair_s=48 * HOUR))
    # With spares for all repairs their length costs nothing, but for rounding.
    assert all(effective_shares(other).effective <= share * (1 + 1e-12) for other in worse)
    assert effective_shares(process.scaled(2.0)).effective < 0.97 * share
    more_spares = effective_shares(replace(process, spares=spares + 1)).effective
    assert more_spares >= (0.999 if shrinks else 1.0) * share


def erlang(spares: int, load: float) -> float:
    """Erlang's loss formula by its recursion."""
    blocked = 1.0
    for servers in range(1, spares + 2):
        blocked = load * blocked / (servers + load * blocked)
    return blocked


@pytest.mark.parametrize("spares", [0, 1, 5, 12, 40])
def test_waiting_is_erlangs_loss(spares):
    process = replace(LLAMA, spares=spares)
    load = process.host_rate * process.repair_s
    assert effective_shares(process).exhausted == pytest.approx(erlang(spares, load), rel=1e-9)


def test_fewer_replicas_beat_waiting():
    waits = replace(LLAMA, spares=3)
    goes_on = replace(waits, shrinks=True)
    assert effective_shares(goes_on).effective > 2 * effective_shares(waits).effective
    assert simulate(goes_on, 20)[:, 0].min() > simulate(waits, 20)[:, 0].max()


def test_replicas_that_come_back_are_restarted_for():
    """As often as hosts fail, where every one of them is missed: twice the time of restarts."""
    often = replace(LLAMA, shrinks=True, spares=0, replicas=4096, replica_hosts=0.5)
    shares, simulated = effective_shares(often), simulate(often, 50).mean(0)
    assert simulated == pytest.approx((shares.effective, *shares.losses), abs=0.004)
    assert shares.losses[2] > 1.8 * effective_shares(LLAMA).losses[2]


def test_seed_decides_the_draws():
    first, same, other = (simulate(LLAMA, 5, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_absurd_rates_end_all_the_same():
    """A file may say that everything fails every second."""
    simulated = simulate(LLAMA.scaled(1e7), 100)
    assert simulated[:, 0].max() == 0.0
    assert effective_shares(LLAMA.scaled(1e7)).effective == pytest.approx(0.0, abs=1e-9)


def lost_by_hand(rng, mtbf, period, blocking, recover, draws=40_000):
    """Effective share of blocking saves, by draws of failures alone: no code of ours."""
    alive = rng.exponential(mtbf, draws)
    useful = np.floor(alive / period) * (period - blocking)
    down = np.zeros(draws)
    again = np.ones(draws, dtype=bool)
    while again.any():
        strikes = rng.exponential(mtbf, draws)
        down += np.where(again, np.minimum(strikes, recover), 0.0)
        again &= strikes < recover
    return useful.sum() / (alive + down).sum()


@pytest.mark.parametrize("mtbf", [0.5 * HOUR, 3 * HOUR, 40 * HOUR])
@pytest.mark.parametrize("blocking", [2.0, 40.0])
def test_interval_is_the_best_of_draws(mtbf, blocking):
    recover = 300.0
    best = availability_s(mtbf, Saving(blocking, blocking, 0.0), recover)
    factors = np.linspace(0.3, 3.0, 55)
    shares = [
        lost_by_hand(np.random.default_rng(7), mtbf, best * factor, blocking, recover)
        for factor in factors
    ]
    chosen = lost_by_hand(np.random.default_rng(7), mtbf, best, blocking, recover)
    assert chosen == pytest.approx(max(shares), rel=0.003)
    assert chosen > 1.002 * max(shares[0], shares[-1])
    ours = effective_shares(
        replace(
            LLAMA,
            rates=(1 / mtbf,),
            takes_host=(False,),
            work_s=best - blocking,
            blocking_s=blocking,
            restart_s=recover,
        )
    )
    assert ours.effective == pytest.approx(chosen, rel=0.015)


def test_intervals_meet_where_saves_are_cheap():
    """All three are Young's where a save takes next to nothing beside the time between failures."""
    mtbf, blocking = 10 * HOUR, 0.1
    young = young_s(mtbf, blocking)
    assert daly_s(mtbf, blocking) == pytest.approx(young, rel=0.01)
    assert availability_s(mtbf, Saving(0.1, blocking, 0.0), 10.0) == pytest.approx(young, rel=0.01)
    assert daly_s(100.0, 300.0) == 100.0
    assert availability_s(mtbf, Saving(9e4, blocking, 9e4), 10.0) == 9e4 + blocking
