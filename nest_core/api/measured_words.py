"""What measurements come to, as tables and findings: runs read, parameters moved, a plan anew."""

import math
from collections.abc import Callable
from dataclasses import asdict

from nest_core.api.answer import Answer
from nest_core.api.calibrate import OwnStack
from nest_core.api.measurements import Fitted
from nest_core.api.next_runs import Next
from nest_core.calibration.training.predict import Prediction
from nest_core.costs import Interval, plan_words, span_in_words
from nest_core.documents.units import (
    NOTHING,
    capital,
    humanise_bytes,
    humanise_seconds,
    microseconds,
    percent,
    plural,
    signed_percent,
    three_digits,
)
from nest_core.hardware.posterior import SHARE
from nest_core.report.explain import fullest, plan_in_words, quantity
from nest_core.report.tables import Table
from nest_core.scenario import ScenarioValues, scenario_title

__all__ = [
    "PARAMETER_WORDS",
    "errors_in_words",
    "moved_table",
    "next_table",
    "parameter_table",
    "run_table",
    "signed",
]

PARAMETER_WORDS = {
    "gemm_efficiency": "matrix products, share of peak",
    "memory_efficiency": "memory bandwidth, share of peak",
    "attention_efficiency": "attention, share of peak",
    "biased_attention_efficiency": "attention with a bias, share of peak",
    "host_s": "host, µs per kernel",
    "network": "network between nodes, share of its line rate",
    "run_factor": "whole runs, factor",
}
"""What the figures of a calibrated stack are, with their units."""

_SAME = 5e-4
_INTERVAL = f"{100 * SHARE:.0f} % interval"


def signed(value: float) -> str:
    """Return a relative difference in per cent, with its sign: ``+4.2 %``."""
    return _together(signed_percent(value))


def run_table(fitted: Fitted) -> Table:
    """Return every run as it was read, beside what is predicted of it under the shipped stack."""
    rows = [_run_row(prediction, interval) for prediction, interval in fitted.predicted]
    measured = sum(prediction.outcome.seconds is not None for prediction, _ in fitted.predicted)
    commands = len(rows) - measured
    parts = [
        plural(count, noun)
        for count, noun in ((measured, "measured run"), (commands, "command"))
        if count
    ]
    return Table(
        capital(" and ".join(parts) or "nothing was read") + ", as read",
        "Beside what is predicted under the shipped software stack; time of one iteration, memory "
        "of the fullest device",
        tuple(rows),
    )


def _run_row(prediction: Prediction, interval: Interval) -> dict[str, str]:
    seconds, memory = prediction.outcome.seconds, prediction.outcome.memory_bytes
    return {
        "run": prediction.run.id,
        "plan": f"{plan_words(asdict(prediction.run))}, batch {prediction.run.batch:,} of "
        f"{prediction.run.sequence:,} "
        f"tokens, on {prediction.run.devices:,} {prediction.run.accelerator}",
        "measured": humanise_seconds(seconds) if seconds else NOTHING,
        "predicted": humanise_seconds(prediction.seconds),
        "error": signed(prediction.error) if prediction.error is not None else NOTHING,
        _INTERVAL: _together(span_in_words((interval.low_s, interval.high_s), humanise_seconds)),
        "in it": NOTHING
        if seconds is None
        else "yes"
        if interval.low_s <= seconds <= interval.high_s
        else "no",
        "memory": humanise_bytes(memory) if memory else NOTHING,
        "predicted memory": humanise_bytes(
            prediction.comparable_bytes if memory else prediction.memory_bytes
        ),
    }


def _together(text: str) -> str:
    """Return a figure that is not broken over lines."""
    return text.replace(" ", "\u00a0")


def errors_in_words(stack: OwnStack) -> str:
    """Return error and bias before and after, and how well runs that were left out are met."""
    fields = stack.to_json()
    before, after, left_out = fields["before"], fields["after"], fields["left_one_out"]
    words = (
        f"Mean error {percent(before['mape'])} before, {percent(after['mape'])} after; bias "
        f"{signed(before['bias'])} before, {signed(after['bias'])} after"
    )
    return (
        f"{words}. One run alone has nothing to be left out of."
        if left_out is None
        else f"{words}; each run predicted from all others: {percent(left_out['mape'])}."
    )


