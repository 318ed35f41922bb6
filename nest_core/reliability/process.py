"""Failures, saves, restarts and repairs as one process, and its effective share in closed form.

Parts in use fail independently of their age, at rates that add up to ``r``. A failure stops the
job. Detection, restart and reading the checkpoint take ``R``, over which parts fail too: then they
begin again. Training goes on from the last finished save: one is begun after every ``W`` of work,
blocks it for ``B`` and is finished ``G`` later. After a restart the time to the next failure is
exponential, so that a save counts if it is finished by then. Of the time,

    training: e^(-r R)                                                                       (1)
    effective: r W S e^(-r R)  with  S = e^(-r G) / (e^(r (W + B)) - 1)                      (2)

as ``W (e^(-r (W + B + G)) + e^(-r (2 (W + B) + G)) + ...)`` of work are kept in ``e^(r R) / r``
between failures. For ``G = 0`` that is Daly's complete model (2006, equation 20). Saves take
``B / W`` of what is effective; the rest of training is lost.

Some failures, at rate ``h``, take a host, which is repaired in ``M`` on the mean while a spare
takes its place. With ``b`` hosts in repair and ``S`` spares, ``b - S`` hosts lack. The job then
waits, or goes on with the replicas that are whole, as fast and as often struck as they are many.
``b`` is a birth and death process: ``p(b + 1) / p(b) = h v(b) M / (b + 1)`` with ``v`` the share of
replicas that run, 0 where the job waits. Where it always waits that is Erlang's loss formula, and
holds for repairs of any distribution. Shares are means over ``b``, with failures at ``r v(b)`` and
work times ``v(b)``, which takes repairs to be slow beside saves. Where a replica may come back, at
rate ``u``, that ends a stretch of training too: it is saved and restarted in ``J``, and nothing is
lost. With ``r + u`` in place of ``r`` in ``S``, (1) and (2) become

    training: e^(-r R) / (1 + u (1 - e^(-r J)) / r)
    effective: W (r S + u / ((r + u) (W + B))) of that
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from nest_core.network import FloatArray

__all__ = ["LOSSES", "Process", "Shares", "effective_shares"]

LOSSES = ("saves", "lost work", "detection and restart", "waiting for repair", "fewer replicas")
"""What the time goes into that is not effective."""

_LONG = 700.0
"""Mean times between failures after which nothing is ever done; e to it is a number still."""


@dataclass(frozen=True, slots=True)
class Process:
    """What closed form and simulation read; seconds.

    Parameters
    ----------
    rates : tuple of float
        Failures per second by cause, while all replicas run.
    takes_host : tuple of bool
        Whether those of a cause take a host.
    work_s, blocking_s, lag_s : float
        Work between saves, what a save blocks, and until it is finished after that.
    restart_s : float
        Detection, restart and reading the checkpoint.
    rejoin_s : float
        Save and restart where a repaired replica comes back.
    repair_s : float
    spares : int
        Hosts that stand by.
    replicas : int
    replica_hosts : float
        Hosts of one replica; below 1 where a host holds several.
    shrinks : bool
        Whether training goes on with fewer replicas where spares are exhausted.
    """

    rates: tuple[float, ...]
    takes_host: tuple[bool, ...]
    work_s: float
    blocking_s: float
    lag_s: float
    restart_s: float
    rejoin_s: float
    repair_s: float
    spares: int
    replicas: int
    replica_hosts: float
    shrinks: bool

    @property
    def rate(self) -> float:
        """Failures per second."""
        return sum(self.rates)

    @property
    def host_rate(self) -> float:
        """Failures per second that take a host."""
        return sum(rate for rate, takes in zip(self.rates, self.takes_host, strict=True) if takes)

    def scaled(self, factor: float) -> "Process":
        """Return the same with failures more frequent."""
        return replace(self, rates=tuple(factor * rate for rate in self.rates))


@dataclass(frozen=True, slots=True)
class Shares:
    """Where the time goes.

    Parameters
    ----------
    effective : float
        Training at full speed that is not lost.
    losses : tuple of float
        In the order of `LOSSES`; with the effective share they add up to 1.
    exhausted : float
        Share of the time in which more hosts are in repair than there are spares.
    """

    effective: float
    losses: tuple[float, ...]
    exhausted: float


def effective_shares(process: Process) -> Shares:
    """Return the closed form."""
    period = process.work_s + process.blocking_s
    if not process.rate:
        share = process.work_s / period if math.isfinite(period) else 1.0
        return Shares(share, (1 - share, 0.0, 0.0, 0.0, 0.0), 0.0)
    speed = _speeds(process)
    weight = _in_repair(process, speed)
    fails = np.maximum(process.rate * speed, 1e-30)
    # A replica comes back where one host less in repair lets it.
    returns = np.append(False, np.diff(speed) < 0) * np.arange(len(speed)) / process.repair_s
    ends = fails + returns
    rejoins = returns / fails * -np.expm1(-fails * process.rejoin_s)
    running = np.exp(-fails * process.restart_s) / (1 + rejoins)
    finished = np.exp(-ends * process.lag_s) / np.expm1(np.minimum(ends * period, _LONG))
    saves = running * (fails * finished + returns / (ends * period))
    useful, saving = saves * process.work_s, saves * process.blocking_s
    lost, down = np.maximum(0.0, running - useful - saving), 1 - running  # rounding
    at = weight * (speed > 0)
    losses = [float(part @ at) for part in (saving, lost, down)]
    waiting = float(weight[speed == 0].sum())
    return Shares(
        float((useful * speed) @ at),
        (*losses, waiting, float((useful * (1 - speed)) @ at)),
        float(weight[process.spares + 1 :].sum()),
    )


def _speeds(process: Process) -> FloatArray:
    """Return the share of replicas that run by hosts in repair, up to where none does."""
    most = math.ceil(process.replicas * process.replica_hosts) if process.shrinks else 1
    lacking = np.arange(1, most + 1)
    lost = np.ceil(lacking / process.replica_hosts - 1e-9) if process.shrinks else lacking * np.inf
    below = np.maximum(0.0, 1 - lost / process.replicas)
    first = int(np.argmin(below)) + 1
    return np.concatenate([np.ones(process.spares + 1), below[:first]])


def _in_repair(process: Process, speed: FloatArray) -> FloatArray:
    """Return the chance of every number of hosts in repair."""
    ratios = process.host_rate * process.repair_s * speed[:-1] / np.arange(1, len(speed))
    with np.errstate(divide="ignore"):  # without failures none is ever in repair
        logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())
