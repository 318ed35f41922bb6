"""The training run that a plan is for: tokens, the price of a device's hour, what to compare with.

None of it changes the plan, so it is no part of a scenario; the address keeps it beside one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nest_core.planner.baselines import NAMES
from nest_core.report.explain.training import TOKENS_PER_PARAMETER, usual_tokens
from nest_core.scenario import ScenarioValues
from nest_studio.form.fields import Number, OneOf, Widget, fold, widget

__all__ = ["RUN", "TrainingRun", "training_run"]

TOKENS, PRICE, REFERENCE = "run.tokens_T", "run.usd_per_gpu_hour", "run.reference"
RUN: Mapping[str, Widget] = {
    TOKENS: Number(1e-6, 1e6, empty=True),
    PRICE: Number(0.01, 1000.0, empty=True),
    REFERENCE: OneOf(tuple(name for name in NAMES if name != "nest")),
}
"""The fields of the form that are of the run, by key."""
TRILLION = 1e12


@dataclass(frozen=True, slots=True)
class TrainingRun:
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
        """Return the tokens of a scenario's run."""
        return self.tokens or usual_tokens(scenario)


def training_run() -> TrainingRun:
    """Draw the last group of the form and return what it says."""
    with fold("Training run", "fold-run", opened=True) as summary:
        summary("for days and cost")
        tokens = widget(
            TOKENS,
            RUN[TOKENS],
            None,
            label="Tokens, T",
            marked=True,
            step=1,
            format="%.4g",
            placeholder="20 per parameter",
            help=f"Trillions, 0.000001 to 1,000,000; empty for {TOKENS_PER_PARAMETER:.0f} per "
            "parameter, where compute is best spent (Hoffmann et al. 2022).",
        )
        price = widget(
            PRICE,
            RUN[PRICE],
            None,
            label="Price, $ per GPU-hour",
            marked=True,
            step=0.1,
            format="%.2f",
            placeholder="none given",
            help="0.01 to 1,000; yours, as there is no default with a source.",
        )
        reference = widget(
            REFERENCE,
            RUN[REFERENCE],
            "manual",
            label="Reference",
            marked=True,
            format_func=lambda name: NAMES[name],
            help="Whose plan throughput, days and cost are held against.",
        )
    return TrainingRun(tokens * TRILLION if tokens else None, price, reference)
