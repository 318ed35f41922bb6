"""The text of a preset of a curve."""

from __future__ import annotations

from collections.abc import Mapping

from nest_core.documents.overrides import toml_document
from nest_core.hardware.collectives.curves import Curve
from nest_core.hardware.collectives.library import curve_document

__all__ = ["curve_toml"]


def curve_toml(curve: Curve, notes: Mapping[str, object], facts: str) -> str:
    """Return a curve as the text of a preset; `curve_from` reads it back.

    Parameters
    ----------
    curve : Curve
    notes : Mapping
        Provenance: keys to strings, numbers or lists of them.
    facts : str
        Where link rates and the like come from.
    """
    provenance = {
        key: float(f"{note:.4g}") if isinstance(note, float) else note
        for key, note in notes.items()
    }
    return toml_document(curve_document(curve) | {"facts": facts, "provenance": provenance})
