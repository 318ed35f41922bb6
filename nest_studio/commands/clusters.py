"""Commands on a person's own cluster: ``accept``, ``inspect`` and ``calibrate``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents import (
    check_writable,
    read_text,
    require,
    table,
    toml_document,
    toml_key,
    toml_value,
    write_file,
)
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["accept", "calibrate", "inspect"]


def accept(
    fabric: Annotated[str, typer.Argument(help="Fabric preset or file.")],
    logs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What a command printed; may be given several times."),
    ] = None,
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]…", help="More logs.", show_default=False)
    ] = None,
    accelerator: Annotated[
        str, typer.Option(help="A preset; by default the one that the fabric's name gives.")
    ] = "",
    stack: Annotated[
        str, typer.Option(help="A calibrated stack, whose measured curves count.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Write nccl-tests commands with what they should reach, and judge their logs."""
    from nest_core.calibration.acceptance.expected import expected_of, library_of
    from nest_core.calibration.acceptance.verdict import judge, read_runs
    from nest_core.network import collapse
    from nest_core.scenario import load_fabric

    specification = load_fabric(fabric)
    library = library_of(specification, accelerator, stack, Path())
    runs = read_runs((path.name, read_text(path)) for path in [*(logs or ()), *(more or ())])
    verdict = judge(expected_of(specification, collapse(specification), library), runs)
    fields = {
        "name": specification.name,
        "tests": [
            {
                "command": test.expected.command,
                "scope": test.expected.scope.name,
                "tier": test.expected.scope.tier,
                "where": test.expected.where,
                "predicted_busbw_Bps": test.expected.predicted_busbw_Bps,
                "threshold_Bps": test.expected.threshold_Bps,
                "measured_busbw_Bps": test.measured_busbw_Bps,
                "passed": test.passed,
                "log": test.log or None,
            }
            for test in verdict.outcomes
        ],
        "fault": verdict.fault,
        "finding": verdict.finding,
        "unmatched": verdict.unmatched,
    }
    emit(fields, as_json, _accept_text)


def _accept_text(fields: Mapping[str, Any]) -> str:
    verdicts = {True: "passed", False: "FAILED", None: ""}
    rows = [
        [
            test["scope"],
            *(
                None if test[key] is None else f"{test[key] / 1e9:,.4g}"
                for key in ("predicted_busbw_Bps", "threshold_Bps", "measured_busbw_Bps")
            ),
            verdicts[test["passed"]],
            test["where"],
        ]
        for test in fields["tests"]
    ]
    return "\n".join(
        [
            f"{fields['name']}: bus bandwidth of 4 GiB",
            "",
            table(["scope", "expected, GB/s", "at least", "measured", "", "where"], rows),
            "",
            *(f"# {test['scope']}, {test['where']}\n{test['command']}" for test in fields["tests"]),
            "",
            fields["finding"],
            *(f"! {sentence}" for sentence in fields["unmatched"]),
        ]
    )


def inspect(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG…",
            help="What ibnetdiscover, nvidia-smi topo -m and nccl-tests print; Slurm's topology.",
        ),
    ],
    launch: Annotated[
        str, typer.Option(metavar="CMD", help="How a job is started: srun, torchrun, mpirun …")
    ] = "",
    accelerator: Annotated[
        str, typer.Option(help="A preset, where no log of nccl-tests names the devices.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Join logs of a cluster into a scenario, and list what none of them states."""
    from nest_core.calibration.inspection.inspect import inspect as joined
    from nest_core.calibration.logs.launch import launch_text

    result = joined(
        [(path.name, read_text(path)) for path in logs], launch_text(launch), accelerator
    )
    fields = {
        "scenario": result.scenario,
        "assumed": result.assumed,
        "compared": [
            {
                "log": comparison.log,
                "measured_busbw_Bps": comparison.measured_busbw_Bps,
                "predicted_busbw_Bps": comparison.predicted_busbw_Bps,
                "sentence": comparison.sentence,
            }
            for comparison in result.compared
        ],
        "logs": result.kinds,
    }
    emit(fields, as_json, _inspect_text)


def _inspect_text(fields: Mapping[str, Any]) -> str:
    """Return a scenario file."""

    read = ", ".join(f"{name} ({kind})" for name, kind in fields["logs"].items())
    comments = [
        f"Read: {read}",
        "",
        "Assumed, because no log states it:",
        *(f"- {sentence}" for sentence in fields["assumed"]),
    ]
    if fields["compared"]:
        compared = (f"- {comparison['sentence']}" for comparison in fields["compared"])
        comments += ["", "Measured beside predicted:", *compared]
    scenario = fields["scenario"]
    lines = [f"# {line}".rstrip() for line in comments]
    lines += ["", toml_document({k: v for k, v in scenario.items() if k != "fabric"}), "[fabric]"]
    for key, value in scenario["fabric"].items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = "".join(f"  {toml_value(row)},\n" for row in value)
            lines.append(f"{toml_key(key)} = [\n{rows}]")
        else:
            lines.append(f"{toml_key(key)} = {toml_value(value)}")
    return "\n".join(lines)


def calibrate(
    files: Annotated[list[str], typer.Argument(help="Logs of training runs, or CSV tables.")],
    name: Annotated[str, typer.Option(help="What to call the stack.")],
    as_json: JsonFlag = False,
    launch: Annotated[
        list[str] | None,
        typer.Option(help="Launch command or configuration, text or file; one for each log."),
    ] = None,
    nccl: Annotated[
        list[str] | None,
        typer.Option(help="A log of nccl-tests on this cluster; one of a node, one of several."),
    ] = None,
    on: Annotated[str, typer.Option(help="Fabric or scenario that the runs are of.")] = "",
    accelerator: Annotated[str, typer.Option(help="Accelerator, where no scenario is given.")] = "",
    model: Annotated[str, typer.Option(help="Preset of the model, where none is printed.")] = "",
    output: Annotated[str, typer.Option(help="The stack's file; NAME.toml if not given.")] = "",
) -> None:
    """Calibrate the costs to your own cluster and software, from logs or a table of runs."""
    import nest_core as nest
    from nest_core.api.calibrate import calibrate as fit

    require(
        not (not name.strip() or set(name) & set('/\\:*?"<>|') or name.startswith(".")),
        "--name",
        "must be a plain name",
        name,
        "use letters, digits and dashes",
    )
    path = Path(output or f"{name}.toml")
    check_writable(path, "--output")
    result = fit(
        files,
        name,
        launch=launch or (),
        on=on,
        accelerator=accelerator,
        model=model,
        nccl=nccl or (),
    )
    write_file(path, result.toml, "--output")
    fields, following = result.to_json() | {"next_runs": [], "output": str(path)}, ""
    if result.scenario:
        best = nest.next_runs(nest.load(result.scenario, {"stack": str(path.resolve())}))
        fields["next_runs"], following = best.to_json()["runs"], f"\n\n{best}"
    emit(fields, as_json, lambda _: f"{result}{following}\n\nWritten to {path}.")
