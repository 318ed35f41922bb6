"""Words with numbers in them: ``{idle:percent}`` becomes ``42.9 %``.

Between braces stands a name, and after a colon the form in which people read its number. Nothing
else is done there: a file of somebody else's cannot compute or look up anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from nest_core.documents.errors import InputError
from nest_core.documents.units import humanise_bytes, humanise_seconds, percent
from nest_core.teaching.lessons.lesson import Value

__all__ = ["FORMS", "fill", "names_in", "told"]

Number = Value

_PLACE = re.compile(r"\{([^{}:]+)(?::([^{}:]*))?\}")

FORMS: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "bytes": humanise_bytes,
    "seconds": humanise_seconds,
    "count": lambda value: f"{value:,.0f}",
    "g": lambda value: f"{value:g}",
}
"""How a number is written; without a form with three digits, with a digit as form with as many."""


def names_in(text: str) -> tuple[str, ...]:
    """Names between braces.

    Examples
    --------
    >>> names_in("{pp} stages, {idle:percent} idle")
    ('pp', 'idle')
    """
    return tuple(match[1].strip() for match in _PLACE.finditer(text))


def fill(text: str, number: Callable[[str], Value], where: str = "words") -> str:
    """A text with its numbers.

    Parameters
    ----------
    text : str
    number : callable (str) -> int, float or str
        What a name stands for; refuses those that it does not know.
    where : str
        What messages call the text.

    Examples
    --------
    >>> fill("{pp} stages: {idle:percent}", {"pp": 4, "idle": 3 / 7}.__getitem__)
    '4 stages: 42.9 %'
    """
    return _PLACE.sub(lambda found: told(number(found[1].strip()), found[2], where), text)


def told(value: Value, form: str | None = None, where: str = "words") -> str:
    """A value as people read it.

    Examples
    --------
    >>> told(1234.5), told(1234.5, "5"), told(0.5, "percent"), told(7), told("tp 8")
    ('1.23e+03', '1234.5', '50 %', '7', 'tp 8')
    """
    if isinstance(value, str) or (form is None and isinstance(value, int)):
        return str(value)
    if form is None:
        return f"{value:.3g}"
    if form.isdigit():
        return f"{value:.{int(form[:2])}g}"
    if form not in FORMS:
        raise InputError(where, "must use a form that there is", form, "use " + ", ".join(FORMS))
    return FORMS[form](value)
