"""The one error that people cause.

Every rejected input raises `InputError`; its message is one sentence that names the
field, the rule, the value found and the remedy. Anything else that escapes is a defect.
"""

from __future__ import annotations

import reprlib

__all__ = ["InputError"]


class InputError(ValueError):
    """Input that breaks a stated rule.

    Parameters
    ----------
    field : str
        Dotted name of the input, as the person wrote it (``clos.oversubscription[0]``).
    rule : str
        What must hold, as a clause that follows the field (``must be positive``).
    value : object
        What was found; shown shortened.
    remedy : str
        What to do, as an imperative clause without a full stop.

    Examples
    --------
    >>> print(InputError("clos.radix", "must be even", 63, "use 64"))
    clos.radix must be even, but is 63: use 64.
    """

    def __init__(self, field: str, rule: str, value: object, remedy: str) -> None:
        sentence = f"{_short(field, 120)} {rule}, but is {_short(_shown(value), 60)}: {remedy}."
        super().__init__(" ".join(sentence.split()))
        self.field = field
        self.rule = rule
        self.value = value
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, object, str]]:
        return (type(self), (self.field, self.rule, self.value, self.remedy))


def _shown(value: object) -> str:
    """A value's text; `reprlib` bounds depth and length, and very long numbers have none."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    return repr(value) if isinstance(value, str) else _BOUNDED.repr(value)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


_BOUNDED = reprlib.Repr()
_BOUNDED.maxlist = _BOUNDED.maxtuple = _BOUNDED.maxdict = 8
_BOUNDED.maxother = _BOUNDED.maxstring = 60
