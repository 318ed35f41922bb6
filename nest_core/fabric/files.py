"""Fabrics from the checked tables of a file: the registry of kinds, and one fabric of one file.

Which settings a fabric's document has, and which values mend what was refused: a remedy is a value
that was tried, with it alone the document is a fabric.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nest_core.documents import InputError, assign, from_gbps_bytes, kept_within, require
from nest_core.documents.schema import (
    FabricFile,
    Parameter,
    add_kind,
    checked,
    parameter,
    settings_in,
)
from nest_core.fabric.clos import Clos
from nest_core.fabric.clos_plan import TIER_NAMES
from nest_core.fabric.dragonfly import Dragonfly
from nest_core.fabric.fabric import Document, Fabric
from nest_core.fabric.graph import GraphFabric
from nest_core.fabric.hierarchical import Hierarchical
from nest_core.fabric.torus import Torus, slice_from_file

__all__ = [
    "COUNTED",
    "DEPENDENT",
    "KINDS",
    "Kind",
    "build_fabric",
    "counted",
    "fabric_settings",
    "register",
    "remedies",
    "with_setting",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the files of a kind are read.

    Parameters
    ----------
    read : callable (FabricFile, *tables) -> Fabric
        Tables, first the required ones, become the fabric, human units SI.
    tables, optional : tuple of str
        Those that its files must have, and may have.
    missing, hosts, optics : bool
        Whether its files may say ``missing``, ``devices_per_host`` and ``[optics]``.
    routed : bool
        As `Fabric.routed`: whether ``routing = "ecmp"`` means something.
    """

    read: Callable[..., Fabric]
    tables: tuple[str, ...]
    optional: tuple[str, ...] = ()
    missing: bool = False
    hosts: bool = False
    optics: bool = False
    routed: bool = True


_CLOS = Kind(Clos.from_file, ("clos", "intra_node"), missing=True, hosts=True, optics=True)
KINDS: dict[str, Kind] = {
    "hierarchical": Kind(
        Hierarchical.from_file, ("level",), missing=True, hosts=True, routed=False
    ),
    "leaf_spine": _CLOS,
    "fat_tree": _CLOS,
    "rail_optimised": _CLOS,
    "rail_only": _CLOS,
    "dragonfly": Kind(Dragonfly.from_file, ("dragonfly",), ("intra_node",), optics=True),
    "torus": Kind(Torus.from_file, ("torus",), missing=True, routed=False),
    "tpu_slice": Kind(slice_from_file, ("tpu_slice",), missing=True, routed=False),
    # A graph of one device has no links.
    "graph": Kind(GraphFabric.from_file, ("element",), ("link", "forwarding")),
}


def register(name: str, kind: Kind, tables: Mapping[str, type[BaseModel]]) -> None:
    """Make files of one more kind readable.

    Parameters
    ----------
    name : str
        What ``kind`` says in such files.
    tables : mapping of str to type
        The tables that no kind had before, by their name in the file.
    """
    add_kind(name, tables)
    KINDS[name] = kind


def build_fabric(file: FabricFile) -> Fabric:
    """Return the fabric that a file describes.

    Raises
    ------
    InputError
        For tables that the kind does not have or lacks, and for what the fabric refuses.
    """
    kind = KINDS[file.kind]
    every = (name for kind_of in KINDS.values() for name in (*kind_of.tables, *kind_of.optional))
    for name in dict.fromkeys(every):
        present = getattr(file, name) is not None
        require(
            name not in kind.tables or present,
            name,
            f'is required for kind = "{file.kind}"',
            "absent",
            "add it",
        )
        require(
            not present or name in kind.tables + kind.optional,
            name,
            f'must be absent for kind = "{file.kind}"',
            "present",
            "remove it or change the kind",
        )
    for rule in (
        (
            not file.ecmp_seed or file.routing == "ecmp",
            "ecmp_seed",
            'must be absent or 0 unless routing is "ecmp"',
            file.ecmp_seed,
            "remove it",
        ),
        (
            not file.missing or kind.missing,
            "missing",
            f'must be empty for kind = "{file.kind}"',
            file.missing,
            "leave the elements out of the tables",
        ),
        (
            file.devices_per_host is None or kind.hosts,
            "devices_per_host",
            f'must be absent for kind = "{file.kind}"',
            file.devices_per_host,
            "leave it out: hosts follow from the nodes",
        ),
        (
            not file.optics or kind.optics,
            "optics",
            f'must be absent for kind = "{file.kind}"',
            ", ".join(file.optics),
            "name a kind for all tiers in the price list (cabling.media)",
        ),
        (
            file.routing in ("adaptive", "shortest_path") or kind.routed,
            "routing",
            f'must be adaptive or shortest_path for kind = "{file.kind}"',
            file.routing,
            "hashing and tables need single links: describe the fabric as a Clos or a graph",
        ),
        (
            file.routing != "tables" or file.kind == "graph",
            "routing",
            f'must not be tables for kind = "{file.kind}", which holds none',
            file.routing,
            "pick an engine of OpenSM, or read ibnetdiscover's output with convert --tables",
        ),
    ):
        require(*rule)
    fabric = kind.read(file, *(getattr(file, name) for name in (*kind.tables, *kind.optional)))
    assumed = file.assumed_inside_GBps
    return replace(fabric, assumed_inside_Bps=from_gbps_bytes(assumed)) if assumed else fabric


