"""A Hugging Face ``config.json`` as a `Model`.

A configuration names its architecture by ``model_type``; `nest_core.workload.config_types` says
how each is read. Messages name the keys of the file.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from nest_core.documents import MAX_FILE_BYTES, InputError, decoded, require
from nest_core.documents.schema import check_plain
from nest_core.workload.config_types import TYPES, Found, Key, Reading
from nest_core.workload.models import LARGEST_SIZE, MOST_BLOCKS, Model

__all__ = ["read_config", "renamed"]

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,90}/[\w.-]{1,90}", re.ASCII)


def read_config(text: str | bytes, name: str) -> Model:
    """Return the model that a ``config.json`` describes.

    Parameters
    ----------
    text : str or bytes
        The file; at most `MAX_FILE_BYTES`, UTF-8.
    name : str
        What to call the model where the file does not name its repository.

    Raises
    ------
    InputError
        If it is no JSON object, its type is not known, or a size is missing, out of range or
        contradicts another. Messages name the keys of the file.
    """
    config = _document(text)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise InputError(
            "model_type",
            f"must be one of {', '.join(TYPES)}",
            "missing" if kind is None else kind,
            "trace its module with nest-studio trace package.module:build and use the saved trace",
        )
    reading = TYPES[kind]
    for fixed, allowed in reading.fixed.items():
        _check_fixed(config, fixed, allowed, kind)
    sizes: dict[str, Any] = {}
    used: dict[str, str] = {"family": "model_type"}

    def spelled(field: str) -> str:
        return used.get(field) or next(iter(reading.keys[field].names), field)

    try:
        for field, key in reading.keys.items():
            used[field] = _spelling(config, key)
            sizes[field] = _size(config, used[field], key, field, sizes, kind)
        if "ffn" not in sizes or ("experts" in sizes and not sizes["dense_blocks"]):
            sizes["ffn"] = 0
        return Model(
            name=_name(config, name),
            family=reading.family,
            tied=_tied(config, reading, kind),
            source=f"Hugging Face configuration, model type {kind}",
            **sizes,
        )
    except InputError as error:
        raise renamed(error, spelled) from error


def renamed(error: InputError, name: Callable[[str], str]) -> InputError:
    """Return an error about fields of `Model` with the names that a person wrote.

    Parameters
    ----------
    name : callable
        From a field of `Model` to what it is called.
    """

    def spell(text: str) -> str:
        return re.sub(r"\bmodel\.([a-z_]+)", lambda match: name(match[1]), text)

    return InputError(spell(error.field), spell(error.rule), error.value, spell(error.remedy))


def _document(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object of a text."""
    require(
        len(text) <= MAX_FILE_BYTES,
        "config.json",
        f"must hold at most {MAX_FILE_BYTES:,} bytes",
        "larger",
        "give a model's config.json, not its weights or tokens",
    )
    text = decoded(text, "config.json") if isinstance(text, bytes) else text
    try:
        config = json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise InputError(
            "config.json", "must not nest deeply", "nested too deeply", "flatten it"
        ) from error
    except InputError:
        raise
    except ValueError as error:  # a syntax error, or a number too long to read
        raise InputError(
            "config.json", "must be valid JSON", str(error), "paste the whole file, braces included"
        ) from error
    if not isinstance(config, dict):
        raise InputError(
            "config.json", "must be a JSON object", type(config).__name__, "paste the whole file"
        )
    check_plain("config.json", config)
    return config


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys occur once: which of two values counts, nobody can know."""
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError("config.json", "must name every key once", twice, "delete one")
    return table


def _check_fixed(config: Mapping[str, Any], key: str, allowed: tuple[Any, ...], kind: str) -> None:
    *tables, last = key.split(".")
    place: Any = config
    for part in tables:
        place = place.get(part)
        if place is None:
            return
        require(isinstance(place, dict), part, "must be an object", place, "correct it")
    if last in place and not any(
        place[last] is value or (type(place[last]) is type(value) and place[last] == value)
        for value in allowed
    ):
        raise InputError(
            key,
            f"must be {json.dumps(allowed[0])} in a model of type {kind}",
            place[last],
            "trace the module that has it with nest-studio trace package.module:build",
        )


def _spelling(config: Mapping[str, Any], key: Key) -> str:
    """Return the key's name in this file, empty where it is missing."""
    spellings = [name for name in key.names if name in config]
    for other in spellings[1:]:
        require(
            config[other] == config[spellings[0]],
            other,
            f"must equal {spellings[0]}, which means the same",
            config[other],
            "delete one of them",
        )
    return spellings[0] if spellings else ""


def _size(
    config: Mapping[str, Any], name: str, key: Key, field: str, sizes: Found, kind: str
) -> int:
    """Return the value of one key, or what its absence means."""
    value = config.get(name) if name else None
    if value is None:
        default = key.missing if not name or key.null is None else key.null
        if default is None:
            raise InputError(
                name or key.names[0],
                f"is required in a model of type {kind}",
                None if name else "missing",
                "add it",
            )
        return default(sizes) if callable(default) else default
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(name, "must be a whole number", value, "correct it")
    most = MOST_BLOCKS if field == "blocks" else LARGEST_SIZE
    require(value >= key.least, name, f"must be at least {key.least}", value, "correct it")
    require(value <= most, name, f"must be at most {most:,}", value, "correct it")
    return value * int(sizes[key.times]) if key.times else value


def _tied(config: Mapping[str, Any], reading: Reading, kind: str) -> bool:
    value = config.get("tie_word_embeddings")
    if value is None and reading.tied is not None:
        return reading.tied
    if not isinstance(value, bool):
        raise InputError("tie_word_embeddings", "must be true or false", value, "correct it")
    return value


def _name(config: Mapping[str, Any], name: str) -> str:
    """Return the repository that the file names, where it is one, or the name given."""
    repository = config.get("_name_or_path")
    return (
        repository
        if isinstance(repository, str) and _REPOSITORY.fullmatch(repository)
        else name or "config.json"
    )
