"""What readers and writers of fabric files share: assumptions, results, sources of text.

A reader turns a `Source` into a document of the studio's own schema and notes; a writer turns a
fabric into `Exported`. Figures in documents are human units (GB/s, us), as in the files.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.fabric import MAX_DEVICES

__all__ = ["Assumed", "Exported", "Format", "Imported", "Source"]

Document = dict[str, Any]

LEAST_GBPS, MOST = 1e-9, 1e18
"""The bounds of `nest_core.documents.schema` for rates (GB/s) and, above, for latencies (us)."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What files about hosts and switches do not state.

    Parameters
    ----------
    devices_per_node : int
        Devices of one host.
    intra_bandwidth_GBps : float
        One device inside its host, one direction, GB/s.
    intra_latency_us : float
        Between two devices of a host, one way, microseconds.
    link_bandwidth_GBps : float
        One link where the file states no rate, one direction, GB/s.
    hop_latency_us : float
        One link and the switch behind it, microseconds.
    """

    devices_per_node: int = 8
    intra_bandwidth_GBps: float = 450.0
    intra_latency_us: float = 0.5
    link_bandwidth_GBps: float = 50.0
    hop_latency_us: float = 0.6

    def __post_init__(self) -> None:
        if not 1 <= self.devices_per_node <= MAX_DEVICES:
            raise InputError(
                "devices_per_node",
                f"must be a whole number from 1 to {MAX_DEVICES:,}",
                self.devices_per_node,
                "correct it",
            )
        for field in ("intra_bandwidth_GBps", "link_bandwidth_GBps"):
            if not LEAST_GBPS <= getattr(self, field) <= MOST:
                raise InputError(
                    field, "must be a finite number above 0", getattr(self, field), "correct it"
                )
        for field in ("intra_latency_us", "hop_latency_us"):
            if not 0 <= getattr(self, field) <= MOST:
                raise InputError(
                    field,
                    "must be a finite number of at least 0",
                    getattr(self, field),
                    "correct it",
                )


@dataclass(frozen=True, slots=True)
class Imported:
    """A fabric read from a file.

    Parameters
    ----------
    format : str
        Name of the format it was read as.
    document : dict
        What `nest_core.documents.schema.FabricFile` checks.
    notes : tuple of str
        One sentence each: what was assumed or left out.
    """

    format: str
    document: Document
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A fabric as text.

    Parameters
    ----------
    text : str
    lost : tuple of str
        One sentence each: what the format cannot hold.
    """

    text: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Parameters
    ----------
    name, label : str
        For programs, for people.
    suffixes : tuple of str
        Endings of file names, with the dot; several formats may share one.
    reads, writes : bool
    """

    name: str
    label: str
    suffixes: tuple[str, ...]
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file and how to complain about it.

    Parameters
    ----------
    text : str
    name : str
        Of the file, as messages show it.
    assumed : Assumed
    """

    text: str
    name: str
    assumed: Assumed

    def wrong(self, where: int | str, rule: str, value: object, remedy: str) -> InputError:
        """The error about a line (its number) or another place (its name)."""
        place = f"line {where}" if isinstance(where, int) else where
        return InputError(f"{self.name}, {place}" if place else self.name, rule, value, remedy)

    def number(
        self,
        where: int | str,
        field: str,
        value: object,
        *,
        zero: bool = False,
        whole: bool = False,
    ) -> float:
        """A figure of the file: finite, above 0 (or at least 0), within the schema's bounds."""
        kind = "a whole number" if whole else "a finite number"
        rule = f"must have {kind} {'of at least 0' if zero else 'above 0'} as {field}"
        found = _figure(value)
        if found is None or found < 0 or (found == 0 and not zero) or found > MOST:
            raise self.wrong(where, rule, value, "correct the figure")
        if whole and found != int(found):
            raise self.wrong(where, rule, value, "correct the figure")
        return found

    def check_text(self, where: int | str, what: str, text: str) -> None:
        """Refuse what could not be written again: control characters, halves of characters."""
        if _UNWRITABLE.search(text):
            raise self.wrong(
                where, f"must have {what} without control characters", text, "rename it"
            )

    def rate(self, where: int | str, field: str, value: object, scale: float = 1.0) -> float:
        """A rate in GB/s; ``scale`` converts from the file's unit."""
        found = self.number(where, field, value) * scale
        if not LEAST_GBPS <= found <= MOST:
            raise self.wrong(
                where,
                f"must have a rate of {LEAST_GBPS} to {MOST:g} GB/s as {field}",
                value,
                "correct the figure",
            )
        return found


_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def _figure(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and not value.isascii():
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
