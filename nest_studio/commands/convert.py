"""``nest-studio convert``: a fabric file in another format, and what that cannot hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.documents.errors import InputError
from nest_core.documents.overrides import setting
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.interop.formats import Assumed

__all__ = ["convert"]


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Fabric preset or file.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    read_as: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="Format of IN, unless it is clear.")
    ] = "",
    write_as: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="Format of OUT, unless its ending says.")
    ] = "",
    assume: Annotated[
        list[str] | None,
        typer.Option(
            "--assume",
            metavar="KEY=VALUE",
            help="What IN does not state: devices_per_node=4, link_bandwidth_GBps=25, …",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Convert a fabric file, saying what is lost."""
    from nest_core.bill.prices import load_prices
    from nest_core.documents.files import read_text, write_file
    from nest_core.documents.presets import preset_names, preset_path
    from nest_core.documents.schema import FabricFile, checked
    from nest_core.fabric.files import build_fabric
    from nest_core.interop.formats import read_fabric, write_fabric
    from nest_core.interop.formats.exchange import MAX_COMPARED, caveats, lost_between
    from nest_core.network import collapse

    preset = source in preset_names("fabrics")
    path = preset_path("fabrics", f"{source}.toml") if preset else Path(source)
    to = write_as or _by_ending(target)
    content = read_text(path).encode()
    if os.path.exists(target) and os.path.samefile(target, path):
        raise InputError("OUT", "must not be the file that is read", str(target), "name another")
    assumed = _assumed(assume or ())
    imported = read_fabric(content, path.name, format=read_as, assumed=assumed)
    fabric = build_fabric(checked(FabricFile, imported.document))
    exported = write_fabric(fabric, to, document=imported.document)
    write_file(target, exported.text, "OUT")
    small = fabric.devices <= MAX_COMPARED
    fields = {
        "format": to,
        "read_as": imported.format,
        "devices": fabric.devices,
        "lost": lost_between(fabric, exported, to, load_prices()),
        "notes": (*imported.notes, *(caveats(collapse(fabric)) if small else ())),
        "output": str(target),
    }
    emit(fields, as_json, _as_text)


def _assumed(settings: Iterable[str]) -> Assumed:
    """Return the assumptions with some replaced."""
    from dataclasses import asdict

    from nest_core.interop.formats import Assumed

    figures = asdict(Assumed())
    for text in settings:
        key, value = setting(text, "--assume")
        if key not in figures:
            raise InputError(
                "--assume", "must name an assumption", key, "use " + ", ".join(figures)
            )
        is_kind = isinstance(value, int) or key != "devices_per_node"
        if isinstance(value, bool) or not isinstance(value, int | float) or not is_kind:
            rule = "must be a number" if is_kind else "must be a whole number"
            raise InputError(f"--assume {key}", rule, value, "correct it")
        figures[key] = value
    return Assumed(**figures)


def _by_ending(target: Path) -> str:
    """Return the format that OUT's ending names; of several the first."""
    from nest_core.interop.formats import FORMATS

    suffix = target.suffix.lower()
    for entry in FORMATS.values():
        if entry.writes and suffix in entry.suffixes:
            return entry.name
    writable = [entry for entry in FORMATS.values() if entry.writes]
    endings = dict.fromkeys(suffix for entry in writable for suffix in entry.suffixes)
    raise InputError(
        "OUT",
        "must end in one of " + " ".join(endings),
        str(target),
        "rename it, or name the format: --to " + ", ".join(entry.name for entry in writable),
    )


def _as_text(fields: Mapping[str, Any]) -> str:
    lines = [
        f"{fields['output']}: {fields['devices']:,} devices, {fields['read_as']} to"
        f" {fields['format']}"
    ]
    for title, key in (("Assumed or left out in reading", "notes"), ("Lost in writing", "lost")):
        if fields[key]:
            lines += ["", f"{title}:", *(f"- {sentence}" for sentence in fields[key])]
    return "\n".join(lines)
