"""A log as one row of a table of measured runs.

Every reader of `READERS` sees the lines that hold its words; whose steps are found is the printer.
What launchers and containers put before a line is no word of any. What the log
does not say comes from the launch command, then from what a person gives (`RunFacts`); what two of
them say differently is refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nest_core.calibration.logs.launch import is_whole, settings_in
from nest_core.calibration.logs.readers import (
    DeepspeedReader,
    MegatronReader,
    MllogReader,
    NemoReader,
    TorchtitanReader,
)
from nest_core.calibration.logs.report import MIN_LINES, LogReader, Steady, steady_of
from nest_core.calibration.logs.settings import columns_of, model_columns
from nest_core.calibration.training.machines import find_machine, machine_of
from nest_core.calibration.training.reading import row_of
from nest_core.calibration.training.rows import Unusable
from nest_core.calibration.training.runs import MeasuredRow
from nest_core.documents import GB, InputError, log_blocks, plural, require
from nest_core.fabric import Fabric

__all__ = ["Printed", "RunFacts", "read_blocks", "read_command", "read_run_log"]

READERS: tuple[type[LogReader], ...] = (
    MllogReader,
    MegatronReader,
    NemoReader,
    TorchtitanReader,
    DeepspeedReader,
)
"""The first whose steps are found is the printer."""

BESIDE: Mapping[str, tuple[str, ...]] = {
    "MLPerf": ("Megatron-LM", "Megatron-Bridge", "NeMo", "DeepSpeed", "torchtitan"),
    "Megatron-LM": ("DeepSpeed",),
}
"""By printer: others whose lines may stand in the same run's log."""

SHARDING: Mapping[str, str] = {
    "MLPerf": "distributed_optimizer",
    "Megatron-Bridge": "distributed_optimizer",
    "NeMo": "distributed_optimizer",
    "torchtitan": "fsdp2(zero3)",
}
"""What recipes of a framework shard where nothing is said."""

NEEDED = (
    ("ep", "its expert degree", "add the launch command with --launch"),
    ("global_batch_seqs", "its global batch size", "add the launch command with --launch"),
    ("seq_len", "its sequence length", "add the launch command with --launch"),
    ("layers", "the sizes of its model", "name it with --model, or add --launch"),
    ("hidden", "the sizes of its model", "name it with --model, or add --launch"),
    ("heads", "the sizes of its model", "name it with --model, or add --launch"),
    ("tp", "its plan", "add the launch command with --launch"),
    ("pp", "its plan", "add the launch command with --launch"),
    ("gpus", "how many devices it ran on", "add the launch command with --launch"),
    ("precision", "its precision", "add the launch command, or bf16=true, with --launch"),
    ("accelerator", "its accelerator", "name it with --accelerator, or a scenario with --on"),
)
"""Columns without which nothing can be predicted, what they are, and who has them; the first where
a log shows experts over several devices, and not over how many."""


DEGREES = frozenset(("tp", "pp", "cp", "ep", "dp"))
"""Who states one of these states a plan: those that are left out are 1."""


_MEMORY = {
    "allocated": "memory max allocated",
    "reserved": "memory max reserved",
    "device": "memory as nvidia-smi shows it",
}
"""Kinds of printed memory, the surest first, and the words of column ``notes``."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a person says beside the log.

    Parameters
    ----------
    launch : str
        The launch command, or a configuration file's text.
    columns : mapping
        Columns of the row, such as ``accelerator`` and ``gpus_per_node``; those of the model and
        the job stand in for what neither log nor command says.
    model : str
        A preset.
    fabric : Fabric, optional
        That the run is on.
    """

    launch: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    fabric: Fabric | None = None


@dataclass(frozen=True, slots=True)
class Printed:
    """A run as it was read.

    Parameters
    ----------
    cells : dict
        A row of a table of measured runs, by column: `row_of` makes ``row`` of it.
    row : MeasuredRow
    given, assumed : tuple of str
        Columns that only a person's word beside the log says, and those that nobody does, whose
        value is what recipes of the framework have.
    """

    cells: dict[str, str]
    row: MeasuredRow
    given: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def read_run_log(path: Path, given: RunFacts | None = None) -> MeasuredRow:
    """Return the run that a log is of, with what it took.

    Parameters
    ----------
    path : Path
        Of any printer in `READERS`, at most 2 GB.
    given : RunFacts, optional

    Raises
    ------
    InputError
        If it is no such log, is cut off before its steps are steady, holds several runs, does not
        say enough, or contradicts the command.
    """
    return read_blocks(log_blocks(path), path.name, given or RunFacts()).row


