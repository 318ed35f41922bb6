"""Which designs a bill weighs: a scenario or a fabric, and what it is set beside.

A design beside another is named in short: ``4:1``, a ratio of the innermost tier of the same
fabric; a topology of the same devices and NICs (`nest_core.fabric.same_size`); ``scale-up 72``,
the same fabric with nodes of another size; ``spine=LPO``, with other optics of a tier; or another
fabric, a preset's name or a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, looks_like_path, preset_names
from nest_core.documents.units import parse_ratio
from nest_core.fabric import Clos, Fabric
from nest_core.fabric.same_size import KINDS, same_size, size_of, with_scale_up
from nest_core.scenario import OF_PRICES, Scenario, fabric_document, scenario_document
from nest_core.studies.solving import Stop, Tell, silent
from nest_core.studies.whole_bill import (
    WholeBill,
    bill_of_fabric,
    bill_of_scenario,
    scenario_prices,
)

__all__ = ["MOST", "asked_of", "beside", "whole_bills"]

MOST = 12
"""Designs beside each other."""
_SCALE_UP = re.compile(r"scale-up (\d{1,6})")
_OPTICS = re.compile(r"(\w+)=(\w+)")


def asked_of(name: str, overrides: Mapping[str, Any], folder: Path | None) -> Scenario:
    """Return what a name means: a scenario where there is one, else one of a fabric alone."""
    if name in preset_names("scenarios") or _is_scenario(name, folder):
        document, inside = scenario_document(name, folder)
        return Scenario(document, overrides, inside)
    for key in overrides:
        if key != "prices" and not key.startswith(("fabric.", OF_PRICES)):
            raise InputError(
                "--set",
                "must name a key of the fabric or of the prices, where there is no scenario",
                key,
                "start it with fabric. or prices.",
            )
    return Scenario({"fabric": fabric_document(name, folder)}, overrides, folder)


def _is_scenario(name: str, folder: Path | None) -> bool:
    if folder is None or name in preset_names("fabrics"):
        return False
    path = folder / name
    if not looks_like_path(name, path) or path.suffix != ".toml" or not path.is_file():
        return False
    return "workload" in load_toml(path)


def whole_bills(
    asked: Scenario,
    names: Sequence[str] = (),
    *,
    tokens: float | None = None,
    failures: bool = False,
    progress: Tell = silent,
    stop: Stop | None = None,
) -> list[WholeBill]:
    """The bills of a design, or of those that are set beside each other, in their order.

    Parameters
    ----------
    asked : Scenario
        With ``fabric`` alone it is not planned.
    names : sequence of str
        Designs in short; empty for the one alone.
    tokens, failures
        As `bill_of_scenario` takes it.
    progress, stop
        See `search`.
    """
    if len(names) > MOST:
        raise InputError("--compare", f"must name at most {MOST} designs", len(names), "drop some")
    if len(set(names)) < len(names):
        raise InputError("--compare", "must name every design once", list(names), "drop one")
    changes = _buildable(asked, names) if names else {"": {}}
    found = []
    for number, (name, change) in enumerate(changes.items()):
        progress(number / len(changes), name)
        found.append(_bill(asked, name, change, tokens, failures, stop))
    return found


def _buildable(asked: Scenario, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What makes each design; one that cannot be built is refused before any is planned."""
    fabric, found = asked.fabric, {}
    for name in names:
        try:
            found[name] = _change(asked, fabric, name)
            _ = replace(asked, overrides=_over(asked, found[name])).fabric
        except InputError as error:
            if error.field.startswith("--"):
                raise
            rule = f"must name designs that can be built ({error.field} {error.rule})"
            raise InputError("--compare", rule, name, error.remedy) from error
    return found


def _bill(
    asked: Scenario,
    name: str,
    change: Mapping[str, Any],
    tokens: float | None,
    failures: bool,
    stop: Stop | None,
) -> WholeBill:
    moved = replace(asked, overrides=_over(asked, change))
    if "workload" in asked.document:
        named = name or str(asked.document.get("name", ""))
        return bill_of_scenario(
            named,
            moved,
            tokens=tokens,
            failures=failures,
            stop=stop,
        )
    if tokens is not None:
        raise InputError("--tokens", "must be left out for a fabric", tokens, "name a scenario")
    fabric = moved.fabric
    prices = scenario_prices(moved)
    return bill_of_fabric(name or fabric.name, fabric, prices)


def beside(asked: Scenario, name: str) -> dict[str, Any]:
    """The overrides of a design that is set beside another, named in short.

    Raises
    ------
    InputError
        For a name that means none, or one that does not exist at this size.
    """
    return _over(asked, _change(asked, asked.fabric, name))


def _over(asked: Scenario, change: Mapping[str, Any]) -> dict[str, Any]:
    """A design's overrides with a change; another fabric keeps nothing of the first one's."""
    kept = {
        key: value
        for key, value in asked.overrides.items()
        if "fabric" not in change or not key.startswith("fabric.")
    }
    return {**kept, **change}


def _change(asked: Scenario, fabric: Fabric, name: str) -> dict[str, Any]:
    """The overrides that make one design of another."""
    ratio = parse_ratio(name)
    if ratio is not None:
        ratios = list(getattr(fabric, "oversubscription", ()))
        if not ratios:
            raise InputError(
                "--compare", "must name ratios of a fabric that has tiers", name, "name fabrics"
            )
        return {"fabric.clos.oversubscription": [ratio, *ratios[1:]]}
    if optics := _OPTICS.fullmatch(name):
        return {f"fabric.optics.{optics[1]}": optics[2]}
    if scale_up := _SCALE_UP.fullmatch(name):
        return {"fabric": _scaled_up(fabric, int(scale_up[1])).document()}
    if name in KINDS:
        try:
            return {"fabric": same_size(fabric, name).document()}
        except InputError as error:
            raise InputError("--compare", "must exist at this size", name, str(error)) from error
    return {"fabric": fabric_document(name, asked.folder)}


def _scaled_up(fabric: Fabric, devices_per_node: int) -> Clos:
    """The same Clos with nodes of another size, every device with as many NICs."""
    if not isinstance(fabric, Clos):
        raise InputError(
            "--compare", "must name a scale-up size of a Clos", fabric.noun, "name a topology"
        )
    size = with_scale_up(size_of(fabric), devices_per_node)
    return replace(
        fabric,
        devices_per_node=size.devices_per_node,
        nics_per_node=size.nics_per_node,
        rails=0,
        devices_per_host=0,
    )