MAX_REMEDIES, MAX_TRIALS = 3, 60
DEPENDENT: Mapping[str, tuple[Any, Callable[[Document], bool]]] = {
    "fabric.clos.rails": (1, lambda table: str(table["kind"]).startswith("rail")),
    "fabric.clos.pods": (
        "units",
        lambda table: table["kind"] == "rail_optimised" and table["clos"]["tiers"] == 3,
    ),
    "fabric.clos.spine_link_GBps": (None, lambda table: table["clos"]["tiers"] > 1),
    "fabric.clos.core_link_GBps": (None, lambda table: table["clos"]["tiers"] > 2),
    "fabric.ecmp_seed": (0, lambda table: table.get("routing") == "ecmp"),
}
"""Settings with a meaning under others alone: what they are without one, and when they have it."""
COUNTED = {"fabric.level": "levels", "fabric.torus": "dimensions"}
"""Tables of a fabric that may have more entries or fewer, and what a setting counts of them."""
_DRAWN = ("element", "link")


def _content(table: Document) -> str:
    return repr({key: value for key, value in table.items() if key not in _DRAWN})


_ALSO_CALLED = {"nics_per_node": "NICs", "nics_per_device": "NICs", "devices_per_node": "the node"}
"""What sentences call a setting beside its name and label."""


@kept_within(64, 8_000_000, lambda _: 100_000, _content)
def fabric_settings(table: Document) -> dict[str, Parameter]:
    """Return every parameter that a fabric's document has, by key, with what is there.

    What names drawn elements has none.
    """
    kind = KINDS[table["kind"]]
    alike = tuple(name for name, other in KINDS.items() if other.tables == kind.tables)
    applies = {
        "fabric.kind": len(alike) > 1,
        "fabric.missing": kind.missing,
        "fabric.devices_per_host": kind.hosts,
        "fabric.routing": kind.routed,
        "fabric.ecmp_seed": kind.routed,
    }
    document = {**{part: {} for part in kind.optional}, **table, **dict.fromkeys(_DRAWN)}
    settings = {
        key: replace(parameter(key), present=value, **_called(key, table))
        for key, value in settings_in(FieldInfo.from_annotation(FabricFile), document, "fabric")
        if applies.get(key, True)
    }
    if "fabric.kind" in settings:
        settings["fabric.kind"] = replace(settings["fabric.kind"], choices=alike)
    names = TIER_NAMES.get(table["kind"], ("node", "local", "global"))
    for tier in names[: table.get("clos", {}).get("tiers")] if kind.optics else ():
        settings[f"fabric.optics.{tier}"] = Parameter(
            "optics",
            f"{tier} links",
            f"fabric.optics.{tier}",
            text="Cable or optics, for the bill; empty: as the price list has it.",
            group="Cables",
            present=table.get("optics", {}).get(tier),
        )
    for key in counted(table):
        settings[key] = Parameter(
            key,
            COUNTED[key],
            key,
            text="One more is like the outermost; what it is has fields below.",
            group=key,
            present=table[key.rpartition(".")[2]],
        )
    return settings


