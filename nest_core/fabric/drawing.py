"""Drawings: graph documents that people edit, and any fabric turned into one.

A drawing is the document of a fabric of kind ``graph`` (``docs/files.md``), plain dictionaries and
lists, because while it is edited it need not be a fabric yet: elements may hang loose. Elements
carry ``group``, the path of what they are drawn inside (``"rack 0/node 3"``), and their place.
Whether it is a fabric, `nest_core.documents.schema.checked` and `build_fabric` say.
"""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

import numpy as np

from nest_core.documents import GB, MICROSECOND, InputError, require
from nest_core.fabric.arrange import heights
from nest_core.fabric.checks import IntArray, LinkGraph
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.graph import node_name

__all__ = [
    "MAX_DRAWN",
    "Drawing",
    "drawing_of",
    "duplicated",
    "edited",
    "element_names",
    "empty_drawing",
    "groups_of",
    "named",
    "tabled",
]

MAX_DRAWN = 8192
"""Devices of a fabric that can be drawn: more is a picture that nobody reads."""

MAX_ELEMENTS = 40_000
LARGEST = 1e18
"""What no number of a drawing reaches."""
PITCH = 80.0
_KEYS = {
    "element": ("id", "role", "radix", "count", "group", "x", "y"),
    "link": ("a", "b", "bandwidth_GBps", "count", "latency_us"),
}
_TEXTS = ("id", "role", "group", "a", "b")
_NEW: dict[str, dict[str, Any]] = {
    "element": {"role": "switch"},
    "link": {"bandwidth_GBps": 50.0, "count": 1, "latency_us": 0.6},
}

Drawing = dict[str, Any]
"""A document with ``schema``, ``name``, ``kind = "graph"``, ``element`` and ``link``."""

Passed = dict[tuple[str, str], tuple[int, int]]
"""By what stands around a number: the first and the last one tried, of which the last was free."""


def empty_drawing(name: str = "My fabric") -> Drawing:
    """Return a drawing with nothing on it."""
    return {"schema": 1, "name": name, "kind": "graph", "element": [], "link": []}


def drawing_of(fabric: Fabric, nesting: Sequence[IntArray]) -> Drawing:
    """Any fabric as a drawing, grouped; the canvas arranges what has no place.

    The switches of a tier that a fabric uses as one are one element with their ``count``, as in
    `Clos.explicit`.

    Parameters
    ----------
    fabric : Fabric
    nesting : sequence of int array (devices,)
        Groups of devices, innermost first, as a collapse finds them.

    Raises
    ------
    InputError
        Over `MAX_DRAWN` devices.
    """
    require(
        fabric.devices <= MAX_DRAWN,
        "drawing",
        f"must have at most {MAX_DRAWN:,} devices",
        f"{fabric.devices:,}",
        "choose a smaller fabric; this one is described by its kind and its counts",
    )
    graph = fabric.explicit()
    drawing = empty_drawing(fabric.name)
    if fabric.assumed_inside_Bps:
        drawing["assumed_inside_GBps"] = fabric.assumed_inside_Bps / GB
    if fabric.routed and fabric.routing != "adaptive":
        drawing["routing"] = fabric.routing
        if fabric.ecmp_seed:
            drawing["ecmp_seed"] = fabric.ecmp_seed
    names = element_names(graph, fabric)
    groups = groups_of(graph, nesting, fabric)
    drawing["element"] += [
        {"id": names[node], "role": data["role"], "group": groups[node]}
        | _only({"radix": data.get("radix", 0), "count": data.get("count", 1)}, ("radix", "count"))
        for node, data in graph.nodes(data=True)
    ]
    drawing["link"] += [
        {
            "a": names[a],
            "b": names[b],
            "bandwidth_GBps": data["bandwidth_Bps"] / GB,
            "count": int(data["count"]),
            "latency_us": data["latency_s"] / MICROSECOND,
        }
        for a, b, data in graph.edges(data=True)
    ]
    for element, (x, y) in zip(drawing["element"], fabric.drawn_places(), strict=False):
        element["x"], element["y"] = x * PITCH, y * PITCH
    return drawing


