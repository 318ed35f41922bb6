"""Titles and sentences that carry what must be true for them.

A figure's title states a finding. The function that writes it knows which figures it read; it
returns the words with that as data, so that a test can hold every sentence on screen against the
values, by code that shares nothing with the words.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

__all__ = ["Claim", "Fact", "alike", "joined"]


class Fact(NamedTuple):
    """A relation that holds between what has names.

    Parameters
    ----------
    relation : str
        ``"ties"``, ``"less"``, ``"best"``, …
    names : tuple of str
        In the order of the relation: who has less comes first.
    figure : str
        What is compared.
    value : float or None
        How much, as the words say it.
    """

    relation: str
    names: tuple[str, ...]
    figure: str = ""
    value: float | None = None


class Claim(str):
    """Words, and the facts that they state; a string wherever one is wanted.

    Examples
    --------
    >>> claim = Claim("2:1 ties with 4:1", Fact("ties", ("2:1", "4:1"), "usd_per_token"))
    >>> claim.title(), claim.facts[0].relation
    ('2:1 Ties With 4:1', 'ties')
    """

    facts: tuple[Fact, ...]

    def __new__(cls, words: str, *facts: Fact) -> Self:
        """Return the words with their facts."""
        claim = super().__new__(cls, words)
        claim.facts = facts
        return claim

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a pickle makes it from."""
        return str(self), *self.facts


def joined(parts: Iterable[str], separator: str = " ") -> Claim:
    """Return sentences as one, with the facts of all of them."""
    listed = list(parts)
    facts = (fact for part in listed if isinstance(part, Claim) for fact in part.facts)
    return Claim(separator.join(listed), *facts)


def alike(values: Mapping[str, float], words: Callable[[float], str], end: float) -> list[str]:
    """Return the names whose values read like an end of them: a title names all of those.

    Examples
    --------
    >>> alike({"1:1": 7.0, "2:1": 6.99999, "4:1": 6.5}, "{:.3g}".format, 7.0)
    ['1:1', '2:1']
    """
    return [name for name, value in values.items() if words(value) == words(end)]
