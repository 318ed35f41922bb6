"""Stages in Megatron Core's words: how transformer blocks are spread over pipeline chunks.

Megatron Core 0.16 puts the embedding before the first block and the loss after the last, and
knows four ways to say where blocks go (``transformer_config.py``, ``transformer_block.py`` and
``pipeline_parallel_layer_layout.py`` of the release):

* nothing: as many blocks in every chunk;
* embedding and loss counted as one layer each, then as many layers in every chunk;
* other numbers in the first and the last stage, as many blocks in all between;
* a layout string, one letter per layer (``E`` embedding, ``t`` block, ``L`` loss), chunks parted
  by ``|`` in the order in which a micro-batch passes them; ``x*n`` repeats a letter.

`stage_options` picks the first that says a plan's cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from nest_core.costs.plan import Plan

__all__ = ["StageOptions", "layout_string", "stage_options"]


@dataclass(frozen=True, slots=True)
class StageOptions:
    """What says a plan's cuts; at most one of the last three is set.

    Parameters
    ----------
    chunks : int
        Per stage; 1 without interleaving. Part of the layout where there is one.
    ends_counted : bool
        Embedding and loss count as a layer each.
    first, last : int
        Blocks of the first and the last stage where they differ from the rest; 0: unset.
    layout : str
        Empty: unset.
    """

    chunks: int = 1
    ends_counted: bool = False
    first: int = 0
    last: int = 0
    layout: str = ""


def stage_options(plan: Plan) -> StageOptions:
    """The options that say a plan's cuts.

    Examples
    --------
    >>> from nest_core.costs.plan import Point
    >>> def of(pp, cuts):
    ...     point = Point(1, False, 1, pp, 1, 0, ("tp", "cp", "dp", "pp"))
    ...     return stage_options(Plan(point, cuts, ("none",) * pp))
    >>> of(2, (0, 5, 10))
    StageOptions(chunks=1, ends_counted=False, first=0, last=0, layout='')
    >>> of(3, (0, 4, 8, 12)).ends_counted, of(2, (0, 3, 10)).first, of(4, (0, 2, 4, 7, 10)).layout
    (True, 2, 'Et|t*2|t*3|t*2L')
    >>> of(3, (0, 1, 2, 3)).layout  # no layer of the ends is counted away to nothing
    'E|t|L'
    """
    v, pp = plan.point.interleave, plan.point.pp
    blocks = _blocks(plan.cuts)
    if pp == 1 or len(set(blocks)) == 1:
        return StageOptions(chunks=v)
    layers = {b - a for a, b in pairwise(plan.cuts)}
    if len(layers) == 1 and min(blocks) > 0:
        return StageOptions(chunks=v, ends_counted=True)
    middle = set(blocks[1:-1])
    if v == 1 and len(middle) < 2 and min(blocks[0], blocks[-1], *middle) > 0:
        return StageOptions(first=blocks[0], last=blocks[-1])
    return StageOptions(chunks=v, layout=layout_string(plan.cuts))


def layout_string(cuts: tuple[int, ...]) -> str:
    """Chunks as letters.

    Examples
    --------
    >>> layout_string((0, 1, 4, 7, 8))
    'E|t*3|t*3|L'
    """
    parts = [("t" if n == 1 else f"t*{n}") if n else "" for n in _blocks(cuts)]
    parts[0] = "E" + parts[0]
    parts[-1] += "L"
    return "|".join(parts)


def _blocks(cuts: tuple[int, ...]) -> list[int]:
    """Transformer blocks of every chunk; the first layer embeds, the last has the loss."""
    last = cuts[-1] - 1
    return [min(b, last) - max(a, 1) for a, b in pairwise(cuts)]
