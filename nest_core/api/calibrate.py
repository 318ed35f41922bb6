"""A stack of one's own, from logs of training runs or a table of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nest_core.calibration.collectives.fit import OwnFit, fit_own
from nest_core.calibration.collectives.nccl_log import LogFacts, read_log
from nest_core.calibration.logs import RunFacts, read_run_log
from nest_core.calibration.logs.launch import launch_text
from nest_core.calibration.logs.settings import sizes_of
from nest_core.calibration.training import MeasuredRow, Unread, read_runs
from nest_core.calibration.training.calibration import (
    Calibrated,
    Calibration,
    calibrated,
    stack_toml,
)
from nest_core.costs.interval import Interval
from nest_core.documents import (
    GB,
    InputError,
    percent,
    percent_column,
    plain,
    preset_names,
    read_text,
    require,
    signed_percent,
    table,
)
from nest_core.fabric import Fabric
from nest_core.hardware import default_stack
from nest_core.hardware.collectives import Measurement, load_curve, load_library
from nest_core.network import collapse
from nest_core.scenario import Scenario, ScenarioValues, scenario_or_fabric

__all__ = ["OwnStack", "calibrate", "given_by", "own_stack"]


@dataclass(frozen=True, slots=True)
class OwnStack:
    """What own runs say about cluster and software.

    Parameters
    ----------
    name : str
    calibration : Calibration
    skipped : tuple of Unread
        Logs and rows that were not read, before those that could not be predicted.
    scenario : str
        That the runs are of, where one was named and the stack may be its own.
    fits : tuple of OwnFit
        Of curves to logs of nccl-tests.
    """

    name: str
    calibration: Calibration
    skipped: tuple[Unread, ...]
    scenario: str = ""
    fits: tuple[OwnFit, ...] = ()

    @property
    def toml(self) -> str:
        """The stack's file."""
        return stack_toml(self.calibration, self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``calibrate --json`` but ``next_runs`` and ``output``."""
        runs = self.calibration.runs
        several = len(runs) > 1
        return {
            "rows": [_row(run) for run in runs],
            "skipped": [asdict(entry) for entry in (*self.skipped, *self.calibration.skipped)],
            "before": _errors(runs, lambda run: run.before),
            "after": _errors(runs, lambda run: run.after),
            "left_one_out": _errors(runs, lambda run: run.left_out or 0.0) if several else None,
            "parameters": plain([asdict(entry) for entry in self.calibration.parameters]),
            "curves": [
                {
                    "link": fit.curve.link,
                    "prior": fit.prior,
                    "rate": [load_curve(fit.prior).top, fit.curve.top],
                    "error": [fit.before, fit.after],
                    "rows": fit.rows,
                }
                for fit in self.fits
            ],
        }

    def __str__(self) -> str:
        fields = self.to_json()
        runs = [
            [
                row["id"],
                f"{row['measured_s']:.3f}",
                f"{row['predicted_s']:.3f}",
                signed_percent(row["error"]),
            ]
            for row in fields["rows"]
        ]
        parameters = [
            [fit.name, f"{fit.prior:.4g}", f"{fit.value:.4g}",
             f"{fit.interval[0]:.4g} to {fit.interval[1]:.4g}"]
            for fit in self.calibration.parameters
        ]  # fmt: skip
        rate, error = (
            percent_column(share for curve in fields["curves"] for share in curve[name])
            for name in ("rate", "error")
        )
        curves = [
            [curve["link"], curve["prior"], *map(rate, curve["rate"]), *map(error, curve["error"])]
            for curve in fields["curves"]
        ]
        before, after = (percent(fields[run]["mape"]) for run in ("before", "after"))
        errors = f"Mean error {before} before, {after} after"
        if fields["left_one_out"]:
            errors += f", {percent(fields['left_one_out']['mape'])} of runs left out one by one"
        tables = (
            (("run", "measured, s", "predicted, s", "error"), runs),
            (("parameter", "shipped", "yours", "80 %"), parameters),
            (
                ("measured on", "shipped curve", "rate, shipped", "yours", "error", "yours"),
                curves,
            ),
            (("skipped", "why"), [[row["id"], row["reason"]] for row in fields["skipped"]]),
        )
        return "\n\n".join(
            [f"{errors}.", *[table(list(head), rows) for head, rows in tables if rows]]
        )


def calibrate(
    files: Sequence[str | Path],
    name: str,
    *,
    launch: Sequence[str] = (),
    on: str = "",
    accelerator: str = "",
    model: str = "",
    nccl: Sequence[str] = (),
) -> OwnStack:
    """Fit the few parameters that own runs can tell of, around the shipped ones.

    Parameters
    ----------
    files : sequence of str or Path
        Logs of Megatron-LM, Megatron-Bridge, NeMo, torchtitan, DeepSpeed or MLPerf's logger, or
        tables (``.csv``) with the columns of ``train_measurements.csv``.
    name : str
        Of the stack.
    launch : sequence of str
        The launch command or configuration, as text or a file's name: one for all logs, or one
        for each.
    on : str
        A fabric or a scenario: nodes, links and ports; a scenario also accelerator and model.
    accelerator, model : str
        Presets, or an accelerator as people write it (H100).
    nccl : sequence of str
        Logs of nccl-tests on this cluster. A curve of links inside a node and one of the network
        are fitted to them, as far as they are of one node or several; the stack has them in place
        of the shipped ones.

    Raises
    ------
    InputError
        If a file is none of these and it is the only one, or no run can be predicted.
    """
    scenario = scenario_or_fabric(on, {}, Path()) if on else None
    given = _given(scenario, accelerator, model)
    rows, skipped = _rows([Path(file) for file in files], launch, given)
    stack = own_stack(name, rows, skipped, [(Path(log).name, read_text(Path(log))) for log in nccl])
    if scenario is None or "workload" not in scenario.document:
        return stack
    is_own = scenario.values.accelerator.family.name == stack.calibration.family
    return replace(stack, scenario=on if is_own else "")


def own_stack(
    name: str,
    rows: Sequence[MeasuredRow],
    skipped: Sequence[Unread] = (),
    nccl: Sequence[tuple[str, str]] = (),
) -> OwnStack:
    """Return the same of runs that were read.

    Parameters
    ----------
    name : str
    rows : sequence of MeasuredRow
    skipped : sequence of Unread
    nccl : sequence of (str, str)
        Names and texts of logs of nccl-tests.
    """
    fits = _fits(nccl, rows)
    return OwnStack(
        name, calibrated(rows, tuple(fit.curve for fit in fits)), tuple(skipped), fits=fits
    )


def _rows(
    files: Sequence[Path], launch: Sequence[str], given: RunFacts
) -> tuple[list[MeasuredRow], list[Unread]]:
    require(
        len(launch) <= 1 or len(launch) == len(files),
        "--launch",
        "must be given once, or once for each log",
        len(launch),
        "add or drop some",
    )
    commands = [launch_text(command) for command in launch or [""]]
    commands = commands * len(files) if len(commands) == 1 else commands
    rows: list[MeasuredRow] = []
    skipped: list[Unread] = []
    refused: InputError | None = None
    for path, command in zip(files, commands, strict=True):
        if path.suffix.lower() == ".csv":
            more, without = read_runs(read_text(path), path.name)
            rows, skipped = rows + more, skipped + without
            continue
        try:
            row = read_run_log(path, replace(given, launch=command))
        except InputError as error:
            refused = refused or error
            skipped.append(Unread(path.name, str(error)))
        else:
            same = sum(earlier.run.id.partition(" #")[0] == row.run.id for earlier in rows)
            name = f"{row.run.id} #{same + 1}" if same else row.run.id
            rows.append(replace(row, run=replace(row.run, id=name)))
    if refused is not None and not rows:
        raise refused
    return rows, skipped


def _given(scenario: Scenario | None, accelerator: str, model: str) -> RunFacts:
    """Return what a fabric or a scenario says of runs on it, and the options that go before it."""
    columns = {"accelerator": accelerator} if accelerator else {}
    if scenario is None:
        return RunFacts(columns=columns, model=model)
    if "workload" in scenario.document:
        given = given_by(scenario.values)
        return replace(given, columns={**given.columns, **columns}, model=model)
    fabric = scenario.fabric
    return RunFacts(columns=_fabric_columns(fabric) | columns, model=model, fabric=fabric)


def given_by(scenario: ScenarioValues) -> RunFacts:
    """Return what a scenario says of runs on it: accelerator, model's sizes, fabric, and its stack
    where that is a shipped one but not the usual."""
    device, stack = scenario.accelerator, scenario.stack
    is_usual = stack.name not in preset_names("stacks") or stack == default_stack(
        device.family.name
    )
    software = {} if is_usual else {"stack": stack.name}
    job = {"accelerator": device.name, **sizes_of(scenario.model), **software}
    return RunFacts(columns=job | _fabric_columns(scenario.fabric), fabric=scenario.fabric)


def _fabric_columns(fabric: Fabric) -> dict[str, str]:
    """Nodes, what a device has inside them, and what leaves them for each; none of a torus."""
    inside, *outside = collapse(fabric).levels
    if not inside.group_size:
        return {}
    port = f"{outside[0].bandwidth_Bps / GB:.6g}" if outside else ""
    return {
        "gpus_per_node": str(inside.group_size),
        "intra_bw_GBps": f"{inside.single_flow_Bps / GB:.6g}",
        **({"inter_bw_GBps_per_gpu": port} if outside else {}),
    }


def _fits(nccl: Sequence[tuple[str, str]], rows: Iterable[MeasuredRow]) -> tuple[OwnFit, ...]:
    """Return curves of the kinds of links that logs of nccl-tests are of."""
    port = next((row.run.inter_Bps for row in rows if row.run.inter_Bps), 50 * GB)
    facts = LogFacts(network="InfiniBand", network_Bps=port)
    inside: list[Measurement] = []
    between: list[Measurement] = []
    for name, text in nccl:
        measured = read_log(text, name, facts)
        (inside if measured[0].nodes == 1 else between).extend(measured)
    library, fits = load_library(), []
    for measured in (inside, between):
        if measured:
            fits.append(fit_own(measured, library))
            library = library.replaced(replace(fits[-1].curve, name=fits[-1].prior))
    return tuple(fits)


def _row(run: Calibrated) -> dict[str, object]:
    of, measured = run.row.run, run.row.outcome.seconds or 0.0
    names = ("dp", "tp", "pp", "cp", "ep", "sp", "zero", "micro_batch", "interleave", "order")
    return {
        "id": of.id,
        "measured_s": measured,
        "predicted_s": run.after,
        "error": run.after / measured - 1,
        "before_s": run.before,
        "before_interval": Interval(run.before, run.before_spread).to_json(),
        "interval": Interval(run.after, run.after_spread).to_json(),
        "left_out_s": run.left_out,
        "measured_memory_bytes": run.row.outcome.memory_bytes,
        "memory_counted": run.row.outcome.memory_kind,
        "plan": {name: getattr(of.point, name) for name in names}
        | {"recompute": of.recompute, "devices_used": of.devices},
        "stack": of.stack,
    }


def _errors(
    runs: Sequence[Calibrated], predicted: Callable[[Calibrated], float]
) -> dict[str, float]:
    errors = [predicted(run) / (run.row.outcome.seconds or 1.0) - 1 for run in runs]
    return {
        "mape": sum(map(abs, errors)) / len(errors),
        "bias": sum(errors) / len(errors),
    }
