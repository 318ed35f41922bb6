"""The process of `nest_core.reliability.process` event by event; it shares no formula with it.

Every cause has an exponential clock of its own, every host in repair a time at which it is back.
What happens next stops the clock: a failure, a repair, or the end. Work counts up to the last save
that was finished; what follows is lost with a failure.
"""

import numpy as np

from nest_core.documents.compiled import compiled
from nest_core.documents.units import DAY_S
from nest_core.network import BoolArray, FloatArray
from nest_core.reliability.process import LOSSES, Process

__all__ = ["YEAR_S", "simulate"]

YEAR_S = 365.25 * DAY_S
_MAX_EVENTS = 5e7
_EFFECTIVE, _SAVES, _LOST, _DOWN, _WAIT, _FEWER = range(1 + len(LOSSES))


def simulate(
    process: Process, draws: int = 1000, seed: int = 0, horizon_s: float = YEAR_S
) -> FloatArray:
    """Return where the time went in every draw, shape (draws, 1 + losses).

    Effective first, then in the order of `LOSSES`; shares of the horizon, which is shorter where
    more than fifty million failures lay in it. All parts work at its beginning, and what is not yet
    saved at its end is not lost.
    """
    horizon_s = min(horizon_s, _MAX_EVENTS / max(process.rate * draws, 1e-12))
    most = int(np.ceil(process.replicas * process.replica_hosts)) if process.shrinks else 1
    result = np.zeros((draws, 1 + len(LOSSES)))
    _run(
        np.random.default_rng(seed),
        result,
        horizon_s,
        np.array(process.rates, dtype=np.float64),
        np.array(process.takes_host, dtype=np.bool_),
        np.empty(process.spares + most + 1),
        process.spares,
        process.replicas,
        process.replica_hosts if process.shrinks else 0.0,
        np.array(
            [
                process.work_s,
                process.blocking_s,
                process.lag_s,
                process.restart_s,
                process.rejoin_s,
                process.repair_s,
            ]
        ),
    )
    return result / horizon_s


@compiled
def _stopped_replicas(lacking: int, replicas: int, replica_hosts: float) -> int:
    """Return how many replicas stand still without so many hosts; 0 hosts of one: all."""
    if replica_hosts == 0.0:
        return replicas if lacking > 0 else 0
    return min(replicas, max(0, int(np.ceil(lacking / replica_hosts - 1e-9))))


@compiled
def _settle(
    spent: FloatArray, elapsed: float, speed: float, seconds: FloatArray, is_lost: bool
) -> None:
    """Count a stretch of training: what of it was saved, and whether the rest is lost."""
    work, blocking, lag = seconds[0], seconds[1], seconds[2]
    period = work + blocking
    saves = np.floor(max(0.0, elapsed - lag * is_lost) / period)
    rest = elapsed - (saves * period if saves else 0.0)
    saved = saves * work if saves else 0.0
    spent[_SAVES] += saves * blocking
    if is_lost:
        spent[_LOST] += rest
    else:
        saved += min(rest, work)
        spent[_SAVES] += max(0.0, rest - work)
    spent[_EFFECTIVE] += saved * speed
    spent[_FEWER] += saved * (1.0 - speed)


@compiled
def _run(
    rng: np.random.Generator,
    result: FloatArray,
    horizon_s: float,
    rates: FloatArray,
    takes_host: BoolArray,
    back: FloatArray,
    spares: int,
    replicas: int,
    replica_hosts: float,
    seconds: FloatArray,
) -> None:
    """Go through the events of every draw; ``back``: when hosts in repair are back."""
    for draw in range(len(result)):
        spent = result[draw]
        now, restart, elapsed, broken = 0.0, 0.0, 0.0, 0
        while now < horizon_s:
            stopped = _stopped_replicas(broken - spares, replicas, replica_hosts)
            speed = 1.0 - stopped / replicas
            cause, step = -1, horizon_s - now
            if stopped < replicas:
                for number in range(len(rates)):
                    if rates[number] > 0.0:
                        wait = rng.standard_exponential() / (rates[number] * speed)
                        if wait < step:
                            cause, step = number, wait
            first = -1
            for place in range(broken):
                if back[place] - now < step:
                    cause, first, step = -1, place, back[place] - now
            now += step
            if stopped == replicas:
                spent[_WAIT] += step
            else:
                resting = min(restart, step)
                spent[_DOWN] += resting
                restart -= resting
                elapsed += step - resting
            if cause >= 0:
                _settle(spent, elapsed, speed, seconds, True)
                elapsed, restart = 0.0, seconds[3]
                if takes_host[cause]:
                    back[broken] = now + rng.standard_exponential() * seconds[5]
                    broken += 1
            elif first >= 0:
                broken -= 1
                back[first] = back[broken]
                after = _stopped_replicas(broken - spares, replicas, replica_hosts)
                if after < stopped < replicas and elapsed > 0.0:
                    _settle(spent, elapsed, speed, seconds, False)
                    elapsed, restart = 0.0, seconds[4]
        _settle(spent, elapsed, speed, seconds, False)
