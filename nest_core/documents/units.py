"""Conversion between the units people write and the SI units used inside.

Everywhere else times are seconds, sizes bytes, rates bytes per second, work FLOP.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

__all__ = [
    "DAY_S",
    "GB",
    "GIB",
    "MICROSECOND",
    "NOTHING",
    "TERA",
    "agreeing",
    "and_others",
    "at_least_gib",
    "at_most_percent",
    "capital",
    "ceil_gib",
    "chance_percent",
    "does",
    "figure_of",
    "format_days",
    "format_money",
    "format_ratio",
    "from_gbps_bytes",
    "from_gib",
    "from_microseconds",
    "gigabytes",
    "humanise",
    "humanise_bytes",
    "humanise_power",
    "humanise_rate",
    "humanise_seconds",
    "join_words",
    "microseconds",
    "parse_ratio",
    "percent",
    "percent_beside",
    "percent_column",
    "plural",
    "signed",
    "signed_percent",
    "three_digits",
    "to_gib",
]

GB = 1e9
GIB = float(2**30)
TERA = 1e12
MICROSECOND = 1e-6
DAY_S = 86_400.0

_DECIMAL = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
_BINARY = [(2.0**50, "PiB"), (2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")]
_TIME = [
    (86400.0, "d"),
    (3600.0, "h"),
    (60.0, "min"),
    (1.0, "s"),
    (1e-3, "ms"),
    (1e-6, "µs"),
    (1e-9, "ns"),
]

_RATIO = re.compile(r"(\d+(?:\.\d+)?):1")

_COUNTS = "two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen"
_PLURAL = re.compile(rf"(?:{_COUNTS}|[2-9]|\d\d+)(?: [\w-]+)* [\w-]*[a-zA-Z]s", re.IGNORECASE)
"""Names such as ``two planes``; a name that says no count is one thing."""

NOTHING = "–"
"""Stands where a figure or a cell has no value."""


def capital(text: str) -> str:
    """Return a text with a capital first, as at the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def from_gbps_bytes(gigabytes_per_second: float) -> float:
    """GB/s (1e9 bytes, one direction) to bytes/s."""
    return gigabytes_per_second * GB


def from_microseconds(microseconds: float) -> float:
    """Microseconds to seconds."""
    return microseconds * MICROSECOND


def from_gib(gibibytes: float) -> float:
    """GiB (2^30 bytes) to bytes."""
    return gibibytes * GIB


def to_gib(size_bytes: float) -> float:
    """Bytes to GiB (2^30 bytes)."""
    return size_bytes / GIB


def ceil_gib(size_bytes: float) -> float:
    """Bytes to GiB, rounded up to a tenth: enough when it is read back."""
    return math.ceil(size_bytes / GIB * 10 - 1e-9) / 10


def at_least_gib(size_bytes: float) -> str:
    """`ceil_gib` in words."""
    return f"{ceil_gib(size_bytes):,.1f} GiB"


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def humanise(value: float, unit: str = "") -> str:
    """Return a figure with three significant digits and a decimal prefix: ``12.3 k`` + unit."""
    return ((_scaled(value, _DECIMAL) or f"{value:.3g} ") + unit).rstrip()


def _scaled(value: float, scales: Sequence[tuple[float, str]]) -> str:
    """Return a figure in the first unit that it reaches; empty where it reaches none."""
    return next(
        (f"{_three_digits(value / scale)} {unit}" for scale, unit in scales if abs(value) >= scale),
        "",
    )


def humanise_bytes(size_bytes: float) -> str:
    """Bytes as KiB … PiB with three significant digits."""
    return _scaled(size_bytes, _BINARY) or f"{size_bytes:.0f} B"


def humanise_power(watts: float) -> str:
    """Return watts with three significant digits: ``92.7 kW``."""
    return humanise(watts, "W")


def humanise_rate(bytes_per_second: float) -> str:
    """Bytes per second with a decimal prefix, as network vendors write it."""
    return humanise(bytes_per_second, "B/s")


def humanise_seconds(seconds: float | None) -> str:
    """Seconds as ns … days with three significant digits."""
    return (
        NOTHING
        if seconds is None
        else _scaled(seconds, _TIME) or (f"{seconds * 1e9:.3g} ns" if seconds else "0 s")
    )