def counted(table: Document) -> dict[str, dict[int, Any]]:
    """Return what a fabric's document has in other numbers of its levels or dimensions, by key.

    Examples
    --------
    >>> torus = {"shape": [4, 2], "wrap": [True, False]}
    >>> counted({"kind": "torus", "torus": torus})["fabric.torus"][3]
    {'shape': [4, 2, 2], 'wrap': [True, False, False]}
    """
    if levels := table.get("level"):
        last = {
            key: value for key, value in levels[-1].items() if key not in ("group_sizes", "names")
        }
        more = [last | {"name": f"level {n}", "group_size": 2} for n in range(len(levels) + 1, 7)]
        return {"fabric.level": {n + 1: [*levels, *more][: n + 1] for n in range(6)}}
    if torus := table.get("torus"):
        ends = {key: [*torus[key], torus[key][-1]] for key in ("shape", "wrap")}
        return {"fabric.torus": {n: torus | {key: ends[key][:n] for key in ends} for n in (2, 3)}}
    return {}


def _called(key: str, table: Document) -> dict[str, Any]:
    """Return what the parameter of a level or an axis is called, and what it is folded under."""
    label = parameter(key).label
    match key.split("."):
        case [_, "level", place, name]:
            tier, names = int(place), [level["name"] for level in table["level"]]
            below = names[tier - 1] if tier else "device"
            sizes = {"label": f"{below}s per {names[tier]}", "unit": "number"}
            words = sizes if name.startswith("group") else {"label": f"{names[tier]} {label}"}
            return words | {"group": f"Level {tier + 1}"}
        case [*_, "shape" | "wrap", place]:
            return {"label": f"{label} along {'xyz'[int(place)]}"}
        case [*_, "spine_link_GBps"]:
            return {"label": f"{TIER_NAMES[table['kind']][1]} link speed"}
    return {}


def with_setting(table: Document, key: str, value: Any) -> Document:
    """Return a fabric's document with one setting changed, and with what follows from it.

    Ratios come and go with the tiers; what has no meaning any more says nothing.
    """
    changed: dict[str, Document] = {"fabric": table}
    assign(changed, key, value)
    if clos := changed["fabric"].get("clos"):
        ratios = [*clos.get("oversubscription", ()), 1.0, 1.0][: clos["tiers"] - 1]
        assign(changed, "fabric.clos.oversubscription", ratios)
        for name, (neutral, is_meant) in DEPENDENT.items():
            if not is_meant(changed["fabric"]):
                assign(changed, name, neutral)
    return changed["fabric"]


def remedies(table: Document, error: InputError) -> dict[str, Any]:
    """Return settings each of which alone makes a fabric of a refused document, by key.

    They are of the refused field and of those that the sentence names, the nearest value of each.
    There are none where the document is a fabric, and something else was refused.
    """
    if _is_fabric(table):
        return {}
    refused = re.sub(r"\[(\d+)\]", r".\1", f"fabric.{error.field.removeprefix('fabric.')}")
    text, settings = f"{error.remedy} {error.rule}", fabric_settings(table)
    places = {key: -1 for key in settings if f"{key}.".startswith(f"{refused}.")}
    for key, of in settings.items():
        words = {of.name, of.label, _ALSO_CALLED.get(of.name, of.name)}
        if mention := re.search(rf"\b({'|'.join(map(re.escape, words))})\b", text):
            places.setdefault(key, mention.start())
    mended = (
        (key, value)
        for key in sorted(places, key=places.__getitem__)
        for value in islice(
            (
                value
                for value in _near(settings, key, text)
                if _is_fabric(with_setting(table, key, value))
            ),
            1,
        )
    )
    return dict(islice(mended, MAX_REMEDIES))


def _near(settings: Mapping[str, Parameter], key: str, text: str) -> Iterator[Any]:
    """Return values that a parameter may have instead, the nearest first."""
    of = settings[key]
    if of.choices or of.kind not in (int, float):
        options = (False, True) if of.kind is bool else of.choices
        return (option for option in options if option != of.present)
    present: Any = of.present or of.low or 1
    values = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))}
    if of.kind is int:
        others = {int(s.present) for s in settings.values() if s.kind is int and s.present}
        values |= {2.0**power for power in range(13)}
        values |= {size // part for size in others for part in range(1, 65) if size % part == 0}
        values |= {
            ((present >> halvings) // size + more) * size
            for size in others
            for halvings in range(7)
            for more in (0, 1)
        }
    low, high = of.low or 0, of.high or math.inf
    fitting = {of.kind(value) for value in values if low <= value <= high and value} - {of.present}
    return islice(
        iter(sorted(fitting, key=lambda value: (abs(math.log(value / present)), value))), MAX_TRIALS
    )


def _is_fabric(table: Document) -> bool:
    with suppress(InputError):
        build_fabric(checked(FabricFile, table))
        return True
    return False
