"""``nest-studio accept``: nccl-tests for a built fabric, and what their logs say of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["accept"]


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
    from nest_core.documents.files import read_text
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
    emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
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
    header = ["scope", "expected, GB/s", "at least", "measured", "", "where"]
    return "\n".join(
        [
            f"{fields['name']}: bus bandwidth of 4 GiB",
            "",
            table(header, rows),
            "",
            *(f"# {test['scope']}, {test['where']}\n{test['command']}" for test in fields["tests"]),
            "",
            fields["finding"],
            *(f"! {sentence}" for sentence in fields["unmatched"]),
        ]
    )