def format_ratio(ratio: float, digits: int = 3) -> str:
    """Return an oversubscription, down to up, as it is spoken of.

    Examples
    --------
    >>> format_ratio(4.0), format_ratio(2.5), format_ratio(16 / 15)
    ('4:1', '2.5:1', '1.07:1')
    """
    return f"{ratio:.{digits}g}:1"


def parse_ratio(text: str) -> float | None:
    """Return the oversubscription that a text such as ``2.5:1`` states; None if it states none."""
    match = _RATIO.fullmatch(text)
    return float(match[1]) if match else None


def percent(share: float | None) -> str:
    """Return a share as a percentage with three significant digits at most; below 5e-6 it is 0.

    Examples
    --------
    >>> percent(0.1397), percent(-0.5), percent(0.00044), percent(1e-9), percent(31.4159)
    ('14 %', '−50 %', '0.044 %', '0 %', '3,142 %')
    """
    if share is None:
        return NOTHING
    size = 100 * abs(share)
    return (
        "0 %"
        if size < 5e-4
        else f"{'−' if share < 0 else ''}{f'{size:,.0f}' if size >= 999.5 else f'{size:.3g}'} %"
    )


def at_most_percent(share: float) -> str:
    """Return a percentage of three digits that a share does not exceed, but by noise of rounding.

    Examples
    --------
    >>> at_most_percent(0.012341), at_most_percent(0.02), at_most_percent(1e-12)
    ('1.24 %', '2 %', '0 %')
    """
    size = max(share, 5e-6) if share > 1e-9 else 0.0
    step = 10.0 ** (math.floor(math.log10(size or 1.0)) - 2)
    return percent(step * math.ceil(size / step - 1e-9))


def percent_beside(share: float, bound: float) -> str:
    """Return a percentage of one decimal, of more where it else were on a bound's other side.

    Examples
    --------
    >>> percent_beside(0.01996, 0.02), percent_beside(0.0123, 0.02), percent_beside(0.02, 0.02)
    ('1.996 %', '1.2 %', '2.0 %')
    """
    fits = (
        text
        for text in (f"{100 * share:.{digits}f}" for digits in range(1, 18))
        if (float(text) / 100 < bound) == (share < bound)
    )
    return f"{next(fits, f'{100 * share:.1f}')} %".replace("-", "−")


def percent_column(shares: Iterable[float | None]) -> Callable[[float | None], str]:
    """Return how the shares of one column are written, all with equal decimals.

    The largest has three significant digits, the least one at least; below 5e-6 a share is 0.

    Examples
    --------
    >>> list(map(percent_column((0.351, 0.35, None)), (0.351, 0.35, None)))
    ['35.1 %', '35.0 %', '–']
    >>> list(map(percent_column((-0.5, 0.00044, 0.0)), (-0.5, 0.00044, 0.0)))
    ['−50.00 %', '0.04 %', '0.00 %']
    """
    sizes = [100 * abs(share) for share in shares if share and abs(share) >= 5e-6] or [100.0]
    digits = max(0, 2 - math.floor(math.log10(max(sizes))), -math.floor(math.log10(min(sizes))))
    return lambda share: (
        NOTHING if share is None else f"{100 * share:z,.{digits}f} %".replace("-", "−")
    )


def chance_percent(chance: float) -> str:
    """Return a chance in whole percents; one that is not certain never as 0 or 100 %.

    Examples
    --------
    >>> chance_percent(0.623), chance_percent(0.9999), chance_percent(1.0), chance_percent(1e-4)
    ('62 %', 'over 99 %', '100 %', 'under 1 %')
    """
    return (
        "under 1 %"
        if 0 < chance < 0.01
        else "over 99 %"
        if 0.99 < chance < 1
        else f"{100 * chance:.0f} %"
    )


def format_money(usd: float) -> str:
    """Return US dollars with three significant digits.

    Examples
    --------
    >>> format_money(6_496_000), format_money(650), format_money(0.35)
    ('$6.50 M', '$650', '$0.350')
    """
    return f"${_scaled(usd, _DECIMAL) or _three_digits(usd)}".rstrip()


def format_days(days: float) -> str:
    """Return a number of days with three significant digits; less than a day in smaller units.

    Examples
    --------
    >>> format_days(152.4), format_days(12345.0), format_days(0.25)
    ('152 days', '12,345 days', '6.00 h')
    """
    return humanise_seconds(86_400 * days) if days < 1 else f"{three_digits(days)} days"


