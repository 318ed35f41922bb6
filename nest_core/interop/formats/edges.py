"""Edge lists: CSV with one link per row.

Columns ``a``, ``b``, ``bandwidth_GBps``, ``count``, ``latency_us`` and, for roles, ``a_role``,
``b_role``; all but the first two are optional and may be empty. Semicolons or tabs may stand for
the commas; ``from`` and ``to``, ``source`` and ``target``, ``src`` and ``dst`` for ``a`` and
``b``. Devices are numbered in the order in which rows name them.
"""

import csv
import io

from nest_core.documents import (
    InputError,
    csv_text,
    gigabytes,
    grouped,
    microseconds,
    of_cell,
    plural,
    require,
)
from nest_core.fabric import Fabric, GraphFabric, Link, as_graph
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.values import (
    FabricText,
    Reading,
    Source,
    check_plain_names,
    unsaid_counts,
    unsaid_drawn,
)

__all__ = ["COLUMNS", "read_edges", "write_edges"]

COLUMNS = ("a", "b", "bandwidth_GBps", "count", "latency_us", "a_role", "b_role")
_ALSO = {"from": "a", "source": "a", "src": "a", "to": "b", "target": "b", "dst": "b"}


def read_edges(source: Source) -> Reading:
    """Return a graph from rows of links."""
    rows = _rows(source)
    draft = Draft(source)
    ends = [
        (line, row[end], row.get(f"{end}_role", "")) for line, row in rows for end in ("a", "b")
    ]
    roles = grouped((name, role) for _, name, role in ends if role)
    for line, name, role in ends:
        first = roles.get(name, [""])[0]
        source.require(
            role in ("", first),
            line,
            f"must give {name} the role {first} that it has above",
            role,
            "make the rows agree",
        )
        if name not in draft:
            draft.element(line, name, first or None)
    for line, row in rows:
        rate, latency = row.get("bandwidth_GBps"), row.get("latency_us")
        draft.link(
            line,
            row["a"],
            row["b"],
            source.rate(line, "bandwidth_GBps", rate) if rate else None,
            source.number(line, "latency_us", latency, zero=True) if latency else None,
            int(source.number(line, "count", row.get("count") or 1, whole=True)),
        )
    return draft.document(source.name)


def write_edges(fabric: Fabric) -> FabricText:
    """Return the links of a fabric, one per row.

    Raises
    ------
    InputError
        For a fabric without links, of which nothing would be left.
    """
    graph, lost = as_graph(fabric), fabric.lost_in_graph
    check_plain_names(graph, "CSV")
    require(
        graph.links,
        "link",
        "must list at least one link to be written as an edge list",
        0,
        "use another format",
    )
    spaced = [element.id for element in graph.elements if element.id != element.id.strip()]
    if spaced:
        raise InputError(
            "element.id",
            "must not begin or end with a space in an edge list",
            spaced[0],
            "rename the element",
        )
    roles = {element.id: element.role for element in graph.elements}
    ordered = _in_order(graph)
    rows = (
        [
            a,
            b,
            gigabytes(link.bandwidth_Bps),
            link.count,
            microseconds(link.latency_s),
            roles[a],
            roles[b],
        ]
        for a, b, link in ordered
    )
    endpoints = list(dict.fromkeys(end for a, b, _ in ordered for end in (a, b)))
    return FabricText(csv_text(COLUMNS, rows), lost + _lost(graph, endpoints))


def _in_order(graph: GraphFabric) -> list[tuple[str, str, Link]]:
    """Return ends and links so that rows name devices in the order of their numbers.

    It cannot where a device is linked to later ones only.
    """
    number = {entry.id: -1 for entry in graph.elements}
    number |= {name: place for place, name in enumerate(graph.device_ids)}
    at = number.__getitem__
    rows = (
        (min(link.a, link.b, key=at), max(link.b, link.a, key=at), link) for link in graph.links
    )
    return sorted(rows, key=lambda row: at(row[1]))


def _lost(graph: GraphFabric, endpoints: list[str]) -> tuple[str, ...]:
    roles = {element.id: element.role for element in graph.elements}
    devices = tuple(name for name in endpoints if roles[name] == "device")
    loose = len(graph.elements) - len(endpoints)
    lost = {
        "The fabric's name.": True,
        "The order in which devices are numbered: rows of links decide it.": devices
        != graph.device_ids,
        f"{plural(loose, 'element')} without links.": loose,
        **dict.fromkeys((*unsaid_counts(graph), *unsaid_drawn(graph)), True),
    }
    return tuple(sentence for sentence, holds in lost.items() if holds)


def _rows(source: Source) -> list[tuple[int, dict[str, str]]]:
    """Return line numbers and cells by column."""
    text = io.StringIO(source.text, newline=None)  # any line ends
    first = next((line for line in text if line.strip()), "")
    separator = next((sign for sign in ",;\t" if sign in first), ",")
    text.seek(0)
    reader = csv.reader(text, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        every = [(reader.line_num, [of_cell(cell.strip()) for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise source.wrong(
            reader.line_num, "must be valid CSV", str(error), "correct the quotes"
        ) from error
    rows = [(line, row) for line, row in every if any(row)]
    source.require(rows, "", "must have a header", "empty", "start with " + ",".join(COLUMNS[:5]))
    header = _header(source, *rows[0])
    for line, row in rows[1:]:
        source.require(
            len(row) == len(header),
            line,
            f"must have {plural(len(header), 'cell')} as the header has",
            len(row),
            "complete the row",
        )
    return [(line, dict(zip(header, row, strict=True))) for line, row in rows[1:]]


def _header(source: Source, line: int, row: list[str]) -> list[str]:
    row = [_ALSO.get(name.lower(), name) for name in row]
    for name in row:
        source.require(
            name in COLUMNS and row.count(name) <= 1,
            line,
            "must name known columns, each once",
            name,
            "known are " + ", ".join(COLUMNS),
        )
    for name in ("a", "b"):
        source.require(
            name in row, line, "must have the columns a and b", ",".join(row), f"add {name}"
        )
    return row
