"""What settings were worth where they were measured, as shipped.

``presets/validation/settings.toml`` holds for every effect the least and the largest ratio of
throughputs with a setting over without; ``benchmarks/validation`` writes it from published
experiments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nest_core.documents.presets import kept_per_edition, load_toml, preset_path

__all__ = ["Setting", "load_settings", "read_settings"]

PATH = ("validation", "settings.toml")


Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Setting:
    """An effect, measured.

    Parameters
    ----------
    name, key : str
        The setting in words, and the dotted key of the field that offers it; empty: no file has
        one.
    ratios : (float, float) or None
        Least and largest throughput with it over without, of experiments that say all of their
        plan; None: there are none.
    n, clean : int
        How many those are, and how many of them changed one setting alone.
    others : (float, float) or None
        Likewise, of experiments that leave out a part of their plan.
    n_others : int
    memory : (float, float) or None
        Least and largest memory with it over without, of all experiments that print it.
    groups : tuple of str
        Of the experiments.
    """

    name: str
    key: str
    ratios: Span | None
    n: int
    clean: int
    others: Span | None
    n_others: int
    memory: Span | None
    groups: tuple[str, ...]


@kept_per_edition(1)
def load_settings() -> tuple[Setting, ...]:
    """Return the shipped settings; none where the file is missing."""
    path = preset_path(*PATH)
    if not path.is_file():
        return ()
    return read_settings(load_toml(path))


def read_settings(document: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return the settings of a file of the shipped form."""
    return tuple(_setting(entry) for entry in document.get("setting", ()))


def _setting(entry: Mapping[str, Any]) -> Setting:
    def span(name: str) -> Span | None:
        return (float(entry[name][0]), float(entry[name][1])) if name in entry else None

    return Setting(
        str(entry["name"]),
        str(entry["key"]),
        span("ratios"),
        int(entry["n"]),
        int(entry["clean"]),
        span("others"),
        int(entry["n_others"]),
        span("memory"),
        tuple(map(str, entry["groups"])),
    )
