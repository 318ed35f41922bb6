"""``nest-studio inspect``: logs of a cluster, joined into a scenario of it.

What was assumed stands above the scenario as comments, so that it stays where the output is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_studio.commands.output import JsonFlag, emit

__all__ = ["inspect"]


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
    from nest_core.documents.files import read_text

    result = joined([(path.name, read_text(path)) for path in logs], launch, accelerator)
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
    emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
    """Return a scenario file."""
    from nest_core.documents.toml_text import toml_document, toml_key, toml_value

    read = ", ".join(f"{name} ({kind})" for name, kind in fields["logs"].items())
    comments = [f"Read: {read}", "", "Assumed, because no log states it:"]
    comments += [f"- {sentence}" for sentence in fields["assumed"]]
    if fields["compared"]:
        comments += ["", "Measured beside predicted:"]
        comments += [f"- {comparison['sentence']}" for comparison in fields["compared"]]
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
