"""The one error that people cause.

Every rejected input raises `InputError`; its message is one sentence that names the
field, the rule, the value found and the remedy. Anything else that escapes is a defect.
"""

from __future__ import annotations

import importlib.util
import re
import reprlib

__all__ = ["InputError", "printable", "require", "require_extra", "shortened"]


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
        super().__init__(
            f"{shortened(field, 120)} {shortened(rule, 400)}, but is "
            f"{shortened(_shown(value), 60)}: {shortened(remedy, 1200)}."
        )
        self.field, self.rule, self.value, self.remedy = field, rule, value, remedy

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        return (type(self), (self.field, self.rule, self.value, self.remedy))


def require(holds: object, field: str, rule: str, value: object, remedy: str) -> None:
    """Refuse an input whose rule does not hold; the sentence is that of `InputError`.

    The sentence is put together either way: where it costs or cannot be had of good input, and
    where the type checker is to learn from the rule, raise the error in a branch.

    Examples
    --------
    >>> require(64 % 2 == 0, "clos.radix", "must be even", 64, "use 64")
    """
    if not holds:
        raise InputError(field, rule, value, remedy)


def require_extra(extra: str, packages: tuple[str, ...], what: str) -> None:
    """Refuse to go on where packages of an optional extra are missing that `what` takes."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    require(
        not missing,
        " and ".join(packages),
        f"must be installed to {what}",
        "missing",
        f"pip install nest-studio[{extra}]",
    )


def _shown(value: object) -> str:
    """Return a value's text; `reprlib` bounds depth and length, and very long numbers have none."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    return repr(value[:240]) if isinstance(value, str) else _BOUNDED.repr(value)


def shortened(text: str, most: int) -> str:
    """Return a text as at most so many characters of one line, none of which steers a terminal.

    Examples
    --------
    >>> shortened("a name\\n of \\x1b[31mtwo lines", 20)
    'a name of \\\\x1b[31...'
    """
    # What is far too long is cut first: the rest need not be looked at.
    line = printable(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - 3] + "..."


def printable(text: str) -> str:
    """Return a text whose control characters are escaped, all but line feed and tab.

    Those are the ones that move a terminal's cursor, change its colours or turn the direction of
    writing, and halves of characters, which no terminal can be sent.
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_BOUNDED = reprlib.Repr()
_BOUNDED.maxlist = _BOUNDED.maxtuple = _BOUNDED.maxdict = 8
_BOUNDED.maxother = _BOUNDED.maxstring = 60
