"""Words that pictures of every kind share, and how wide they are, without an engine of fonts.

Advance widths are Helvetica's, in thousandths of the size, as Adobe publishes them (Core 14 AFM);
the app's own family is narrower, so what fits by this table fits there.
"""

from __future__ import annotations

from collections.abc import Iterable

from nest_core.documents.units import humanise_rate
from nest_core.report.picture.marks import Box, Mark, Words

__all__ = [
    "centred",
    "count_words",
    "first_fitting",
    "plural",
    "rate_words",
    "text_width",
    "wrapped",
]


_WIDTHS = {
    191: "'",
    222: "ijl",
    278: " \u00a0!,./:;Ift",
    333: "()-r",
    355: '"',
    389: "*",
    500: "Jcksvxyz",
    556: "#$?Labdeghnopqu0123456789",
    584: "+<=>×",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1000: "…",
    1015: "@",
}
_OF = {character: width for width, characters in _WIDTHS.items() for character in characters}
_OTHERS = 722
_BOLD = 1.06


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the pixels of one line of text.

    Examples
    --------
    >>> text_width("16 spines", 12.0)
    51.36
    """
    units = sum(_OF.get(character, _OTHERS) for character in text)
    return round(units * size / 1000 * (_BOLD if bold else 1.0), 2)


def wrapped(
    text: str, width: float, size: float, bold: bool = False, max_lines: int = 4
) -> tuple[str, ...]:
    """Return lines no wider than ``width``, broken between words, and no more than allowed.

    Examples
    --------
    >>> wrapped("1,024 links: every leaf to every spine, x 2", 128.0, 12.0)
    ('1,024 links: every leaf', 'to every spine, x 2')
    """
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) <= max_lines:
        return tuple(lines)
    last = lines[max_lines - 1]
    while last and text_width(f"{last} …", size, bold) > width:
        last = last.rpartition(" ")[0]
    return (*lines[: max_lines - 1], f"{last} …".strip())


PLURALS = {"leaf": "leaves", "spine": "spines", "switch": "switches", "core": "core switches"}
PLURALS |= {"edge": "edge switches", "aggregation": "aggregation switches"}


def plural(name: str, count: int) -> str:
    """Return a tier's name for so many of its switches.

    Examples
    --------
    >>> plural("leaf", 1), plural("leaf", 32), plural("edge", 1)
    ('leaf', 'leaves', 'edge switch')
    """
    several = PLURALS.get(name, f"{name}s")
    if count != 1:
        return several
    return several.removesuffix("es") if several.endswith("switches") else name


def count_words(count: int, gone: int, name: str) -> str:
    """Say how many there are, and of how many where some have failed.

    Examples
    --------
    >>> count_words(15, 1, "spine"), count_words(1, 0, "edge")
    ('15 of 16 spines', '1 edge switch')
    """
    total = count + gone
    return f"{count:,}{f' of {total:,}' if gone else ''} {plural(name, total)}"


def rate_words(bytes_per_second: float) -> str:
    """Return a rate without a decimal that says nothing, unbroken.

    Examples
    --------
    >>> rate_words(50e9) == "50\u00a0GB/s"
    True
    """
    number, unit = humanise_rate(bytes_per_second).split()
    return f"{number.removesuffix('.0')}\u00a0{unit}"


def first_fitting(texts: Iterable[str], room: float, *, bold: bool = False) -> str:
    """Return the first text that has room; empty if none.

    Examples
    --------
    >>> first_fitting(("spine 3", "3"), 20.0)
    '3'
    """
    return next((text for text in texts if text_width(text, 12.0, bold) * 1.1 <= room), "")


def centred(box: Box, text: str, look: str = "label") -> list[Mark]:
    """Draw a text in the middle of a box; nothing where there is none."""
    x, y = box.centre
    return [Words(text, look, x, y + 4.2, 12.0, "middle", box.key)] if text else []
