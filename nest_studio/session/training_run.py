"""The training run that a plan is for: tokens, what fails, a device's price, what to compare with.

None of it changes the plan, so it is no part of a scenario; the address keeps it beside one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nest_core.documents import preset_names
from nest_core.documents.failures import DEFAULT, load_failures
from nest_core.planner.baselines import NAMES
from nest_core.report.explain.training import TOKENS_PER_PARAMETER, Training
from nest_studio.form.fields import Number, OneOf, Widget, fold, widget

__all__ = ["RUN", "TrainingRun", "training_run"]

TOKENS, FAILURES = "run.tokens_T", "run.failures"
PRICE, REFERENCE = "run.usd_per_gpu_hour", "run.reference"
RUN: Mapping[str, Widget] = {
    TOKENS: Number(1e-6, 1e6, empty=True),
    FAILURES: OneOf(preset_names("failures"), empty=True),
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
    failures : str or None
        Published failure rates by name; None: the scenario's.
    usd_per_hour : float or None
        Of a device; None: no price is given.
    reference : str
        A baseline's key.
    """

    tokens: float | None
    failures: str | None
    usd_per_hour: float | None
    reference: str

    def of(self, planned: Training) -> Training:
        """Return the run of a plan that was planned for the usual tokens and failures."""
        return planned.under(
            load_failures(self.failures) if self.failures else planned.goodput.file,
            self.tokens or planned.tokens,
        )


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
        failures = widget(
            FAILURES,
            RUN[FAILURES],
            None,
            label="Failures",
            marked=True,
            placeholder="as the scenario has them",
            help="Whose counted failures, spares and repairs the days are with; a scenario that "
            f"names none has those of {DEFAULT}.",
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
    return TrainingRun(tokens * TRILLION if tokens else None, failures, price, reference)
