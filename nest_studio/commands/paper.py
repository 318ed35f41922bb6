"""``nest-studio paper``: the paper's figures and tables computed again, beside what is printed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.paper import Reproduction

__all__ = ["paper"]

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
    emit(reproduction.to_json(), as_json, lambda _: _as_text(reproduction))


def _as_text(found: Reproduction) -> str:
    blocks = [f"{found.title}. {found.printed}"]
    for part in found.tables:
        header = list(part.words[0])
        blocks.append(
            f"{part.title}\n" + table(header, [[row[key] for key in header] for row in part.words])
        )
    blocks += ["\n".join(textwrap.wrap(sentence, _WIDTH)) for sentence in found.paragraph]
    return "\n\n".join(blocks)