def read_command(command: str, given: RunFacts) -> Printed:
    """Return the run that a launch command or a configuration starts, with nothing measured.

    Parameters
    ----------
    command : str
        As `RunFacts.launch`, whose place it takes.
    given : RunFacts

    Raises
    ------
    InputError
        If it does not say enough, or contradicts itself.
    """
    name, report = "the launch command", LogReader()
    cells, stated = _settings(report, replace(given, launch=command), name)
    cells["source"] = "launch command"
    return _printed(cells, report, name, given, stated)


def read_blocks(blocks: Iterable[bytes], name: str, given: RunFacts) -> Printed:
    """Return the run that a log is of, as `read_run_log` reads a file.

    Parameters
    ----------
    blocks : iterable of bytes
        Pieces of whole lines.
    name : str
        What messages call the log.
    given : RunFacts
    """
    readers = [reader() for reader in READERS]
    for block in blocks:
        for reader in readers:
            reader.read(block)
    for reader in readers:
        reader.end()
    report = _printer(readers, name)
    first_values: dict[str, str] = {}  # a configuration may have lost a line
    differs = next(
        (
            setting
            for run in report.runs
            for setting, value in run.items()
            if value and first_values.setdefault(setting, value) != value
        ),
        "",
    )
    require(
        not differs,
        name,
        "must hold one run",
        f"{len(report.runs)} runs that differ in {differs}",
        "split the file",
    )
    cells, stated = _settings(report, given, name)
    steady = steady_of(report.steps, int(cells.get("global_batch_seqs", 0)))
    if steady is None:
        raise InputError(
            name,
            "must hold steps after warm-up",
            f"{plural(len(report.steps), 'printed step')}, fewer than {MIN_LINES} of them warm",
            "let the job run for some 30 steps",
        )
    require(
        not steady.batch
        or int(cells.setdefault("global_batch_seqs", str(steady.batch))) == steady.batch,
        name,
        f"must hold steps of its batch of {cells.get('global_batch_seqs')}",
        f"of {steady.batch}",
        "let the ramp end, or correct --launch",
    )
    return _printed(cells, report, name, given, stated, steady)


def _printed(
    cells: dict[str, str],
    report: LogReader,
    name: str,
    given: RunFacts,
    stated: Collection[str],
    steady: Steady | None = None,
) -> Printed:
    """Return the run of columns, once they are completed and checked, with what was measured."""
    assumed = _complete(cells, report, name)
    require(
        given.fabric is None or given.fabric.devices >= int(cells["gpus"]),
        name,
        f"must be of a run on the {given.fabric.devices if given.fabric else 0:,} devices of --on",
        f"of one on {cells['gpus']}",
        "name the fabric that it ran on",
    )
    cells["model"] = cells.get("model") or "own model"
    if steady:
        cells |= _measured(report, steady, cells)
    try:
        row = row_of(cells, name)
    except Unusable as error:
        raise InputError(
            name,
            f"must describe a run (it {error})",
            "no whole one",
            "make the settings of the log and of --launch agree",
        ) from error
    return Printed(
        cells,
        replace(row, run=replace(row.run, fabric=given.fabric)),
        tuple(column for column in given.columns if column not in stated),
        assumed,
    )


def _printer(reports: Sequence[LogReader], name: str) -> LogReader:
    """Return what the framework itself printed, with settings of those that run inside it."""
    printers = [report for report in reports if report.steps]
    if not printers:
        if units := [report.unit for report in reports if report.unit]:
            raise InputError(
                name, "must tell times in ms or s", units[0], "print them as Megatron-LM does"
            )
        begun = [report for report in reports if report.settings or report.memory_bytes]
        raise InputError(
            name,
            "must hold lines of steps as Megatron-LM, Megatron-Bridge, NeMo, torchtitan, DeepSpeed "
            "or MLPerf's logger print them",
            f"without one, after the start of {begun[0].framework}" if begun else "without any",
            f"{'let the job run for some 30 steps, or ' if begun else ''}name the file that rank "
            "0 and the last rank print to",
        )
    first, *others = printers
    companions = BESIDE.get(_base(first), ())
    for other in others:
        require(
            _base(other) in companions,
            name,
            "must hold one run",
            f"printed by {first.framework} and {other.framework}",
            "split the file",
        )
    for other in reports:
        if other is not first and _base(other) in companions:
            first.settings = other.settings | first.settings
            first.memory_bytes = other.memory_bytes | first.memory_bytes
            first.notes += other.notes + ([other.framework] if other.settings else [])
    return first


def _base(report: LogReader) -> str:
    return report.framework.partition(" ")[0]