def edited(drawing: Drawing, elements: Iterable[Any], links: Iterable[Any]) -> Drawing:
    """Return the drawing with other elements and links; keys that a drawing does not have are left
    out.

    Raises
    ------
    InputError
        If they are not lists of tables of text and finite numbers, or too many. Whether they make
        a fabric is not judged here.
    """
    lists = {"element": list(elements), "link": list(links)}
    for name, entries in lists.items():
        require(
            len(entries) <= MAX_ELEMENTS,
            name,
            f"must have at most {MAX_ELEMENTS:,} entries",
            f"{len(entries):,}",
            "join parallel links with count, or describe the fabric by a kind",
        )
        for entry in entries:
            require(
                isinstance(entry, Mapping), name, "must be a list of tables", entry, "draw it again"
            )
            for key in _KEYS[name]:
                _check_cell(f"{name}.{key}", entry.get(key), text=key in _TEXTS)
    return drawing | {
        "element": [_only(entry, _KEYS["element"]) for entry in lists["element"]],
        "link": [_only(entry, _KEYS["link"]) for entry in lists["link"]],
    }


def duplicated(drawing: Drawing, ids: Collection[str]) -> tuple[Drawing, tuple[str, ...]]:
    """Return the drawing with a copy of some elements, which have no places, and the copies' ids.

    Copies are linked to one another as the originals are, and to everything else that the
    originals are linked to: a second rack hangs on the same spines.

    Examples
    --------
    >>> drawing = empty_drawing() | {"element": [{"id": "gpu 0", "role": "device"}]}
    >>> duplicated(drawing, ["gpu 0"])[1]
    ('gpu 1',)
    """
    picked = set(ids)
    chosen = [entry for entry in drawing["element"] if entry["id"] in picked]
    if not chosen:
        return drawing, ()
    taken = {entry["id"] for entry in drawing["element"]}
    groups = _copied_groups(drawing, chosen)
    names: dict[str, str] = {}
    passed: Passed = {}
    for entry in chosen:
        names[entry["id"]] = _free(entry["id"], taken, passed)
        taken.add(names[entry["id"]])
    copies = []
    for entry in chosen:
        copy = _only(entry, _KEYS["element"][:-2]) | {"id": names[entry["id"]]}
        if entry.get("group"):
            copy["group"] = groups.get(entry["group"], entry["group"])
        copies.append(copy)
    links = [
        link | {"a": names.get(link["a"], link["a"]), "b": names.get(link["b"], link["b"])}
        for link in drawing["link"]
        if link["a"] in names or link["b"] in names
    ]
    bigger = edited(drawing, [*drawing["element"], *copies], [*drawing["link"], *links])
    return bigger, tuple(names.values())


def tabled(
    drawing: Drawing, table: Literal["element", "link"], edits: Mapping[str, Any]
) -> Drawing:
    """Return the drawing after edits of the rows of one table.

    Links follow an element that is renamed, and go with one that is deleted. Rows that are added
    get what a new switch or a new link has where nothing was filled in.

    Parameters
    ----------
    drawing : Drawing
    table : {"element", "link"}
    edits : mapping
        ``edited_rows`` (row number to changed cells), ``added_rows`` and ``deleted_rows``, as
        Streamlit's data editor gives them, all relative to ``drawing``.

    Raises
    ------
    InputError
        If a row is not in the table, or as `edited`.
    """
    rows = [dict(entry) for entry in drawing[table]]
    names = [entry.get("id") for entry in rows]
    changed = {int(index): cells for index, cells in edits.get("edited_rows", {}).items()}
    gone = {int(index) for index in edits.get("deleted_rows", ())}
    beyond = [index for index in (*changed, *gone) if not 0 <= index < len(rows)]
    if beyond:
        raise InputError(
            f"{table} table",
            f"must have edits of its {len(rows)} rows",
            f"row {beyond[0]}",
            "edit the table as it is shown now",
        )
    for index, cells in changed.items():
        rows[index] |= cells
    remaining = [row for index, row in enumerate(rows) if index not in gone]
    added = [_NEW[table] | _only(row, _KEYS[table]) for row in edits.get("added_rows", ())]
    links = drawing["link"]
    if table == "link":
        return edited(drawing, drawing["element"], [*remaining, *added])
    renamed = {old: row.get("id") for old, row in zip(names, rows, strict=True)}
    lost = {names[index] for index in gone}
    links = [
        link | {end: renamed.get(link.get(end), link.get(end)) for end in ("a", "b")}
        for link in links
        if not {link.get("a"), link.get("b")} & lost
    ]
    return edited(drawing, [*remaining, *added], links)