def parameter_table(stack: OwnStack) -> Table:
    """Every figure of the stack as shipped and as fitted, and of links' curves where any were."""
    parameters = stack.calibration.parameters
    moved = max(parameters, key=lambda fit: abs(math.log(fit.value / fit.prior)), default=None)
    rows = [
        {
            "figure": PARAMETER_WORDS.get(fit.name, fit.name),
            "shipped": three_digits(scale * fit.prior),
            "yours": three_digits(scale * fit.value),
            "moved": signed(fit.value / fit.prior - 1),
            _INTERVAL: _together(" to ".join(three_digits(scale * end) for end in fit.interval)),
        }
        for fit in parameters
        for scale in (microseconds(1.0) if fit.name == "host_s" else 1.0,)
    ]
    rows += [
        {
            "figure": f"{curve['link']} curve ({curve['prior']}), share of its line rate",
            "shipped": three_digits(curve["rate"][0]),
            "yours": three_digits(curve["rate"][1]),
            "moved": signed(curve["rate"][1] / curve["rate"][0] - 1),
            _INTERVAL: NOTHING,
        }
        for curve in stack.to_json()["curves"]
    ]
    title = "No figure of the stack moves"
    if moved is not None and abs(moved.value / moved.prior - 1) >= 0.0005:
        name = PARAMETER_WORDS.get(moved.name, moved.name).partition(",")[0]
        title = f"{capital(name)} moves most: {signed(moved.value / moved.prior - 1)}"
    return Table(title, f"{stack.calibration.stack} on {stack.calibration.family}", tuple(rows))


def moved_table(before: Answer, after: Answer) -> Table:
    """Return what a scenario's figures become under another stack, its plan being searched anew.

    Parameters
    ----------
    before, after : Answer
        Of one scenario but for its stack.
    """
    old, new = before.best, after.best
    if old is None or new is None or before.interval is None or after.interval is None:
        why = before.result.reason if old is None else after.result.reason
        return Table("There is no plan to compare", f"{capital(why)}.", ())
    tokens = before.scenario.sequence
    rates = old.samples_per_s * tokens, new.samples_per_s * tokens
    memory = fullest(old)[1].memory.total, fullest(new)[1].memory.total
    spans = before.interval.around, after.interval.around
    rows = [
        _moved("throughput", rates, lambda rate: quantity(rate, "tokens/s"), spans),
        _moved("iteration", (old.iteration_s, new.iteration_s), humanise_seconds, spans),
        _moved("MFU", (old.mfu, new.mfu), percent, spans),
        _moved("fullest stage", memory, humanise_bytes, None),
    ]
    keeps, was = (
        abs(new.iteration_s / old.iteration_s - 1) < _SAME,
        humanise_seconds(old.iteration_s),
    )
    became = (
        f"keep their {was}" if keeps else f"of {was} become {humanise_seconds(new.iteration_s)}"
    )
    stays = "the plan stays" if old.plan == new.plan else "another plan is the best"
    return Table(
        f"Iterations {became}, and {stays}",
        f"{scenario_title(before.scenario)}; planned under {before.scenario.stack.name} and under "
        f"{after.scenario.stack.name}, {_INTERVAL}s",
        tuple(rows),
    )


Words = Callable[[float], str]
Around = Callable[[float], tuple[float, float]]


def _moved(
    name: str, pair: tuple[float, float], words: Words, spans: tuple[Around, Around] | None
) -> dict[str, str]:
    (old, new), (first, second) = pair, spans or (None, None)
    return {
        "figure": name,
        "shipped stack": words(old),
        "shipped interval": span_in_words(first(old), words) if first else NOTHING,
        "your stack": words(new),
        "your interval": span_in_words(second(new), words) if second else NOTHING,
        "moved": signed(new / old - 1),
    }


def next_table(choice: Next, scenario: ScenarioValues) -> Table:
    """Return the next runs, the most telling first."""
    result = choice.found
    rows = [
        {
            "run": f"{place}",
            "plan": plan_in_words(run.report, scenario.batch, scenario.fabric.devices),
            "predicted": humanise_seconds(run.report.iteration_s),
            "removes": humanise_seconds(run.expected_regret_removed_s),
        }
        for place, run in enumerate(result.runs)
    ]
    plans = f"{result.candidates} plans" if result.candidates > 1 else "1 plan"
    title = f"{plans} may be the fastest; to know which would save "
    if not rows:
        return Table("No run would change which plan is chosen", "", ())
    return Table(
        f"{title}{humanise_seconds(result.expected_regret_s)} of an iteration on average",
        "Each run beside those before it, and what it takes off that expectation; per iteration",
        tuple(rows),
    )