def three_digits(value: float) -> str:
    """Return a figure with three significant digits, also noughts at its end.

    Examples
    --------
    >>> three_digits(1.5), three_digits(152.0), three_digits(12345.6)
    ('1.50', '152', '12,346')
    """
    return f"{value:#.3g}".rstrip(".") if value < 1000 else f"{value:,.0f}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return a count and its noun.

    Examples
    --------
    >>> plural(1, "host"), plural(1200, "switch", "switches")
    ('1 host', '1,200 switches')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def and_others(names: Sequence[str], noun: str = "other") -> str:
    """Return two names, or the first and how many others there are.

    Examples
    --------
    >>> and_others(["4:1"]), and_others(["4:1", "8:1"]), and_others(["4:1", "8:1", "16:1"])
    ('4:1', '4:1 and 8:1', '4:1 and 2 others')
    """
    return join_words(names) if len(names) < 3 else f"{names[0]} and {plural(len(names) - 1, noun)}"


def agreeing(name: str, verb: str) -> str:
    """Return a verb as a design's name takes it, which may be a plural.

    Examples
    --------
    >>> agreeing("two planes", "reaches"), agreeing("2:1", "takes"), agreeing("8 NICs", "is")
    ('reach', 'takes', 'are')
    """
    if not _PLURAL.fullmatch(name):
        return verb
    return {"is": "are", "has": "have"}.get(verb) or re.sub(r"(?<=ch)es$|s$", "", verb)


def does(name: str, verb: str) -> str:
    """Return a design's name and what it does; see `agreeing`."""
    return f"{name} {agreeing(name, verb)}"


def join_words(words: Collection[str], conjunction: str = "and") -> str:
    """Return words with commas, a conjunction before the last.

    Examples
    --------
    >>> join_words(["leaf", "spine", "core"]), join_words(["leaf"]), join_words([])
    ('leaf, spine and core', 'leaf', 'none')
    """
    if not words:
        return "none"
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def signed(value: float, words: Callable[[float], str]) -> str:
    """Return a difference with its sign before the words for its size.

    Examples
    --------
    >>> signed(-0.5, humanise_seconds), signed(2.0, humanise_seconds)
    ('−500 ms', '+2.00 s')
    """
    return f"{'+' if value > 0 else '−'}{words(abs(value))}"


def signed_percent(share: float, digits: int = 1) -> str:
    """Return a relative difference with its sign; what rounds to nothing has none.

    Examples
    --------
    >>> signed_percent(0.0312), signed_percent(-0.5), signed_percent(-0.00004)
    ('+3.1 %', '−50.0 %', '0 %')
    """
    return (
        "0 %"
        if abs(100 * share) < 0.5 * 10**-digits
        else f"{100 * share:+.{digits}f} %".replace("-", "−")
    )


@lru_cache(maxsize=4096)
def gigabytes(bytes_per_second: float) -> float:
    """GB/s, the shortest figure that is read back as the same rate.

    Examples
    --------
    >>> gigabytes(12.5e9), gigabytes(450e9 / 7)
    (12.5, 64.28571428571429)
    """
    return _inverse(bytes_per_second, bytes_per_second / 1e9, from_gbps_bytes)


@lru_cache(maxsize=4096)
def microseconds(seconds: float) -> float:
    """Microseconds, the shortest figure that is read back as the same time.

    Examples
    --------
    >>> microseconds(0.6e-6), microseconds(0.0)
    (0.6, 0.0)
    """
    return _inverse(seconds, seconds / 1e-6, from_microseconds)


def _inverse(value: float, rough: float, convert: Callable[[float], float]) -> float:
    for digits in range(1, 18):
        short = float(f"{rough:.{digits}g}")
        if convert(short) == value:
            return short
    # Multiplication skips some values; then the nearest has to do.
    near = (math.nextafter(rough, -math.inf), math.nextafter(rough, math.inf))
    return next((candidate for candidate in near if convert(candidate) == value), rough)


def figure_of(value: object) -> float:
    """Return a number of a file; NaN for what is none."""
    with suppress(ValueError, OverflowError):
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value) if str(value).isascii() else math.nan
    return math.nan
