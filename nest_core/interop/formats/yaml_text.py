"""YAML as nested dicts, lists and text, for foreign formats only.

Values are read off PyYAML's nodes: nothing is constructed that a file could choose. Aliases,
anchors, tags, repeated keys, several documents and nesting over 32 levels are refused.
Plain scalars stay text (`Scalar`, with its line): a node called ``on`` or ``0123`` keeps its name,
and the reader of a format knows which of its keys are numbers. Only ``~`` and ``null`` are empty.
"""

from typing import Any

import yaml

from nest_core.interop.formats.values import Source

__all__ = ["Scalar", "YamlTable", "line_of", "yaml_values"]

MAX_DEPTH = 32
MAX_VALUES = 500_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Scalar(str):
    """A scalar's text and the line it stands on."""

    line: int = 0


class YamlTable(dict[str, Any]):
    """A mapping and the line it starts on."""

    line: int = 0


def line_of(value: object) -> int | str:
    """Return where a value stands; empty where nothing says so."""
    if isinstance(value, (Scalar, YamlTable)):
        return value.line
    return line_of(value[0]) if isinstance(value, list) and value else ""


def yaml_values(source: Source) -> Any:
    """Return the one document of a file.

    Raises
    ------
    InputError
        For what is not YAML, and for what the module's description refuses.
    """
    try:
        _check_events(source)
        # Recursive, so only after the depth is known.
        node: Any = yaml.compose(source.text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise source.wrong(
            mark.line + 1 if mark else "", "must be valid YAML", problem, "correct the file"
        ) from error
    return None if node is None else _value(source, node)


def _check_events(source: Source) -> None:
    """Refuse more than plain lists, mappings and scalars of one document, and too many of them."""
    documents = depth = 0
    event: Any
    for count, event in enumerate(yaml.parse(source.text, Loader=_LOADER)):
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        refusals = (
            (getattr(event, "anchor", None), "have no anchors and aliases", "write the values out"),
            (getattr(event, "tag", None), "have no tags", "write plain values"),
            (documents > 1 and "a second one", "hold one YAML document", "split the file"),
            (
                depth > MAX_DEPTH and "deeper",
                f"nest at most {MAX_DEPTH} lists and mappings",
                "flatten it",
            ),
            (count > MAX_VALUES and "more", f"hold at most {MAX_VALUES:,} values", "shorten it"),
        )
        for value, rule, remedy in refusals:
            source.require(not value, event.start_mark.line + 1, f"must {rule}", value, remedy)


def _value(source: Source, node: Any) -> Any:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_value(source, entry) for entry in node.value]
    if isinstance(node, yaml.ScalarNode):
        scalar = Scalar("" if node.tag == "tag:yaml.org,2002:null" else node.value)
        scalar.line = line
        return scalar
    table = YamlTable()
    table.line = line
    for key, value in node.value:
        where = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise source.wrong(where, "must have text as keys", "a collection", "name the key")
        source.require(
            key.value not in table,
            where,
            "must state every key once",
            key.value,
            "remove one of them",
        )
        table[key.value] = _value(source, value)
    return table
