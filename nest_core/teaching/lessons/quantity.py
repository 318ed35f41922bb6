"""Units in which people answer, answers as they write them, and words with numbers in them.

An answer may have a unit of the same kind as the one that was asked for, a decimal comma, and
marks between thousands. Where it can be read in two ways, both count. In words, ``{idle:percent}``
becomes ``42.9 %``: between braces stands a name, and after a colon the form in which people read
its number. Nothing else is done there: a file of somebody else's cannot compute or look up
anything.
"""

import re
from collections.abc import Callable, Mapping

from nest_core.documents import InputError, humanise_bytes, humanise_seconds, percent, require
from nest_core.teaching.lessons.lesson import Value

__all__ = ["FORMS", "UNITS", "fill", "names_in", "readings", "scale", "told"]

UNITS: Mapping[str, Mapping[str, float]] = {
    "share": {"%": 0.01, "percent": 0.01},
    "time": {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "min": 60.0, "h": 3600.0},
    "size": {
        "B": 1.0,
        "bytes": 1.0,
        "kB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "TB": 1e12,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "TiB": 2.0**40,
    },
    "rate": {"B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12},
}
"""SI per unit, by kind; what stands nowhere here is a count of its own."""

_WRITTEN = re.compile(r"([+\u2212-]?[\d.,'\u2019]*\d[\d.,]*(?:[eE][+\u2212-]?\d+)?)\s*(.*)")


def scale(unit: str) -> float:
    """SI per unit; 1 for counts.

    Examples
    --------
    >>> scale("%"), scale("GiB") == 2**30, scale("micro-batches")
    (0.01, True, 1.0)
    """
    return next((units[unit] for units in UNITS.values() if unit in units), 1.0)


def readings(text: str, unit: str, where: str = "answer") -> tuple[float, ...]:
    """Return what an answer can mean, in ``unit``; the usual reading first.

    Parameters
    ----------
    text : str
        As a student wrote it.
    unit : str
        That was asked for; counts where none is written.
    where : str
        What messages call it.

    Raises
    ------
    InputError
        If it is no number, or has a unit of another kind.

    Examples
    --------
    >>> readings("42,9 %", "%"), readings("1.5 s", "ms"), readings("1,234", "ms")
    ((42.9,), (1500.0,), (1.234, 1234.0))
    >>> readings("0.429", "%")
    (0.429, 42.9)
    """
    match = _WRITTEN.fullmatch(re.sub(r"(?<=\d)[\s_](?=\d{3}\b)", "", " ".join(text.split())))
    numbers = _numbers(match[1].replace("\u2212", "-")) if match else ()
    if not match or not numbers:
        raise InputError(where, "must be a number", text, f"write one in {unit or 'digits'}")
    written = match[2].rstrip(".").strip()
    if not written or written.lower() == unit.lower():
        is_bare = unit == "%" and not written
        return (*numbers, *(100 * number for number in numbers if is_bare and abs(number) <= 1))
    kind = next((units for units in UNITS.values() if unit in units), {unit: 1.0})
    near = kind.get(written) or {name.lower(): size for name, size in kind.items()}.get(
        written.lower()
    )
    if near is None:
        rule = f"must be in {unit}" if unit else "must be a plain number"
        raise InputError(where, rule, text, "use " + ", ".join(kind) if unit else "leave it out")
    return tuple(number * near / scale(unit) for number in numbers)


def _numbers(text: str) -> tuple[float, ...]:
    """Return a number's readings: the last mark of two kinds is the decimal one."""
    plain = text.replace("'", "").replace("\u2019", "")
    marks = re.findall(r"[.,]", plain)
    if len(set(marks)) == 2:
        tries = [plain.replace("." if marks[-1] == "," else ",", "").replace(",", ".")]
    elif len(marks) > 1:
        tries = [plain.replace(marks[0], "")]
    else:
        tries = [plain.replace(",", ".")]
        if re.fullmatch(r"[+-]?\d{1,3},\d{3}", plain):
            tries.append(plain.replace(",", ""))
    try:
        return tuple(float(number) for number in tries)
    except ValueError:  # several decimal marks
        return ()


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
    """Return a text with its numbers.

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
    return _PLACE.sub(lambda match: told(number(match[1].strip()), match[2], where), text)


def told(value: Value, form: str | None = None, where: str = "words") -> str:
    """Return a value as people read it.

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
    require(form in FORMS, where, "must use a form that there is", form, "use " + ", ".join(FORMS))
    return FORMS[form](value)
