"""One's own measurements: logs and launch commands read, predicted, fitted, and kept as a file.

A set of them holds what was read as rows of a table of measured runs, by column, and logs of
nccl-tests as they are: plain text that `nest_core.api.calibrate` takes again. The software stack
that is fitted to them is the one that it fits.

Tables say what they come to: runs read, parameters moved, a plan anew.
"""

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from pydantic import TypeAdapter, ValidationError

from nest_core.api.answer import Answer
from nest_core.api.calibrate import OwnStack, own_stack
from nest_core.api.export import Next
from nest_core.calibration.collectives.nccl_log import is_log, read_log
from nest_core.calibration.logs.run_log import Printed, RunFacts, read_blocks, read_command
from nest_core.calibration.training.calibration import stack_document
from nest_core.calibration.training.predict import Prediction, predict_rows, spread
from nest_core.calibration.training.reading import is_training, read_cells, row_of
from nest_core.calibration.training.rows import DEFAULTS, Unusable
from nest_core.calibration.training.runs import MeasuredRow
from nest_core.costs import Interval, plan_words, span_in_words
from nest_core.documents import (
    NOTHING,
    InputError,
    capital,
    content_blocks,
    csv_text,
    decoded,
    humanise_bytes,
    humanise_seconds,
    microseconds,
    percent,
    plural,
    require,
    signed_percent,
    three_digits,
)
from nest_core.documents.schema import check_plain
from nest_core.hardware.posterior import SHARE, load_posterior
from nest_core.report.explain import fullest, plan_in_words, quantity
from nest_core.report.tables import Table
from nest_core.scenario import ScenarioValues, scenario_title

__all__ = [
    "MOST_ENTRIES",
    "PARAMETER_WORDS",
    "Fitted",
    "MeasuredEntry",
    "Measurements",
    "errors_in_words",
    "fitted",
    "moved_table",
    "next_table",
    "parameter_table",
    "read_entries",
    "run_table",
    "signed",
]

MOST_ENTRIES = 200
"""Runs and logs in a set."""

LONGEST_NAME = 100

_RECIPES = {
    "dist_opt_or_zero": "ZeRO",
    "precision": "precision",
}


@dataclass(frozen=True, slots=True)
class MeasuredEntry:
    """Something that was measured, or a command of what could be.

    Parameters
    ----------
    name : str
        Of the file, or of the row of a table.
    kind : {"run", "command", "nccl"}
        A run with its times, one without, or what nccl-tests print.
    cells : mapping of str to str
        The run's, by column of ``train_measurements.csv``; empty for nccl-tests.
    text : str
        Of nccl-tests; empty for runs.
    assumed : tuple of str
        Sentences on what neither log nor command says.
    """

    name: str
    kind: Literal["run", "command", "nccl"]
    cells: Mapping[str, str]
    text: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def row(self) -> MeasuredRow:
        """The run.

        Raises
        ------
        InputError
            If the cells are of none.
        """
        try:
            return row_of(self.cells, self.name)
        except Unusable as error:
            raise InputError(
                self.name, f"must describe a run (it {error})", "no whole one", "leave it out"
            ) from error


_ENTRIES = TypeAdapter(tuple[MeasuredEntry, ...])


@dataclass(frozen=True, slots=True)
class Measurements:
    """A set of them under a name.

    Parameters
    ----------
    name : str
        That of the software stack fitted to it, too.
    entries : tuple of MeasuredEntry

    Raises
    ------
    InputError
        If the name is no file's, or there are too many entries.
    """

    name: str
    entries: tuple[MeasuredEntry, ...] = ()

    def __post_init__(self) -> None:
        name = self.name
        require(
            1 <= len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip(),
            "name",
            f"must be one line of 1 to {LONGEST_NAME} characters",
            name,
            "choose another",
        )
        require(
            not (set(name) & set('/\\:*?"<>|')) and not name.startswith("."),
            "name",
            "must be a plain name",
            name,
            "use letters, digits and dashes",
        )
        require(
            len(self.entries) <= MOST_ENTRIES,
            "measurements",
            f"must be at most {MOST_ENTRIES}",
            len(self.entries),
            "keep some under another name",
        )

    @property
    def runs(self) -> tuple[MeasuredEntry, ...]:
        """Runs that were measured."""
        return tuple(entry for entry in self.entries if entry.kind == "run")

    def with_entries(self, entries: Sequence[MeasuredEntry]) -> Self:
        """Return these with more; one of the same name and kind takes the earlier one's place."""
        new = {(entry.name, entry.kind): entry for entry in entries}
        others = [entry for entry in self.entries if (entry.name, entry.kind) not in new]
        return replace(self, entries=(*others, *new.values()))

    def without(self, name: str) -> Self:
        """Return these but for the entries of a name."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.name != name))

    def to_csv(self) -> str:
        """Return the runs as a table that ``nest-studio calibrate`` and ``validate`` take."""
        rows = [{**entry.cells, "id": entry.name} for entry in self.runs]
        columns = list(dict.fromkeys(("id", *(column for row in rows for column in row))))
        return csv_text(columns, [[row.get(column, "") for column in columns] for row in rows])

    def to_json(self) -> dict[str, Any]:
        """As plain values, which `from_json` takes."""
        return {"name": self.name, "entries": [asdict(entry) for entry in self.entries]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return what `to_json` gave.

        Raises
        ------
        InputError
            If the document is another's.
        """
        check_plain("measurements", dict(document))
        try:
            entries = _ENTRIES.validate_python(document["entries"])
            name = str(document["name"])
        except (KeyError, TypeError, ValidationError) as error:
            raise InputError(
                "measurements", "must be as the studio keeps them", str(error), "read the logs anew"
            ) from error
        return cls(name, entries)