def named(drawing: Drawing) -> Drawing:
    """Return the drawing, if every element has a name and a role and every link its ends.

    Raises
    ------
    InputError
        If one lacks what it is told apart by.
    """
    lacks = (
        f"{name}[{place}].{key}"
        for name, keys in (("element", ("id", "role")), ("link", ("a", "b")))
        for place, entry in enumerate(drawing[name])
        for key in keys
        if key not in entry
    )
    for field in lacks:
        raise InputError(field, "must be given", "missing", "fill it in")
    return drawing


def _check_cell(field: str, value: object, *, text: bool) -> None:
    if value is None:
        return
    require(not text or isinstance(value, str), field, "must be text", value, "draw it again")
    require(
        text
        or (
            not isinstance(value, bool)
            and isinstance(value, int | float)
            and (abs(value) < LARGEST)
        ),
        field,
        "must be a finite number",
        value,
        "draw it again",
    )


def _only(entry: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Known keys with a value; what stands for "not stated" is left out."""
    nothing = {"radix": 0, "group": ""} | ({} if "a" in keys else {"count": 1})
    stated = {key: entry[key] for key in keys if entry.get(key) is not None}
    return {key: value for key, value in stated.items() if value != nothing.get(key)}


def element_names(graph: LinkGraph, fabric: Fabric) -> dict[Any, str]:
    """Return what the elements of a fabric's link graph are called: gpu 3, nic 0.1, leaf 2."""
    devices = fabric.device_ids
    return {
        node: devices[node] if isinstance(node, int) else node_name(node, " ") for node in graph
    }


def groups_of(graph: LinkGraph, nesting: Sequence[IntArray], fabric: Fabric) -> dict[Any, str]:
    """Return the group of every element of a fabric's link graph: as a person drew it, else of a
    device as nested, and of others what their devices share.
    """
    drawn = fabric.drawn_groups()
    if any(drawn.values()):
        return {node: drawn[name] for node, name in element_names(graph, fabric).items()}
    inwards = [
        fabric.group_labels(level)
        or [f"{name} {block}" for block in np.unique(blocks, return_inverse=True)[1].tolist()]
        for level, (name, blocks) in enumerate(zip(fabric.group_names, nesting, strict=False))
        if 1 < np.unique(blocks).size < blocks.size
    ]
    paths: dict[Any, tuple[str, ...]] = {}
    height = heights(graph, [node for node in graph if graph.nodes[node]["role"] == "device"])
    for node in sorted(graph, key=lambda node: height.get(node, 0)):
        below = [paths[other] for other in graph[node] if height[other] < height[node]]
        paths[node] = (
            tuple(labels[node].replace("/", "-") for labels in reversed(inwards))
            if isinstance(node, int)
            else _common(below)
        )
    return {node: "/".join(path) for node, path in paths.items()}


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    alike = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return tuple(parts[0] for parts in alike)


def _free(name: str, taken: Collection[str], passed: Passed) -> str:
    """Return the name with its last number raised, or one added, until nobody has it.

    ``passed`` remembers the numbers that the last search for such names went through: many
    copies do not start over.
    """
    last = re.search(r"(\d{1,9})(\D*)$", name)
    stem, number, rest = (name[: last.start()], last[1], last[2]) if last else (name + " ", "", "")
    first = int(number or 0) + 1
    low, high = passed.get((stem, rest), (first, first))
    within = low <= first <= high
    free = next(
        number
        for number in itertools.count(high if within else first)
        if f"{stem}{number}{rest}" not in taken
    )
    passed[stem, rest] = (low if within else first, free)
    return f"{stem}{free}{rest}"


def _copied_groups(drawing: Drawing, chosen: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return new paths for groups that are copied whole; parts of a group stay inside it."""
    members, picked = (
        Counter(path for entry in entries for path in _ancestry(entry.get("group", "")))
        for entries in (drawing["element"], chosen)
    )
    renamed: dict[str, str] = {}
    taken = {path.rpartition("/")[2] for path in members}
    passed: Passed = {}
    for path in sorted(picked, key=lambda path: path.count("/")):
        above, _, name = path.rpartition("/")
        within = renamed.get(above, above)
        if picked[path] == members[path]:
            name = _free(name, taken, passed)
            taken.add(name)
        renamed[path] = f"{within}/{name}" if within else name
    return renamed


def _ancestry(group: str) -> list[str]:
    parts = group.split("/") if group else []
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
