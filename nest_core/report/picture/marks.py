"""What a drawn fabric consists of: boxes, lines, words, and what each of them stands for.

Lengths are pixels, from the upper left corner. Every element and every bundle of links has a key
that is the same in all pictures of a fabric (``"spine 3"``, a tile of sixteen ``"spine 16-31"``);
links have the keys of their ends. `stands` says how much of the bill a mark is: pairs of a class
(``"spine"``, ``"node"``, ``"device"``, ``"links spine"``) and a number. Summed over the marks of a
picture, those whose look says ``gone`` apart, they are the fabric's inventory; what repeats others
stands for nothing.

Looks are words of the style sheet in `nest_core.report.picture.svg`, several divided by blanks.

Widths of text need no engine of fonts: advance widths are Helvetica's, in thousandths of the size,
as Adobe publishes them (Core 14 AFM); the app's own family is narrower, so what fits by this table
fits there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nest_core.documents.units import humanise_rate

__all__ = [
    "Band",
    "Box",
    "Drawn",
    "Line",
    "Mark",
    "Point",
    "Stands",
    "Swatch",
    "TierLabel",
    "Words",
    "band",
    "between",
    "centred",
    "count_words",
    "first_fitting",
    "plural",
    "rate_words",
    "rectangle",
    "span_words",
    "text_width",
    "wrapped",
]

Point = tuple[float, float]
Stands = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Box:
    """An element, a tile of several, or a frame around others.

    Parameters
    ----------
    key, look : str
        Plates and badges, which are no element, have no key.
    x, y, width, height : float
        Upper left corner and size.
    inside : str
        Key of the box that it is nested in; else it overlaps no other.
    stands : Stands
    head, foot : float or None
        Of a switch: width of its upper and lower edge, that is capacity up and down, where they
        are not both ``width``. They are centred; the larger one is ``width``.
    radius : float
        Of its corners.
    """

    key: str
    look: str
    x: float
    y: float
    width: float
    height: float
    inside: str = ""
    stands: Stands = ()
    head: float | None = None
    foot: float | None = None
    radius: float = 0.0

    @property
    def centre(self) -> Point:
        """Its middle."""
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def outline(self) -> tuple[Point, Point, Point, Point]:
        """Its corners: the upper edge from left to right, the lower from right to left."""
        middle, bottom = self.x + self.width / 2, self.y + self.height
        head = (self.width if self.head is None else self.head) / 2
        foot = (self.width if self.foot is None else self.foot) / 2
        return (
            (middle - head, self.y),
            (middle + head, self.y),
            (middle + foot, bottom),
            (middle - foot, bottom),
        )


@dataclass(frozen=True, slots=True)
class Band:
    """Many links as one area: parallel ones at their true width, or a mesh too dense for lines.

    Parameters
    ----------
    key, look : str
    points : tuple of Point
        The polygon.
    ends : tuple of str
        Keys of the boxes that it joins; none for a mesh between two whole rows, and for areas that
        are no links (the tint of a rail, the beam of a lens).
    stands : Stands
    """

    key: str
    look: str
    points: tuple[Point, ...]
    ends: tuple[str, ...] = ()
    stands: Stands = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One link, or the links between one pair of boxes.

    Parameters
    ----------
    key, look : str
    points : tuple of Point
        From the first end to the last.
    width : float
    ends : tuple of str
        Keys of the boxes that it ends on; none for what is no link (a bracket, a cross).
    stands : Stands
    opacity : float
    """

    key: str
    look: str
    points: tuple[Point, ...]
    width: float
    ends: tuple[str, ...] = ()
    stands: Stands = ()
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Words:
    """One line of text.

    Parameters
    ----------
    text, look : str
    x, y : float
        Of its anchor on the base line.
    size : float
        Of the font; 12 or more.
    anchor : {"start", "middle", "end"}
    key : str
        Of what it names, so that pointing at the one lights the other.
    """

    text: str
    look: str
    x: float
    y: float
    size: float = 12.0
    anchor: Literal["start", "middle", "end"] = "start"
    key: str = ""


