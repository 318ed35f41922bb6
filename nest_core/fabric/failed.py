"""Elements that a specification counts and a site does not have: ``"node 17"``, ``"spine 0"``.

Numbers are those of the whole fabric, from 0, as if nothing had failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from nest_core.documents.errors import InputError

__all__ = ["parse_failed"]


def parse_failed(missing: tuple[str, ...], counts: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Numbers of the failed elements by name, ascending and once each.

    Parameters
    ----------
    missing : tuple of str
        Each a name and a number from 0 (``"leaf 3"``).
    counts : mapping of str to int
        How many elements of each name the whole fabric has.

    Raises
    ------
    InputError
        For what is not a name and a number, an unknown name, or a number out of range.

    Examples
    --------
    >>> parse_failed(("node 3", "node 1", "spine 0"), {"node": 8, "spine": 2})
    {'node': (1, 3), 'spine': (0,)}
    """
    failed: dict[str, set[int]] = {}
    for index, entry in enumerate(missing):
        field = f"missing[{index}]"
        name, _, number = entry.rpartition(" ")
        if name not in counts:
            raise InputError(
                field,
                "must be an element's name and its number",
                entry,
                "write one of " + ", ".join(f'"{tier} 0"' for tier in counts),
            )
        if not (number.isascii() and number.isdigit() and len(number) <= 9):
            raise InputError(
                field, "must end in a whole number", entry, f'write "{name} 0" or another number'
            )
        if int(number) >= counts[name]:
            raise InputError(
                field,
                f"must have a number below {counts[name]}, because numbers start at 0",
                entry,
                "correct the number",
            )
        failed.setdefault(name, set()).add(int(number))
    return {name: tuple(sorted(numbers)) for name, numbers in failed.items()}
