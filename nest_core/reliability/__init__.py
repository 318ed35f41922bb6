"""What failures leave of a plan: rates, parts in use, saves, effective share, simulation.

Formulae and sources: ``docs/method.md``, "Failures and goodput".
"""

from nest_core.reliability.goodput import GoodputEstimate, estimate
from nest_core.reliability.process import LOSSES, Process, Shares, effective_shares
from nest_core.reliability.rates import load_failures
from nest_core.reliability.simulation import simulate

__all__ = [
    "LOSSES",
    "GoodputEstimate",
    "Process",
    "Shares",
    "effective_shares",
    "estimate",
    "load_failures",
    "simulate",
]
