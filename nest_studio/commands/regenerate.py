"""``nest-studio regenerate``: write again what the project keeps of its measurements.

For people who change the costs, in a checkout with the whole data beside it (``../shared/data``);
``nest-studio validate`` prints the same figures and writes nothing.

* ``regenerate collectives``: its part of ``docs/validation.md``; ``--fit`` fits the presets of
  ``presets/collectives`` again first, from the training half.
* ``regenerate training``: its part of ``docs/validation.md``, the picture, and in
  ``presets/validation`` the error bands (``regions.toml``), how far memory scatters
  (``memory.toml``) and which shapes of plans were measured (``shapes.toml``); ``--fit`` fits the
  families' parameters (``presets/estimators``) again first, from the rows that may be fitted, and
  what is known of families and stacks (``presets/validation/posterior.toml``), from all.
* ``regenerate fabric``: its part of ``docs/validation.md``; nothing is fitted to it.
* ``regenerate settings``: its part of ``docs/validation.md``, and what settings were worth where
  they were measured (``presets/validation/settings.toml``).
* ``regenerate optima``: its part of ``docs/validation.md``, some 800 searches (minutes).
"""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from nest_core.errors import InputError
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["regenerate"]


def regenerate(
    target: Annotated[
        str, typer.Argument(help="collectives, training, fabric, settings or optima.")
    ],
    as_json: JsonFlag = False,
    fit: Annotated[bool, typer.Option("--fit", help="Fit the presets again first.")] = False,
    date: Annotated[str, typer.Option(help="Date of the fit, for its provenance.")] = "",
) -> None:
    """Write docs/validation.md, error bands and fitted presets again (in a checkout)."""
    from nest_studio.commands import regenerate_files

    parts = {
        "collectives": regenerate_files.collectives,
        "training": regenerate_files.training,
        "fabric": regenerate_files.fabric,
        "settings": regenerate_files.settings,
        "optima": regenerate_files.optima,
    }
    if target not in parts:
        rule = f"must be one of {', '.join(parts)}"
        raise InputError("regenerate", rule, target, "name one of them")
    if not regenerate_files.DOCUMENT.parent.is_dir():
        raise InputError("regenerate", "needs a checkout", "an installed package", "clone one")
    if fit and target == "fabric":
        raise InputError("--fit", "must stand after collectives or training", target, "drop it")
    day = (date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()) if fit else None
    files = [str(path) for path in parts[target](day)]
    emit({"files": files}, as_json, lambda fields: "\n".join(fields["files"]))
