"""What a launch command or a configuration file says, by the names of settings.

Read are flags (``--tensor-model-parallel-size 4``, ``--parallelism.tensor_parallel_degree=4``),
overrides (``model.tensor_model_parallel_size=4``), lines of shell, TOML and YAML
(``export TENSOR_MODEL_PARALLEL=4``, ``seq_len = 8192``, ``seq_length: 8192``) and JSON of
DeepSpeed. A later one goes before an earlier.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nest_core.costs.megatron_job import REQUIRED
from nest_core.costs.shell import ends_values, has_flags, may_hold_flags, script_words
from nest_core.documents import InputError, parsed_json

__all__ = ["is_whole", "launch_words", "settings_in"]

_SETTING = re.compile(
    r"""^\s*(?:export\s+|:\s*"?\$\{|-\s+)?([A-Za-z_][\w.]*)\s*(?::=|=|:)\s*"""
    r"""["']?([\w.+-]+)["']?\}?"?\s*(?:[#;].*)?$""",
    re.MULTILINE,
)
_OVERRIDE = re.compile(r"(?<![\w.$-])\+{0,2}([A-Za-z_][\w.]*)=([\w.+-]+)(?=\s|$)")
_LISTS = ("recompute_modules",)
_MODEL = ("model", "model.name", "model_recipe_name", "module")


def settings_in(text: str) -> dict[str, str]:
    """Return a text's settings, in lower case with underscores, without groups before names.

    Raises
    ------
    InputError
        For JSON that is none, and for quotes that are not closed.

    Examples
    --------
    >>> settings_in("torchrun train.py --training.seq-len=8192 --sequence-parallel --num-layers 4")
    {'seq_len': '8192', 'sequence_parallel': 'True', 'num_layers': '4'}
    """
    if text.lstrip().startswith("{"):
        return dict(_flat(parsed_json(text, "--launch", "write the JSON of DeepSpeed"), ""))
    pairs = (*_OVERRIDE.findall(text), *_SETTING.findall(text))
    settings = {_name(key): value for key, value in pairs}
    settings |= dict(_flags(launch_words(text)))
    model = " ".join(
        settings[name] for name in (*_MODEL, "flavor", "model_size") if name in settings
    )
    return {name: value for name, value in settings.items() if name not in _MODEL} | (
        {"model": model} if model else {}
    )


def is_whole(text: str, settings: Mapping[str, str]) -> bool:
    """Return whether a text with these settings is a command that starts Megatron-LM as it is."""
    return (
        has_flags(text)
        and settings.keys() >= REQUIRED
        and not any(map(may_hold_flags, launch_words(text)))
    )


def launch_words(command: str) -> list[str]:
    """Return the words of a command; errors are of the option that it was given with."""
    try:
        return script_words(command)[0]
    except InputError as error:
        raise InputError("--launch", error.rule, error.value, error.remedy) from error


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    queue = list(reversed(words))
    while queue:
        word = queue.pop()
        if not word.startswith("--"):
            continue
        flag, equals, value = word[2:].partition("=")
        values = [value] if equals else []
        while queue and not equals and not ends_values(queue[-1]):
            values.append(queue.pop())
        name = _name(flag)  # behind one value, or a switch, a program's name may follow
        yield name, " ".join(values if name in _LISTS else values[:1]) or "True"


def _name(text: str) -> str:
    group, _, last = text.lower().replace("-", "_").rpartition(".")
    return "model.name" if group.endswith("model") and last == "name" else last


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield leaves of a document.

    Groups stay before names, as DeepSpeed's names mean little alone.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, str | int | float | bool):
        yield path.lower(), value if isinstance(value, str) else json.dumps(value)
