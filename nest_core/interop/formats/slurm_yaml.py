"""Slurm's topology.yaml: the tree and block plugins (SchedMD, topology.yaml(5)).

A file lists topologies; the cluster's default is read, or the only one, as the lines of a
topology.conf (`nest_core.interop.formats.slurm`).
"""

from typing import Any

from nest_core.interop.formats.slurm import SlurmLine, topology
from nest_core.interop.formats.values import Reading, Source, listed
from nest_core.interop.formats.yaml_text import Scalar, YamlTable, line_of, yaml_values

__all__ = ["read_slurm_yaml"]

_KEYS = {
    "tree": {
        "switch": "switchname",
        "children": "switches",
        "nodes": "nodes",
        "link_speed": "linkspeed",
    },
    "block": {"block": "blockname", "nodes": "nodes"},
}
"""By plugin: keys of one of its entries, the name first, and what topology.conf calls them."""


def read_slurm_yaml(source: Source) -> Reading:
    """Return levels from the default topology of a file."""
    entry, others = _default(source)
    document, notes = topology(source, _lines(source, entry))
    if others:
        others_read = listed(
            table["topology"] + " (flat: it says nothing of the network)" * ("flat" in table)
            for table in others
        )
        notes += (f"Topology {entry['topology']} of the file was read; left out: {others_read}.",)
    return document, notes


def _default(source: Source) -> tuple[YamlTable, list[YamlTable]]:
    """Return the first default topology of a file that is not flat, else the first, and others."""
    document = yaml_values(source)
    entries = [document] if isinstance(document, YamlTable) else document
    if not isinstance(entries, list) or not entries:
        raise source.wrong(
            "", "must be a list of topologies", "none", "start with - topology: name"
        )
    tables = [_table(source, entry, "a topology") for entry in entries]
    for table in tables:
        first = next(iter(table), "nothing")
        source.require(
            first == "topology",
            table.line,
            "must start with topology:",
            first,
            "name the topology first",
        )
        plugins = [key for key in table if key not in ("topology", "cluster_default")]
        source.require(
            len(plugins) == 1,
            table.line,
            "must have exactly one plugin, such as tree or block",
            ", ".join(plugins) or "none",
            "keep one",
        )
    # A flat topology says nothing of the network: another of the file may.
    best, *others = sorted(
        tables,
        key=lambda table: ("flat" in table, str(table.get("cluster_default")).lower() != "true"),
    )
    return best, others


def _lines(source: Source, entry: YamlTable) -> list[SlurmLine]:
    """Return a topology as the lines of a topology.conf."""
    plugin = next(key for key in entry if key not in ("topology", "cluster_default"))
    source.require(
        plugin in _KEYS,
        entry.line,
        "must be read as tree or block",
        plugin,
        "describe the fabric as a torus or as a graph",
    )
    keys = _KEYS[plugin]
    entries = "switches" if plugin == "tree" else "blocks"
    section = _table(source, entry[plugin], plugin)
    for other in section.keys() - {entries, "block_sizes" if plugin == "block" else entries}:
        raise source.wrong(
            section.line, f"must hold {entries} in {plugin}", other, "remove the key"
        )
    items = section.get(entries)
    if not isinstance(items, list) or not items:
        raise source.wrong(
            section.line, f"must list {entries} in {plugin}", items or "none", f"add {entries}"
        )
    lines = [_line(source, _table(source, item, f"each of {entries}"), keys) for item in items]
    sizes = section.get("block_sizes")
    if sizes:
        texts = sizes if isinstance(sizes, list) else [sizes]
        lines.append((line_of(texts[0]) or section.line, {"blocksizes": ",".join(map(str, texts))}))
    return lines


def _line(source: Source, item: YamlTable, keys: dict[str, str]) -> SlurmLine:
    name, *others = keys
    for key, value in item.items():
        source.require(
            key in keys,
            item.line,
            f"must have known keys beside {name}",
            key,
            "use " + ", ".join(others),
        )
        source.require(
            isinstance(value, Scalar),
            line_of(value) or item.line,
            f"must have text as {key}",
            value,
            "write it in one line",
        )
    source.require(item.get(name), item.line, f"must have text as {name}", "missing", "name it")
    return item.line, {keys[key]: value for key, value in item.items() if value}


def _table(source: Source, value: Any, what: str) -> YamlTable:
    if not isinstance(value, YamlTable):
        raise source.wrong(
            line_of(value), f"must have {what} as a mapping", value, "indent its keys"
        )
    return value
