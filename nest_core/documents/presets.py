"""What names lead to: the one locator of presets and of people's files, and the reader of TOML.

Presets are TOML files in folders by kind (``accelerators/``, ``fabrics/``, ``models/``,
``paper/``, ...). In a checkout they lie in ``presets/`` at the top; the wheel carries
them as ``nest_core/presets_data/``. What a file means is its reader's business: nothing
here looks inside.

Names reach the studio in addresses, widgets, uploads and notebooks of strangers. They lead to
presets and nowhere else, unless the caller gives a folder where paths start (`named_file`): the
command line does, and Python on one's own machine; no page and no worker process of one.

A cache with two bounds: how many answers it keeps, and how much memory they take together.

`functools.lru_cache` counts answers only. Where one may be a kilobyte or a megabyte, as what is
asked for decides, a number of them is no bound.
"""

import copy
import hashlib
import os
import re
import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from nest_core.documents.errors import InputError, require
from nest_core.documents.files import is_packed, read_text

__all__ = [
    "edition",
    "kept_per_edition",
    "kept_within",
    "load_toml",
    "look_again",
    "looks_like_path",
    "named_file",
    "parse_toml",
    "preset_names",
    "preset_path",
]


MAX_KEY_PARTS = 16
"""A dotted key has at most this many parts."""

# tomllib keeps every prefix of a dotted key: 400 kB of "a.a.a..." fill 100 GB of memory.
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(
    rf"(?<![A-Za-z0-9_\\-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}"
)

LOOK_EVERY_S = 10.0

P = ParamSpec("P")
T = TypeVar("T")

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@lru_cache(maxsize=1)
def _root() -> Path:
    package = Path(__file__).resolve().parents[1]
    shipped = package / "presets_data"
    return shipped if shipped.is_dir() else package.parent / "presets"


def preset_path(*parts: str) -> Path:
    """Where a preset lies, whether or not it exists.

    Parameters
    ----------
    *parts : str
        Folder names and the file name with its ending: ``"paper", "figure5.toml"``.

    Returns
    -------
    pathlib.Path
        Absolute path below the folder of presets.

    Raises
    ------
    InputError
        If a part could lead out of that folder.

    Examples
    --------
    >>> preset_path("models", "bert.toml").name
    'bert.toml'
    """
    for part in parts:
        require(
            _PLAIN_NAME.fullmatch(part),
            "preset name",
            "must consist of letters, digits and . _ + -",
            part,
            "give the name of a preset as it is listed",
        )
    return _root().joinpath(*parts)


def preset_names(kind: str, ending: str = ".toml") -> tuple[str, ...]:
    """Names of the presets of one kind: the stems of its files, sorted.

    A kind without presets has no names; that is not an error.
    """
    folder = preset_path(kind)
    try:
        changed_ns = folder.stat().st_mtime_ns
    except FileNotFoundError:
        return ()
    return _names(folder, ending, changed_ns)


@lru_cache(maxsize=64)
def _names(folder: Path, ending: str, changed_ns: int) -> tuple[str, ...]:
    """Stems of a folder's files; a page asks for them dozens of times, so once per change."""
    return tuple(sorted(path.stem for path in folder.glob(f"*{ending}")))


def edition() -> str:
    """Return which presets there are: another text once a file was added, removed or written to.

    Looked up every ten seconds, and when `look_again` was called, as for every new visitor.
    """
    return _edition(int(time.monotonic() / LOOK_EVERY_S))


def look_again() -> None:
    """Notice at once what was just written to a preset."""
    _edition.cache_clear()


