"""The words of a command in a shell script, as far as launch scripts use the shell.

Line continuations, comments, quotes, variables and arrays that the text sets; what it does not set
stays as it is written. No command runs, and conditions are not evaluated.
"""

import re
import shlex
from collections.abc import Mapping

from nest_core.documents.errors import InputError

__all__ = ["ends_values", "has_flags", "may_hold_flags", "script_words"]

_FLAG = re.compile(r"(?:^|[\s\"'(])--[A-Za-z]")
_NAME = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_SETTING = re.compile(r"^([A-Za-z_]\w*)(\+?)=(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-=]([^}]*))?\}|([A-Za-z_]\w*))")
_UNSET = re.compile(r"\$(?:\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?|[@*])")
"""A variable or an array of which the text says nothing."""
_EXPANDED = re.compile(r"(?i)\$.*(args|arguments|extra|flags|opts|options|params)\b.*|\$[@*]")
"""By its name it holds flags."""
_ENDS_COMMAND = re.compile(r"\d*(?:[|;<>]|&[&>]?).*|then|el(?:se|if)|fi|do|done", re.DOTALL)


def has_flags(text: str) -> bool:
    """Whether a text holds command-line flags."""
    return _FLAG.search(text) is not None


def script_words(text: str) -> tuple[list[str], list[str]]:
    """Return the shell's words, variables and arrays that the text sets put in; flags between if
    and fi.

    Comments are left out, and a quoted command (``ssh node1 'torchrun --nnodes 2'``) is its words.
    """
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    variables: dict[str, str] = {}
    words: list[str] = []
    conditional: list[str] = []
    depth = 0
    for word in _split(joined, comments=True):
        depth = max(0, depth + (word == "then") - (word == "fi"))
        if depth:
            conditional += (flag.replace("_", "-") for flag in _NAME.findall(word))
        setting = _SETTING.match(word)
        if setting and not word.startswith("-"):
            name, adds, value = setting.groups()
            if value.startswith("("):  # an array: what it holds follows
                variables.setdefault(name, "")
                words.append(value[1:])
            else:
                variables[name] = (variables.get(name, "") if adds else "") + _filled(
                    value, variables
                )
        else:
            words.append(word)
    filled = (part.strip("\n") for word in words for part in _opened(word, variables))
    bare = (word[:-1] if re.fullmatch(r"[\w.-]+\)", word) else word for word in filled)
    result = [
        inner
        for word in bare
        if word not in ("", "\\", "(", ")")
        for inner in (script_words(word)[0] if " " in word and has_flags(word) else [word])
    ]
    return result, list(dict.fromkeys(conditional))


def _split(text: str, *, comments: bool) -> list[str]:
    try:
        words = shlex.split(text, comments=comments)
    except ValueError as error:
        raise InputError("plan", "must close its quotes", text, "add the missing one") from error
    return [part for word in words for part in re.split(r"(?<=.)(;)$", word) if part]


def _opened(word: str, variables: Mapping[str, str]) -> list[str]:
    """Return a word with what its variables hold: several words where that is flags."""
    array = re.fullmatch(r"\$\{(\w+)\[[@*]\]\}", word)
    if array and array[1] in variables:
        return []
    filled = _filled(word, variables)
    spaced = word.startswith("--") and len(word.partition("=")[0].split()) > 1
    return (
        [filled]
        if not spaced and (filled == word or not has_flags(filled))
        else _split(filled, comments=False)
    )


def _filled(word: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        return (
            match[2]
            if not variables.get(name) and match[2] is not None
            else variables.get(name, match[0])
        )

    return _VARIABLE.sub(value, word)


def ends_values(word: str) -> bool:
    """Whether a flag's values end before a word: a flag, flags in a variable, a next command."""
    return bool(word.startswith("--") or _EXPANDED.fullmatch(word) or _ENDS_COMMAND.fullmatch(word))


def may_hold_flags(word: str) -> bool:
    """Whether a word is a variable that the text does not set and whose name speaks of flags."""
    return bool(_UNSET.fullmatch(word) and _EXPANDED.fullmatch(word))
