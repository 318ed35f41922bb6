"""The result of a study as a Parquet file: its rows, and which study and version they are of."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.studies.study import Study

__all__ = ["rows_from", "to_parquet"]

MOST_BYTES = 200_000_000


def to_parquet(study: Study, rows: Sequence[Mapping[str, Any]], version: str) -> bytes:
    """A file that pandas, DuckDB and `rows_from` read; ``version`` is that of Nest Studio."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    frame.attrs = {"version": version, "name": study.name, "study": _content(study)}
    packed = io.BytesIO()
    frame.to_parquet(packed, index=False)
    return packed.getvalue()


def rows_from(study: Study, data: bytes, version: str) -> list[dict[str, Any]]:
    """The rows of a file that was written of a study, wherever it ran.

    Raises
    ------
    InputError
        If it is no such file, of another study, or of another version of the model.
    """
    import pandas as pd

    if len(data) > MOST_BYTES:
        raise InputError(
            "result", f"must have at most {MOST_BYTES:,} bytes", len(data), "take points out"
        )
    try:
        frame = pd.read_parquet(io.BytesIO(data))
        written, name, content = (frame.attrs[key] for key in ("version", "name", "study"))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            "result",
            "must be a Parquet file that nest-studio sweep wrote",
            f"another ({type(error).__name__})",
            "run the study again",
        ) from error
    if content != _content(study):
        raise InputError(
            "result",
            f"must be of this study and of version {version} with its presets",
            f"of {name}, version {written}",
            "run the study again, or open the one that it is of",
        )
    plain = frame.astype(object)
    found: list[dict[str, Any]] = plain.where(plain.notna(), None).to_dict("records")
    return found


def _content(study: Study) -> str:
    """Of everything that its rows depend on."""
    parts = [[study.key(member, {}), member.weight] for member in study.members]
    axes = [[axis.key, list(axis.values), list(axis.changes)] for axis in study.axes]
    whole = [parts, axes, list(study.metrics), sorted(study.constraints.items())]
    return hashlib.sha256(json.dumps(whole, default=str, sort_keys=True).encode()).hexdigest()
