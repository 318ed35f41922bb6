"""YAML as nested dicts, lists and text, for foreign formats only.

Built from the parser's events: nothing is constructed that a file could choose. Aliases, anchors
and tags are refused, and so are repeated keys, several documents and nesting over 32 levels.
Plain scalars stay text (`Scalar`, with its line): a node called ``on`` or ``0123`` keeps its name,
and the reader of a format knows which of its keys are numbers. Only ``~`` and ``null`` are empty.
"""

from __future__ import annotations

from typing import Any

import yaml

from nest_core.formats.values import Source

__all__ = ["Scalar", "Table", "line_of", "yaml_values"]

MAX_DEPTH = 32
MAX_VALUES = 500_000
_NOTHING = ("~", "null", "Null", "NULL")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Scalar(str):
    """A scalar's text and the line it stands on."""

    line: int = 0


class Table(dict[str, Any]):
    """A mapping and the line it starts on."""

    line: int = 0


def line_of(value: object) -> int | str:
    """Where a value stands; empty where nothing says so."""
    if isinstance(value, (Scalar, Table)):
        return value.line
    if isinstance(value, list) and value:
        return line_of(value[0])
    return ""


def yaml_values(source: Source) -> Any:
    """The one document of a file.

    Raises
    ------
    InputError
        For what is not YAML, and for what the module's description refuses.
    """
    try:
        return _Builder(source).build()
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else ""
        raise source.wrong(
            line, "must be valid YAML", error.problem or "unreadable", "correct the file"
        ) from error
    except yaml.YAMLError as error:
        raise source.wrong("", "must be valid YAML", str(error), "correct the file") from error


class _Builder:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.open: list[tuple[Any, Scalar | None]] = []
        self.result: Any = None
        self.values = 0

    def build(self) -> Any:
        documents = 0
        events: Any = yaml.parse(self.source.text, Loader=_LOADER)
        for event in events:
            line = event.start_mark.line + 1
            self._refuse(event, line)
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.source.wrong(
                        line, "must hold one YAML document", "a second one", "split the file"
                    )
            elif isinstance(event, yaml.ScalarEvent):
                nothing = event.implicit[0] and event.value in _NOTHING
                scalar = Scalar("" if nothing else event.value)
                scalar.line = line
                self._place(scalar, line)
            elif isinstance(event, yaml.MappingStartEvent):
                table = Table()
                table.line = line
                self._push(table, line)
            elif isinstance(event, yaml.SequenceStartEvent):
                self._push([], line)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                value, key = self.open.pop()
                self._attach(value, key, line)
        return self.result

    def _refuse(self, event: Any, line: int) -> None:
        wrong = self.source.wrong
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise wrong(
                line, "must have no anchors and aliases", event.anchor, "write the values out"
            )
        if getattr(event, "tag", None):
            raise wrong(line, "must have no tags", event.tag, "write plain values")
        self.values += 1
        if self.values > MAX_VALUES:
            raise wrong(
                line, f"must hold at most {MAX_VALUES:,} values", "more", "shorten the file"
            )

    def _push(self, value: Any, line: int) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise self.source.wrong(
                line, f"must nest at most {MAX_DEPTH} lists and mappings", "deeper", "flatten it"
            )
        key = self._key(line, value)
        self.open.append((value, key))

    def _key(self, line: int, value: Any) -> Scalar | None:
        """Take the key that waits for its value; a collection cannot be a key."""
        if not self.open or not isinstance(self.open[-1][0], Table):
            return None
        table = self.open[-1][0]
        key: Scalar | None = table.__dict__.pop("pending", None)
        if key is None and not isinstance(value, Scalar):
            raise self.source.wrong(line, "must have text as keys", "a collection", "name the key")
        return key

    def _place(self, scalar: Scalar, line: int) -> None:
        key = self._key(line, scalar)
        if key is None and self.open and isinstance(self.open[-1][0], Table):
            table = self.open[-1][0]
            if scalar in table:
                raise self.source.wrong(
                    line, "must state every key once", str(scalar), "remove one of them"
                )
            table.__dict__["pending"] = scalar
            return
        self._attach(scalar, key, line)

    def _attach(self, value: Any, key: Scalar | None, line: int) -> None:
        if not self.open:
            self.result = value
        elif key is None:
            self.open[-1][0].append(value)
        else:
            self.open[-1][0][str(key)] = value
