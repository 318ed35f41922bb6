"""The studio's own files: TOML in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest_core.documents.presets import parse_toml
from nest_core.documents.toml_text import toml_document
from nest_core.fabric import Fabric
from nest_core.interop.formats.values import Document, Exported, Source

__all__ = ["read_toml", "write_toml"]


def read_toml(source: Source) -> tuple[Document, tuple[str, ...]]:
    """The document as it stands; `nest_core.documents.schema` checks it."""
    return parse_toml(source.text, source.name), ()


def write_toml(fabric: Fabric, document: Mapping[str, Any] | None = None) -> Exported:
    """The fabric's document as TOML; without one, `Fabric.document`. Nothing is lost."""
    return Exported(toml_document(fabric.document() if document is None else document), ())
