"""Cables of one tier as arrays: which port of what is joined to which, and how far apart they are.

Kinds of fabrics state theirs (`cables_switched`, `cables_direct`, `cables_drawn`);
`nest_core.bill.cables` turns them into rows. Ports of switches are numbered from 0, down ports
first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nest_core.bill.inventory import LinkCount
from nest_core.fabric import IntArray

__all__ = ["Bundle", "Side", "numbered"]


@dataclass(frozen=True, slots=True)
class Side:
    """One end of every cable of a bundle.

    Parameters
    ----------
    name : callable (int) -> str
        What the element of a number is called.
    element, port : int array (cables,)
    role : str
        Of switches as `SwitchCount` has it, which tells how many ports a cage has; else empty.
    port_name : callable (int) -> str
        Of elements other than switches.
    """

    name: Callable[[int], str]
    element: IntArray
    port: IntArray
    role: str = ""
    port_name: Callable[[int], str] = "port {}".format


@dataclass(frozen=True, slots=True)
class Bundle:
    """Cables of one tier.

    Parameters
    ----------
    link : LinkCount
        Tier, rate and what the ends plug into; its lengths are not read.
    a, b : Side
        Below and above.
    metres : int array (cables,)
    """

    link: LinkCount
    a: Side
    b: Side
    metres: IntArray


def numbered(word: str) -> Callable[[int], str]:
    """Names as ``missing`` has them: leaf 3.

    Examples
    --------
    >>> numbered("leaf")(3)
    'leaf 3'
    """
    return f"{word} {{}}".format