Mark = Box | Band | Line | Words


@dataclass(frozen=True, slots=True)
class Swatch:
    """An entry of the legend.

    Parameters
    ----------
    form : {"box", "line", "funnel", "ramp"}
    look, words : str
    """

    form: Literal["box", "line", "funnel", "ramp"]
    look: str
    words: str


@dataclass(frozen=True, slots=True)
class TierLabel:
    """The words of one tier or one class of links, which stand beside its part of the drawing.

    Parameters
    ----------
    what : str
        Class of the bill: ``"spine"``, ``"links spine"``, ``"node"``.
    count : int
        How many there are, by the inventory.
    head : str
        ``"16 spines"``; empty where words alone are enough.
    words : tuple of str
        Further lines, each wrapped where it is too long.
    top, bottom : float
        The part of the drawing.
    gone : int
        How many more there were if nothing had failed.
    ratio : float or None
        Oversubscription, down : up, of what the links climb from.
    """

    what: str
    count: int
    head: str
    words: tuple[str, ...]
    top: float
    bottom: float
    gone: int = 0
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture: marks in the order in which they are painted, and the same in words.

    Parameters
    ----------
    title, subtitle : str
        The finding; what one line and one width mean.
    width, height : float
    marks : tuple of Mark
        All of them, title, gutter and legend included.
    legend : tuple of Swatch
    labels : tuple of TierLabel
        Top tier first: the table for who does not see the picture.
    """

    title: str
    subtitle: str
    width: float
    height: float
    marks: tuple[Mark, ...]
    legend: tuple[Swatch, ...] = ()
    labels: tuple[TierLabel, ...] = ()


def between(end: str, other: str) -> str:
    """Return the key of the links between two boxes.

    Examples
    --------
    >>> between("leaf 3", "spine 0")
    'leaf 3 | spine 0'
    """
    return f"{end} | {other}"


def rectangle(x: float, y: float, width: float, height: float) -> tuple[Point, ...]:
    """Return its four corners."""
    return ((x, y), (x + width, y), (x + width, y + height), (x, y + height))


def band(
    of: str,
    ends: tuple[str, str],
    edges: tuple[tuple[float, float, float], tuple[float, float, float]],
    counts: tuple[int, int],
    look: str,
) -> Iterator[Band]:
    """Draw parallel links as one area, what has failed of them at the right.

    Parameters
    ----------
    of : str
        Class of the bill.
    ends : (str, str)
        Keys of the lower and the upper box.
    edges : ((float, float, float), (float, float, float))
        Left end, height and length of the lower and the upper edge.
    counts : (int, int)
        Links that are left, and those that have failed.
    """
    (x, bottom, length), (upper, top, wide) = edges
    start = 0.0
    for part, count in ((look, counts[0]), ("bundle gone", counts[1])):
        if count:
            end = start + count / sum(counts)
            corners = (
                (upper + start * wide, top),
                (upper + end * wide, top),
                (x + end * length, bottom),
                (x + start * length, bottom),
            )
            yield Band(between(*ends), part, corners, ends, ((of, count),))
            start = end


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
    return round(
        sum(_OF.get(character, _OTHERS) for character in text)
        * size
        / 1000
        * (_BOLD if bold else 1.0),
        2,
    )


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


PLURALS = {
    "leaf": "leaves",
    "spine": "spines",
    "switch": "switches",
    "core": "core switches",
    "edge": "edge switches",
    "aggregation": "aggregation switches",
}


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


def span_words(counts: Sequence[int]) -> str:
    """Return the fewest and the most, once where they are the same.

    Examples
    --------
    >>> span_words([4, 4]), span_words([3, 4])
    ('4', '3 to 4')
    """
    return " to ".join(dict.fromkeys(f"{count:,}" for count in (min(counts), max(counts))))


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