@lru_cache(maxsize=1)
def _edition(_time: int) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for folder, _, names in sorted(os.walk(_root())):
        for name in sorted(names):
            try:
                status = Path(folder, name).stat()
            except FileNotFoundError:  # an editor's own, gone since it was listed
                continue
            digest.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def kept_per_edition(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """As `functools.lru_cache`, for what is read from presets: computed anew when they change."""

    def kept(function: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=maxsize)
        def of(_edition: str, *args: P.args, **kwargs: P.kwargs) -> T:
            return function(*args, **kwargs)

        @wraps(function)
        def now(*args: P.args, **kwargs: P.kwargs) -> T:
            return of(edition(), *args, **kwargs)  # type: ignore[arg-type]  # as lru_cache asks

        return now

    return kept


def named_file(
    kind: str,
    name: str,
    folder: Path | None,
    *,
    field: str,
    ending: str = ".toml",
    file: str = "",
    table: bool = False,
    is_path: Callable[[str, Path], bool] | None = None,
) -> Path:
    """Return the file that a name leads to: the one place where that is decided.

    Parameters
    ----------
    kind : str
        Folder of presets; a preset's name always means the preset.
    name : str
    folder : Path or None
        Where relative paths start; None if the name may be a preset's only, which then holds for
        every name, whether or not there is a file behind it.
    field : str
        What messages call the name.
    ending : str
        Of the presets.
    file : str
        What files may be, for messages; by default a file with the presets' ending.
    table : bool
        Whether a table could stand in place of the name, for messages.
    is_path : callable (name, path) -> bool, optional
        Which names are taken for paths, besides those of packed files, whose reader says what to
        do; by default those with the ending, a slash, or a file.

    Raises
    ------
    InputError
        If there is no such preset, and the name is no path or may not be one.
    """
    names = preset_names(kind, ending)
    if name in names:
        return preset_path(kind, name + ending)
    choices = ["a preset" if folder is not None or table else "one of the presets"]
    if folder is not None:
        path = folder / name
        is_file = is_path(name, path) if is_path else looks_like_path(name, path, ending)
        if is_file or is_packed(name):
            return path
        choices.append(f"a path to a {file or f'{ending} file'}")
    rule = " or ".join([", ".join(choices), "a table"] if table else choices)
    raise InputError(
        field, f"must be {rule}", name, f"pick {', '.join(names) or 'none: there is no preset yet'}"
    )


def looks_like_path(name: str, path: Path, ending: str = ".toml") -> bool:
    """Whether a name has the ending or a slash, or there is a file of that name."""
    return name.endswith(ending) or "/" in name or (name != "" and os.path.exists(path))


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file that a person named.

    Parameters
    ----------
    path : pathlib.Path
        The file, as `nest_core.documents.files.read_text` takes it.

    Returns
    -------
    dict
        The document as plain Python values.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, is not UTF-8, is not TOML or is
        nested too deeply.
    """
    return (
        copy.deepcopy(_preset(path))
        if path.parent.parent == _root()
        else parse_toml(read_text(path), str(path))
    )


@kept_per_edition(128)
def _preset(path: Path) -> dict[str, Any]:
    return parse_toml(read_text(path), str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return the document of a TOML text.

    Parameters
    ----------
    name : str
        Where it is from, for messages.

    Raises
    ------
    InputError
        If it is not TOML, has very long dotted keys or is nested too deeply.
    """
    long_key = _LONG_KEY.search(text)
    if long_key:
        raise InputError(
            name, f"must have keys of at most {MAX_KEY_PARTS} parts", long_key[0], "shorten the key"
        )
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise InputError(
            name, "must not nest tables and arrays deeply", "nested too deeply", "flatten it"
        ) from error
    except ValueError as error:  # a syntax error, or a number too long to read
        raise InputError(name, "must be valid TOML", str(error), "correct the file") from error


def kept_within(
    entries: int,
    most_bytes: int,
    size: Callable[[T], int],
    content: Callable[..., Hashable] | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the last answers of a function, as far as both bounds allow.

    Parameters
    ----------
    entries : int
    most_bytes : int
        Of all answers that are kept; a single one may be larger.
    size : callable (answer) -> int
        What one takes, bytes.
    content : callable, optional
        Takes what the function takes, and returns what its answer depends on; where it is left
        out, the arguments, which are hashable then.
    """

    def kept(function: Callable[P, T]) -> Callable[P, T]:
        cache: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        total = 0
        lock = threading.Lock()

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            nonlocal total
            key = content(*args, **kwargs) if content else (args, tuple(kwargs.items()))
            with lock:
                if key in cache:
                    cache.move_to_end(key)
                    return cache[key][0]
            value = function(*args, **kwargs)
            with lock:
                if key not in cache:
                    cache[key] = value, size(value)
                    total += cache[key][1]
                while len(cache) > 1 and (len(cache) > entries or total > most_bytes):
                    total -= cache.popitem(last=False)[1][1]
            return value

        return answer

    return kept