def read_entries(content: bytes, name: str, given: RunFacts) -> tuple[MeasuredEntry, ...]:
    """Return what a file holds: a log of training or of nccl-tests, or a table of measured runs.

    Parameters
    ----------
    content : bytes
        Without any, the command of ``given`` alone is read.
    name : str
    given : RunFacts
        What a person says beside it.

    Raises
    ------
    InputError
        If it is none of these, or says too little.
    """
    if not content and not name:
        command = read_command(given.launch, given)
        return (MeasuredEntry("launch command", "command", command.cells, "", _said(command)),)
    head = content[:20_000].decode("utf-8", "replace")
    if is_log(head):
        text = decoded(content, name)
        read_log(text, name)
        return (MeasuredEntry(name, "nccl", {}, text),)
    if is_training(head.partition("\n")[0].split(",")):
        rows = list(itertools.islice(read_cells(decoded(content, name), name), MOST_ENTRIES + 1))
        require(
            len(rows) <= MOST_ENTRIES,
            name,
            f"must have at most {MOST_ENTRIES} rows",
            "more",
            "split it",
        )
        # An empty cell is not stated, and the name stands apart.
        stated = [{key: cell for key, cell in row.items() if cell and key != "id"} for row in rows]
        return tuple(
            MeasuredEntry(row["id"], "run", cells) for row, cells in zip(rows, stated, strict=True)
        )
    printed = read_blocks(content_blocks(content, name), name, given)
    return (MeasuredEntry(name, "run", printed.cells, "", _said(printed)),)


def _said(printed: Printed) -> tuple[str, ...]:
    """Return what was not in the log, in sentences."""
    lines = []
    if printed.given:
        names = (_WORDS.get(column, column) for column in printed.given)
        lines.append(f"From what was given beside it: {', '.join(names)}.")
    lines += [
        *(
            f"{_RECIPES[column]}: as recipes have it, {printed.cells[column]}."
            for column in printed.assumed
        ),
        *(
            f"{_WORDS.get(column, column)}: {DEFAULTS[column]}."
            for column in printed.row.run.assumed
            if column in DEFAULTS and column not in ("cp", "ep")
        ),
    ]
    return tuple(map(capital, lines))


_WORDS = {
    "ffn_hidden": "the MLP's width",
    "gpus_per_node": "devices in a node",
    "gated_mlp": "whether the MLP is gated",
    "hidden": "hidden size",
    "inter_bw_GBps_per_gpu": "a device's network port",
    "intra_bw_GBps": "links inside a node",
    "kv_heads": "key and value heads",
    "micro_batch": "micro-batch",
    "recompute": "recomputation",
    "seq_parallel": "sequence parallelism",
    "topk": "experts of a token",
    "vocab": "vocabulary",
    "vp_interleave": "virtual stages",
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a set of measurements comes to.

    Parameters
    ----------
    predicted : tuple of (Prediction, Interval)
        Every run and command that can be predicted, under the shipped stack.
    skipped : tuple of (str, str)
        Names of the others, and why.
    own_stack : OwnStack or None
        The stack fitted to the runs; None where none was measured.
    unfitted : str
        Why there is none; empty where there is one.
    """

    predicted: tuple[tuple[Prediction, Interval], ...]
    skipped: tuple[tuple[str, str], ...]
    own_stack: OwnStack | None
    unfitted: str = ""

    @property
    def stack(self) -> dict[str, Any] | None:
        """The stack as a table that a scenario's ``stack`` may be; None where there is none."""
        if self.own_stack is None:
            return None
        table = stack_document(self.own_stack.calibration, self.own_stack.name)
        return dict(json.loads(json.dumps({"name": self.own_stack.name, **table})))


def fitted(measurements: Measurements) -> Fitted:
    """Predict every run and fit a stack to those that were measured."""
    rows: list[MeasuredRow] = []
    skipped: list[tuple[str, str]] = []
    logs = [(entry.name, entry.text) for entry in measurements.entries if entry.kind == "nccl"]
    for entry in measurements.entries:
        try:
            rows += [] if entry.kind == "nccl" else [entry.row]
        except InputError as error:
            skipped.append((entry.name, str(error)))
    predictions, unread = predict_rows(rows)
    posterior = load_posterior()
    predicted = tuple(
        (prediction, Interval(prediction.seconds, spread(prediction.run, posterior)))
        for prediction in predictions
    )
    skipped += [(row.id, row.reason) for row in unread]
    measured = [row for row in rows if row.outcome.seconds is not None]
    if not measured:
        return Fitted(
            predicted,
            tuple(skipped),
            None,
            "No run was measured yet: drop the log of one, with some 30 steps.",
        )
    try:
        stack = own_stack(measurements.name, measured, nccl=logs)
    except InputError as error:
        return Fitted(predicted, tuple(skipped), None, str(error))
    names = {name for name, _ in skipped}
    skipped += [(e.id, e.reason) for e in stack.calibration.skipped if e.id not in names]
    fits = {
        run.row.run.id: Interval(run.before, run.before_spread) for run in stack.calibration.runs
    }
    intervals = tuple(
        (prediction, fits.get(prediction.run.id, interval)) for prediction, interval in predicted
    )
    return Fitted(intervals, tuple(skipped), stack)


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
