"""Failure files by name, path or tables, over the base that they name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nest_core.documents.errors import require
from nest_core.documents.overrides import assign
from nest_core.documents.presets import kept_per_edition, load_toml, named_file
from nest_core.documents.schema import checked
from nest_core.documents.schema.failures import FailureFile

__all__ = ["DEFAULT", "load_failures"]

DEFAULT = "llama3-405b"


def load_failures(
    name: str | Mapping[str, Any] = DEFAULT,
    folder: Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> FailureFile:
    """Return published failure rates by name, or a file of one's own.

    A file may name another as its ``base``: it then states what of ``[recovery]`` differs, and its
    causes replace those of the base that strike the same, or all if it calls itself ``complete``.

    Parameters
    ----------
    name : str or mapping
        A preset, a path, or a file's tables.
    folder : Path, optional
        Where a relative path starts; without it names must be presets'.
    changes : mapping, optional
        Dotted keys to values, over it.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    if name == DEFAULT and not changes:
        return _preset(name)
    document = _document(name, folder, "failures")
    for key, value in (changes or {}).items():
        assign(document, key, value)
        if key.endswith(".value"):  # a new figure, without the source of the old one
            assign(document, f"{key.removesuffix('value')}source", "set by hand")
    return checked(FailureFile, document, "failures.")


@kept_per_edition(maxsize=1)
def _preset(name: str) -> FailureFile:
    """Return what scenarios have that name none, which is asked for a lot."""
    return checked(FailureFile, _document(name, None, "failures"), "failures.")


def _document(
    name: str | Mapping[str, Any], folder: Path | None, field: str, above: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a file over its base, and that over its own; ``above``: files that led here."""
    if isinstance(name, Mapping):
        document = dict(name)
    else:
        path = named_file("failures", name, folder, field=field)
        require(str(path) not in above, field, "must not lead back to itself", name, "name another")
        document, above = load_toml(path), (*above, str(path))
    base = document.pop("base", None)
    if base is None:
        return document
    require(isinstance(base, str), "failures.base", "must be a preset's name", base, "name one")
    return _merged(_document(base, folder, "failures.base", above), document)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return a file over its base; what is no list or table is left for the check to refuse."""
    merged = below | above
    causes, recovery = above.get("cause", []), above.get("recovery", {})
    if isinstance(causes, list) and all(isinstance(cause, dict) for cause in causes):
        struck = {str(cause.get("strikes")) for cause in causes}
        others = [
            cause
            for cause in below["cause"]
            if cause["strikes"] not in struck and above.get("complete") is not True
        ]
        merged["cause"] = [*causes, *others]
    if isinstance(recovery, dict):
        merged["recovery"] = below["recovery"] | recovery
    return merged
