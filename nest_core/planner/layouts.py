"""Where interleaved plans may cut the chain: virtual stages in even and in uneven layouts."""

from functools import lru_cache
from itertools import accumulate

__all__ = ["even_patterns", "uneven_patterns"]

Cuts = tuple[int, ...]


@lru_cache(maxsize=65_536)
def even_patterns(layers: int, pp: int, interleave: int) -> tuple[Cuts, ...]:
    """Cuts of interleaved plans: virtual stages of equally many blocks, or of equally many layers.

    Embedding and head join the first and the last virtual stage, or count as a layer each, as
    Megatron-LM's ``--account-for-embedding-in-pipeline-split`` and its twin for the loss do.

    Examples
    --------
    >>> even_patterns(10, 2, 2)
    ((0, 3, 5, 7, 10),)
    >>> even_patterns(8, 2, 2), even_patterns(9, 2, 2)
    (((0, 2, 4, 6, 8),), ())
    """
    virtual_stages, blocks = pp * interleave, layers - 2
    patterns = []
    if blocks > 0 and blocks % virtual_stages == 0:
        blocks_per_stage = blocks // virtual_stages
        patterns.append((0, *range(1 + blocks_per_stage, layers - 1, blocks_per_stage), layers))
    if layers % virtual_stages == 0:
        patterns.append(tuple(range(0, layers + 1, layers // virtual_stages)))
    return tuple(dict.fromkeys(patterns))


@lru_cache(maxsize=4_096)
def uneven_patterns(layers: int, pp: int, interleave: int) -> tuple[Cuts, ...]:
    """Cuts of uneven layouts, as ``--pipeline-model-parallel-layout`` is written by hand.

    Every virtual stage but the first and the last holds equally many blocks, and each of those
    from none to one more; or virtual stages differ by at most one block, or one layer with
    embedding and head counted, the larger ones being the first, the last, or spread evenly.

    Examples
    --------
    >>> uneven_patterns(9, 2, 2)[:4]  # lighter ends
    ((0, 1, 3, 5, 9), (0, 2, 4, 6, 9), (0, 3, 5, 7, 9), (0, 4, 6, 8, 9))
    >>> uneven_patterns(9, 2, 2)[4:]  # nine layers in four parts
    ((0, 1, 4, 7, 9), (0, 2, 5, 8, 9))
    """
    parts, blocks = pp * interleave, layers - 2
    patterns = [
        _cuts([first, *[inner] * (parts - 2), ends - first], joined=True)
        for inner in range(max(1, -(-(blocks - 2) // parts)), blocks // (parts - 2) + 1)
        for ends in [blocks - inner * (parts - 2)]
        for first in range(max(0, ends - inner - 1), min(ends, inner + 1) + 1)
    ]
    for joined in (True, False):
        small, more = divmod(blocks if joined else layers, parts)
        first = [part < more for part in range(parts)]
        spread = [(part + 1) * more // parts > part * more // parts for part in range(parts)]
        patterns += [
            _cuts([small + larger for larger in placed], joined=joined)
            for placed in (first, first[::-1], spread)
        ]
    even = even_patterns(layers, pp, interleave)
    nonempty = (cuts for cuts in patterns if len(set(cuts)) == len(cuts))
    return tuple(cuts for cuts in dict.fromkeys(nonempty) if cuts not in even)


def _cuts(sizes: list[int], *, joined: bool) -> Cuts:
    """Cuts between virtual stages of so many blocks, or layers where the ends are not joined."""
    sizes[0] += joined
    sizes[-1] += joined
    return (0, *accumulate(sizes))
