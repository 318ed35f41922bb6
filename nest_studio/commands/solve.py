"""``nest-studio solve``: the exact plan of one of the paper's instance files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["solve"]


def solve(
    instance: Annotated[Path, typer.Argument(help="Instance file of the paper's artifact (JSON).")],
    as_json: JsonFlag = False,
) -> None:
    """Solve an instance file under the paper's published costs."""
    from nest_core.paper.published import read_instance
    from nest_core.paper.published import solve as solve_instance

    emit(solve_instance(read_instance(instance)).to_json(), as_json, _as_text)


def _as_text(solution: Mapping[str, Any]) -> str:
    if not solution["feasible"]:
        return f"infeasible: {solution['reason']}"
    stages = table(
        ["stage", "layers", "devices", "level to producer", "load", "memory, GB"],
        [
            [
                number,
                "{}..{}".format(stage["layers"][0], stage["layers"][1] - 1),
                stage["devices"],
                stage["level_to_producer"],
                f"{stage['load']:.4g}",
                f"{stage['memory_bytes'] / 1e9:.3g}",
            ]
            for number, stage in enumerate(solution["stages"])
        ],
    )
    return (
        f"time per batch     {solution['time_per_batch']:.6g} (the instance's unit)\n"
        f"throughput         {solution['throughput']:.6g}\n"
        f"data parallel      {solution['data_parallel']}\n"
        f"tensor parallel    {solution['tensor_parallel']}\n"
        f"search             {solution['solve_seconds']:.3g} s\n\n{stages}"
    )
