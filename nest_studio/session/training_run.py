"""The training run that a plan is for: tokens, the price of a device's hour, what to compare with.

None of it changes the plan, so it is no part of a scenario; the address keeps it beside one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.explain.training import TOKENS_PER_PARAMETER, usual_tokens
from nest_core.planner.baselines import NAMES
from nest_core.scenario import ScenarioValues
from nest_studio.form.fields import ADDRESS
from nest_studio.form.folds import fold, put_back
from nest_studio.form.scenario import RUN

__all__ = ["Run", "training_run"]

TOKENS, PRICE, REFERENCE = RUN
_STANDARD: dict[str, Any] = {TOKENS: None, PRICE: None, REFERENCE: "manual"}
TRILLION = 1e12


@dataclass(frozen=True, slots=True)
class Run:
    """What the form says of a training run.

    Parameters
    ----------
    tokens : float or None
        None: twenty per parameter.
    usd_per_hour : float or None
        Of a device; None: no price is given.
    reference : str
        A baseline's key.
    """

    tokens: float | None
    usd_per_hour: float | None
    reference: str

    def tokens_of(self, scenario: ScenarioValues) -> float:
        """Tokens of a scenario's run."""
        return self.tokens or usual_tokens(scenario)

    @property
    def called(self) -> str:
        """The reference's name."""
        return NAMES[self.reference]


def training_run() -> Run:
    """The last group of the form."""
    with fold("Training run", "fold-run", opened=True) as summary:
        summary("for days and cost")
        with put_back(TOKENS, _STANDARD):
            tokens = st.number_input(
                "Tokens, T",
                1e-6,
                1e6,
                None,
                1.0,
                key=TOKENS,
                bind=ADDRESS,
                format="%.4g",
                placeholder="20 per parameter",
                help=f"Trillions, 0.000001 to 1,000,000; empty for {TOKENS_PER_PARAMETER:.0f} per "
                "parameter, where compute is best spent (Hoffmann et al. 2022).",
            )
        with put_back(PRICE, _STANDARD):
            price = st.number_input(
                "Price, $ per GPU-hour",
                0.01,
                1000.0,
                None,
                0.1,
                key=PRICE,
                bind=ADDRESS,
                format="%.2f",
                placeholder="none given",
                help="0.01 to 1,000; yours, as there is no default with a source.",
            )
        with put_back(REFERENCE, _STANDARD):
            named = [name for name in NAMES if name != "nest"]
            reference = st.selectbox(
                "Reference",
                named,
                named.index("manual"),
                key=REFERENCE,
                bind=ADDRESS,
                format_func=lambda name: NAMES[name],
                help="Whose plan throughput, days and cost are held against.",
            )
    return Run(tokens * TRILLION if tokens else None, price, reference)
