"""A Hugging Face ``config.json`` as a `Model`.

A configuration names its architecture by ``model_type``. A file of ``presets/families`` says how a
type is read: which keys hold which sizes (``[sizes]``), what keys must say for its trace to hold
(``[fixed]``), which trace other values mean (``[[variants]]``), and what a configuration has that
graphs lack (``[missing]``). Of a model of text and pictures the text part is read. Keys that change
neither sizes nor operators (rotary frequencies, token ids, …) are not looked at. Messages name the
keys of the file.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from nest_core.documents import (
    MAX_FILE_BYTES,
    InputError,
    decoded,
    kept_per_edition,
    load_toml,
    preset_names,
    preset_path,
    require,
)
from nest_core.documents.schema import check_plain
from nest_core.workload.models import LARGEST_SIZE, MOST_BLOCKS, Model

__all__ = ["families_by_type", "read_config", "renamed"]

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,90}/[\w.-]{1,90}", re.ASCII)
_TEXT_PARTS = ("text_config", "llm_config", "language_config")
_STORED = "quantization_config"


@kept_per_edition(1)
def families_by_type() -> dict[str, dict[str, Any]]:
    """Return the files of ``presets/families`` by the ``model_type`` that they read."""
    files = {
        name: load_toml(preset_path("families", f"{name}.toml"))
        for name in preset_names("families")
    }
    return {
        kind: {"trace": name} | file
        for name, file in files.items()
        for kind in file.get("types", ())
    }


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
        If it is no JSON object, no language model's, its type is not known, or a size is missing,
        out of range or contradicts another. Messages name the keys of the file.
    """
    document = _document(text)
    _check_whole(document)
    config, missing = _text_part(document)
    kind = config.get("model_type")
    types = families_by_type()
    if not isinstance(kind, str) or kind not in types:
        raise InputError(
            "model_type",
            f"must be one of {', '.join(types)}",
            "missing" if kind is None else kind,
            "trace its module with nest-studio trace package.module:build and use the saved trace",
        )
    family = types[kind]
    for fixed, allowed in family.get("fixed", {}).items():
        _check_fixed(config, fixed, allowed, kind)
    missing += [words for key, words in family.get("missing", {}).items() if config.get(key)]
    sizes: dict[str, Any] = {}
    used: dict[str, str] = {"family": "model_type"}
    keys = {field: _entry(entry) for field, entry in family["sizes"].items()}

    def spelled(field: str) -> str:
        return used.get(field) or next(iter(keys.get(field, {}).get("keys", [])), field)

    try:
        for field, entry in keys.items():
            used[field] = _spelling(config, entry["keys"])
            sizes[field] = _size(config, used[field], entry, field, sizes, kind)
        if sizes.get("full_every") == 1:  # no block is local
            sizes |= {"full_every": 0, "window": 0}
        if "ffn" not in sizes or (
            "experts" in sizes and not sizes.get("dense_blocks") and sizes.get("moe_every", 1) == 1
        ):
            sizes["ffn"] = 0
        return Model(
            name=_name(document, name),
            family=_trace(config, family),
            tied=_tied(config, family, kind),
            source=_source(document, config, missing),
            **{field: size for field, size in sizes.items() if field[0] != "_"},
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


def _check_whole(config: Mapping[str, Any]) -> None:
    """Refuse what describes a part of a model."""
    base = config.get("base_model_name_or_path")
    require(
        "peft_type" not in config,
        "config.json",
        "must describe a whole model",
        f"an adapter, peft_type {config.get('peft_type')}",
        f"give that of the model it adapts{f', {base}' if isinstance(base, str) else ''}",
    )
    is_tower = "vocab_size" not in config and {"patch_size", "image_size"} & config.keys()
    require(
        not is_tower or config.get("model_type") in families_by_type(),
        "config.json",
        "must describe a language model",
        f"a vision tower, model_type {config.get('model_type')}",
        "give that of the whole model, whose text part is read",
    )


def _text_part(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what describes the language model, and names of the parts beside it."""
    part = next((key for key in _TEXT_PARTS if isinstance(config.get(key), dict)), None)
    if part is None:
        return config, []
    others = [
        key.removesuffix("_config").replace("_", " ") + " part"
        for key, value in config.items()
        if key.endswith("_config") and isinstance(value, dict) and key not in (part, _STORED)
    ]
    # Classes have defaults that contradict each other: a head is shared where both parts say so.
    if [table.get("tie_word_embeddings") for table in (config, config[part])] in (
        [True, False],
        [False, True],
    ):
        return config[part] | {"tie_word_embeddings": False}, others
    return {"tie_word_embeddings": config.get("tie_word_embeddings")} | config[part], others


def _source(config: Mapping[str, Any], part: Mapping[str, Any], missing: list[str]) -> str:
    words = f"Hugging Face configuration, model type {part['model_type']}"
    if missing:
        words += f"; without the {' and the '.join(missing)}"
    if isinstance(stored := config.get(_STORED), dict):
        method = str(stored.get("quant_method", "another format"))[:40]
        words += f"; its checkpoint stores weights in {method}, which changes no size"
    if config.get("tie_word_embeddings") and not part.get("tie_word_embeddings"):
        words += "; a head of its own, as its text part says, though the whole one says tied"
    return words[:1000]


def _trace(config: Mapping[str, Any], family: Mapping[str, Any]) -> str:
    """Return the trace of a family that the configuration's values mean."""
    for variant in family.get("variants", ()):
        if all((config.get(key) or 0) == value for key, value in variant["where"].items()):
            return str(variant["trace"])
    return str(family["trace"])


def _check_fixed(config: Mapping[str, Any], key: str, allowed: list[Any], kind: str) -> None:
    *tables, last = key.split(".")
    place: Any = config
    for part in tables:
        place = place.get(part)
        if place is None:
            return
        require(isinstance(place, dict), part, "must be an object", place, "correct it")
    value = place.get(last)
    if value is not None and not any(
        type(value) is type(option) and value == option for option in allowed
    ):
        raise InputError(
            key,
            f"must be {json.dumps(allowed[0])} in a model of type {kind}",
            value,
            "trace the module that has it with nest-studio trace package.module:build",
        )


def _entry(entry: Any) -> dict[str, Any]:
    """Return where a size stands: its spellings under ``keys``, and what their absence means."""
    table = entry if isinstance(entry, dict) else {"keys": entry}
    keys = table.get("keys", [])
    return {**table, "keys": [keys] if isinstance(keys, str) else keys}


def _spelling(config: Mapping[str, Any], keys: list[str]) -> str:
    """Return the key's name in this file, empty where it is missing."""
    spellings = [name for name in keys if name in config]
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
    config: Mapping[str, Any],
    name: str,
    entry: Mapping[str, Any],
    field: str,
    sizes: Mapping[str, int],
    kind: str,
) -> int:
    """Return the value of one key, or what its absence means."""
    value = config.get(name) if name else None
    if value is None:
        default = entry.get("null", entry.get("missing")) if name else entry.get("missing")
        if default is None:
            raise InputError(
                name or entry["keys"][0],
                f"is required in a model of type {kind}",
                None if name else "missing",
                "add it",
            )
        return default if isinstance(default, int) else _derived(default, sizes)
    if isinstance(value, list) and "every" in entry:
        value = _period(value, entry["every"], name, sizes["blocks"])
    if isinstance(value, list) and (word := entry.get("leading")):
        require(
            word not in value[value.count(word) :],
            name,
            "must begin so",
            f"{word} later",
            "sort it",
        )
        value = value.count(word)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(name, "must be a whole number", value, "correct it")
    most = MOST_BLOCKS if field == "blocks" else LARGEST_SIZE
    least = entry.get("min", 1)
    require(value >= least, name, f"must be at least {least}", value, "correct it")
    require(value <= most, name, f"must be at most {most:,}", value, "correct it")
    return value * sizes[entry["times"]] if "times" in entry else value


def _derived(rule: str, sizes: Mapping[str, int]) -> int:
    """Return a size that others give: ``heads``, ``4 * hidden`` or ``hidden / heads``."""
    first, operation, second = (*rule.split(), "*", "1")[:3]
    factors = [int(part) if part.isdecimal() else sizes[part] for part in (first, second)]
    if operation == "*":
        return factors[0] * factors[1]
    require(
        factors[0] % factors[1] == 0,
        f"model.{first}",
        f"must be divisible by model.{second} = {factors[1]}",
        factors[0],
        "correct one, or give model.head_dim",
    )
    return factors[0] // factors[1]


def _period(listed: list[Any], word: str, name: str, blocks: int) -> int:
    """Return that every so many blocks are what a word says; 0 where none is.

    Parameters
    ----------
    listed : list
        A word for every block; or, where the word is ``places``, blocks from 0.
    """
    places = [place for place, entry in enumerate(listed, 1) if entry == word]
    if word == "places":
        places = [place + 1 for place in listed if isinstance(place, int)]
    every = places[0] if places else 0
    require(
        places == (list(range(every, blocks + 1, every)) if every > 0 else [])
        and (word == "places" or len(listed) == blocks),
        name,
        f"must repeat through all {blocks} blocks",
        f"{word} at {', '.join(map(str, places[:8])) or 'none'} of {len(listed)}",
        "trace the module that has it with nest-studio trace package.module:build",
    )
    return every


def _tied(config: Mapping[str, Any], family: Mapping[str, Any], kind: str) -> bool:
    value = config.get("tie_word_embeddings")
    if value is None and "tied" in family:
        return bool(family["tied"])
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
