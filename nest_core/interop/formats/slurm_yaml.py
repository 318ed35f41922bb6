"""Slurm's topology.yaml: the tree and block plugins (SchedMD, topology.yaml(5)).

A file lists topologies; the cluster's default is read, or the only one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nest_core.documents.units import plural
from nest_core.fabric import MAX_DEVICES
from nest_core.interop.formats.hostlist import expanded
from nest_core.interop.formats.slurm import check_block_sizes
from nest_core.interop.formats.trees import Switch, block_document, tree_document
from nest_core.interop.formats.values import Document, Source
from nest_core.interop.formats.yaml_text import Scalar, Table, line_of, yaml_values

__all__ = ["read_slurm_yaml", "slurm_yaml_nodes"]

Read = tuple[Document, tuple[str, ...]]


def read_slurm_yaml(source: Source) -> Read:
    """The default topology of a file."""
    entry, plugin, others = _chosen(source)
    if plugin not in _READERS:
        raise source.wrong(
            entry.line,
            "must be read as tree or block",
            plugin,
            "describe the fabric as a torus or as a graph",
        )
    document, notes = _READERS[plugin](source, entry)
    if others:
        left = plural(others, "other topology", "other topologies")
        notes += (f"Topology {entry['topology']} of the file was read, {left} left out.",)
    return document, notes


def slurm_yaml_nodes(source: Source) -> list[str]:
    """Names of the nodes in the default topology, in its order."""
    entry, plugin, _ = _chosen(source)
    return list(dict.fromkeys(_nodes(source, entry[plugin])))


def _nodes(source: Source, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _nodes(source, item)
    elif isinstance(value, Table):
        for key, item in value.items():
            if key == "nodes" and isinstance(item, Scalar) and item:
                yield from expanded(source, item.line, str(item))
            else:
                yield from _nodes(source, item)


def _chosen(source: Source) -> tuple[Table, str, int]:
    """The default topology of a file, its plugin, and how many others there are."""
    entries = yaml_values(source)
    if isinstance(entries, Table):
        entries = [entries]
    if not isinstance(entries, list) or not entries:
        raise source.wrong(
            "", "must be a list of topologies", "none", "start with - topology: name"
        )
    found = [_entry(source, entry) for entry in entries]
    default = [
        entry for entry, _ in found if str(entry.get("cluster_default", "")).lower() == "true"
    ]
    if len(default) > 1:
        raise source.wrong(
            default[1].line, "must have one cluster_default", default[1]["topology"], "keep one"
        )
    entry = default[0] if default else found[0][0]
    plugin = next(kind for one, kind in found if one is entry)
    return entry, plugin, len(found) - 1


def _entry(source: Source, entry: Any) -> tuple[Table, str]:
    table = _table(source, entry, "a topology")
    if next(iter(table), "") != "topology":
        raise source.wrong(
            table.line,
            "must start with topology:",
            next(iter(table), "nothing"),
            "name the topology first",
        )
    kinds = [key for key in table if key not in ("topology", "cluster_default")]
    if len(kinds) != 1:
        raise source.wrong(
            table.line,
            "must have exactly one plugin, such as tree or block",
            ", ".join(kinds) or "none",
            "keep one",
        )
    return table, kinds[0]


def _tree(source: Source, entry: Table) -> Read:
    switches: dict[str, Switch] = {}
    left, speeds = MAX_DEVICES, False
    for item in _items(source, entry["tree"], "tree", "switches"):
        name = _name(source, item, "switch", ("children", "nodes", "link_speed"))
        if name in switches:
            raise source.wrong(item.line, "must define a switch once", name, "remove one")
        lists = []
        for key in ("children", "nodes"):
            lists.append(_names(source, item, key, left) if item.get(key, "") != "" else [])
            left -= len(lists[-1])
        speeds |= "link_speed" in item
        switches[name] = Switch(item.line, tuple(lists[0]), tuple(lists[1]))
    document, notes = tree_document(source, switches)
    if speeds:
        notes += ("link_speed left out: Slurm gives it no unit and does not use it.",)
    return document, notes


def _block(source: Source, entry: Table) -> Read:
    blocks: dict[str, Switch] = {}
    left = MAX_DEVICES
    for item in _items(source, entry["block"], "block", "blocks", ("block_sizes",)):
        name = _name(source, item, "block", ("nodes",))
        if name in blocks:
            raise source.wrong(item.line, "must define a block once", name, "remove one")
        nodes = _names(source, item, "nodes", left)
        left -= len(nodes)
        blocks[name] = Switch(item.line, nodes=tuple(nodes))
    listed = entry["block"].get("block_sizes", [])
    texts = listed if isinstance(listed, list) else str(listed).split(",")
    where = line_of(listed)
    sizes = [int(source.number(where, "block_sizes", text, whole=True)) for text in texts]
    check_block_sizes(source, where, sizes)
    return block_document(source, blocks, sizes)


_READERS = {"tree": _tree, "block": _block}


def _table(source: Source, value: Any, what: str) -> Table:
    if not isinstance(value, Table):
        raise source.wrong(
            line_of(value), f"must have {what} as a mapping", value, "indent its keys"
        )
    return value


def _items(
    source: Source, section: Any, plugin: str, key: str, others: tuple[str, ...] = ()
) -> list[Table]:
    table = _table(source, section, plugin)
    for other in table:
        if other != key and other not in others:
            raise source.wrong(table.line, f"must hold {key} in {plugin}", other, "remove the key")
    items = table.get(key)
    if not isinstance(items, list) or not items:
        raise source.wrong(
            table.line, f"must list {key} in {plugin}", items or "none", f"add {key}"
        )
    return [_table(source, item, f"each of {key}") for item in items]


def _name(source: Source, item: Table, key: str, others: tuple[str, ...]) -> str:
    for other in item:
        if other != key and other not in others:
            raise source.wrong(
                item.line, f"must have known keys beside {key}", other, "use " + ", ".join(others)
            )
    name = item.get(key)
    if not isinstance(name, Scalar) or not name:
        raise source.wrong(item.line, f"must have text as {key}", name or "missing", "name it")
    return str(name)


def _names(source: Source, item: Table, key: str, most: int) -> list[str]:
    text = item.get(key)
    if not isinstance(text, Scalar) or not text:
        raise source.wrong(
            item.line, f"must have a host list as {key}", text or "missing", "add it"
        )
    return expanded(source, text.line, str(text), most)