def _settings(
    report: LogReader, given: RunFacts, name: str
) -> tuple[dict[str, str], Collection[str]]:
    """Return columns of the configuration, and those that the log states.

    Each is from the surest of those who say it; stated is also what log, command or
    a model's name say.

    Raises
    ------
    InputError
        If log and command contradict each other.
    """
    printed = columns_of(report.settings)
    command = settings_in(given.launch) if given.launch.strip() else {}
    launched = columns_of(command)
    together = columns_of(
        {**command, **report.settings}, is_complete=is_whole(given.launch, command)
    )
    for column, value in launched.items():
        require(  # a vocabulary is padded, and notes add up
            column in ("vocab", "notes") or printed.get(column, value) == value,
            "--launch",
            f"must agree with {name} on {column}",
            f"{value} beside {printed.get(column)}",
            "give the command of this log",
        )
    stated = {**together, **launched, **printed}
    require(
        not (unread := command.get("deepspeed_config", command.get("deepspeed", ""))).endswith(
            ".json"
        )
        or "dist_opt_or_zero" in stated,
        name,
        "must state its ZeRO stage",
        f"in {unread}, which is not read",
        "add --zero_stage and --train_micro_batch_size_per_gpu to --launch, as they are there",
    )
    planned = stated.keys() & DEGREES or launched.keys() & {"gpus", "micro_batch"}
    if planned or _base(report) in ("torchtitan", "DeepSpeed"):
        stated = {"tp": "1", "pp": "1"} | stated
    model = given.model or report.settings.get("model", "") or command.get("model", "")
    stated = {**model_columns(model), **stated}
    cells = {**given.columns, **stated}
    cells["notes"] = "; ".join(
        dict.fromkeys(filter(None, (*report.notes, together.get("notes", ""))))
    )
    if device := report.settings.get("device"):
        _check_device(device, given, name)
        cells.setdefault("accelerator", device)
    return cells, stated.keys()


def _check_device(printed: str, given: RunFacts, name: str) -> None:
    """Refuse a log of another accelerator than is given, where what it prints is one of ours."""
    given_name = given.columns.get("accelerator", "")
    machine = find_machine(printed)
    require(
        not given_name or not machine or machine == machine_of(given_name),
        name,
        f"must be of a run on {given_name}",
        f"of one on {printed}",
        "name its own accelerator",
    )


def _complete(cells: dict[str, str], report: LogReader, name: str) -> tuple[str, ...]:
    """Fill in what follows from other columns or is usual, and check that nothing is missing or
    contradicts; columns whose usual value was taken.

    Raises
    ------
    InputError
    """
    batch, micro = (int(cells.get(key) or 0) for key in ("global_batch_seqs", "micro_batch"))
    accumulated = report.settings.get("gradient_accumulation_steps", "")
    if "dp" not in cells and micro and accumulated.isdecimal() and _base(report) == "MLPerf":
        replicas, rest = divmod(batch, micro * max(1, int(accumulated)))
        if not rest and replicas:
            cells["dp"] = str(replicas)
    degrees = [int(cells.get(key) or 1) for key in ("tp", "pp", "cp", "dp")]
    if "gpus" not in cells and "dp" in cells and "tp" in cells:
        cells["gpus"] = str(degrees[0] * degrees[1] * degrees[2] * degrees[3])
    usual = {"dist_opt_or_zero": SHARDING.get(_base(report), "none")}
    if _base(report) == "torchtitan":
        usual["precision"] = "bf16"
    assumed = tuple(column for column in usual if column not in cells)
    cells |= {column: usual[column] for column in assumed}
    for column, what, remedy in NEEDED[report.settings.get("expert_parallel_degree") != "auto" :]:
        require(cells.get(column), name, f"must state {what}", "without", remedy)
    machine_of(cells["accelerator"])
    shared = degrees[0] * degrees[1] * degrees[2]
    devices = int(cells["gpus"])
    require(
        not (devices % shared),
        name,
        f"must have devices that tp x pp x cp = {shared} divides",
        devices,
        "correct --launch",
    )
    replicas = devices // shared
    require(
        not (micro and batch % (micro * replicas)),
        name,
        f"must have a batch of whole micro-batches, {micro} x {replicas} replicas",
        batch,
        "correct --launch",
    )
    return assumed


def _measured(report: LogReader, steady: Steady, cells: Mapping[str, str]) -> dict[str, str]:
    """Return columns of what came of the run, and where they are from."""
    batch, devices = int(cells["global_batch_seqs"]), int(cells["gpus"])
    scale = {"step": 1.0, "sample": batch, "token": batch * int(cells["seq_len"]) / devices}
    left_out = f"{steady.warm_up} of warm-up and {steady.aside} far from it left out"
    notes = [cells["notes"], f"median of {steady.used} printed steps, {left_out}"]
    columns = {
        "source": f"own run, {report.framework}",
        "iter_time_s": f"{steady.seconds * scale[report.per]:.6g}",
        "iter_time_basis": "log",
    }
    if kind := next((kind for kind in _MEMORY if kind in report.memory_bytes), ""):
        columns["mem_GB_per_gpu"] = f"{report.memory_bytes[kind] / GB:.6g}"
        notes.append(_MEMORY[kind])
    notes.append(report.framework)
    return columns | {"notes": "; ".join(filter(None, notes))}
