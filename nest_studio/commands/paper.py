"""Commands on the paper: ``paper`` and ``solve``."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nest_core.documents import table
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.paper import Reproduction

__all__ = ["paper", "solve"]

_WIDTH = 100


def paper(
    name: Annotated[
        str, typer.Argument(help="figure1 to 3, 5 to 11, table1 to 7, section5 or algorithm1.")
    ],
    costs: Annotated[
        Literal["published", "own"], typer.Option(help="The artifact's costs, or this studio's.")
    ] = "published",
    as_json: JsonFlag = False,
) -> None:
    """Compute a figure or table of the paper again."""
    from nest_core.paper import reproduce

    reproduction = reproduce(name, costs)
    emit(reproduction.to_json(), as_json, lambda _: _paper_text(reproduction))


def _paper_text(reproduction: Reproduction) -> str:
    blocks = [f"{reproduction.title}. {reproduction.printed}"]
    for part in reproduction.tables:
        header = list(part.words[0])
        blocks.append(
            f"{part.title}\n" + table(header, [[row[key] for key in header] for row in part.words])
        )
    blocks += ["\n".join(textwrap.wrap(sentence, _WIDTH)) for sentence in reproduction.paragraph]
    return "\n\n".join(blocks)


def solve(
    instance: Annotated[Path, typer.Argument(help="Instance file of the paper's artifact (JSON).")],
    as_json: JsonFlag = False,
) -> None:
    """Solve an instance file under the paper's published costs."""
    from nest_core.paper.published import read_instance
    from nest_core.paper.published import solve as solve_instance

    emit(solve_instance(read_instance(instance)).to_json(), as_json, _solve_text)


def _solve_text(solution: Mapping[str, Any]) -> str:
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
