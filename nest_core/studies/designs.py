"""Which designs a bill weighs: a scenario or a fabric, and what it is set beside.

A design beside another is named in short: ``4:1``, a ratio of the innermost tier of the same
fabric; a topology of the same devices and NICs (`nest_core.fabric.same_size`), and one of switches
at a ratio, ``rail-optimised 2:1``; ``scale-up 72``, the same fabric with nodes of another size;
``spine=LPO``, with other optics of a tier; or another fabric, a preset's name or a file.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nest_core.bill.ownership import owned
from nest_core.documents import InputError, parse_ratio, require
from nest_core.fabric import Clos, Fabric
from nest_core.fabric.same_size import (
    KINDS,
    TIERS,
    FabricShape,
    same_size,
    size_of,
    with_scale_up,
)
from nest_core.scenario import Scenario, fabric_document
from nest_core.studies.solving import Stop
from nest_core.studies.whole_bill import WholeBill, bill_of_scenario, scenario_prices

__all__ = ["beside", "whole_bills"]

MAX_DESIGNS = 12
_SCALE_UP = re.compile(r"scale-up (\d{1,6})")
_OPTICS = re.compile(r"(\w+)=(\w+)")


def whole_bills(
    scenario: Scenario,
    names: Sequence[str] = (),
    *,
    tokens: float | None = None,
    failures: bool = False,
    stop: Stop | None = None,
) -> list[WholeBill]:
    """Return the bills of a design, or of those that are set beside it, in their order.

    Parameters
    ----------
    scenario : Scenario
        With ``fabric`` alone it is not planned.
    names : sequence of str
        Designs in short; empty for the one alone.
    tokens, failures, stop
        As of `bill_of_scenario`.

    Raises
    ------
    InputError
        For a design that cannot be built, before any is planned.
    """
    require(
        len(names) <= MAX_DESIGNS,
        "--compare",
        f"must name at most {MAX_DESIGNS} designs",
        len(names),
        "drop some",
    )
    titles = [name.rpartition("/")[2].removesuffix(".toml") for name in names]
    require(
        len(set(titles)) >= len(titles),
        "--compare",
        "must name every design once",
        titles,
        "drop one",
    )
    designs = {
        title: _built(scenario, name) for title, name in zip(titles, names, strict=True)
    } or {"": scenario}
    if "workload" in scenario.document:
        return [
            bill_of_scenario(
                name or str(scenario.document.get("name", "")),
                design,
                tokens=tokens,
                failures=failures,
                stop=stop,
            )
            for name, design in designs.items()
        ]
    require(tokens is None, "--tokens", "must be left out for a fabric", tokens, "name a scenario")
    return [
        WholeBill(
            name or design.fabric.name,
            owned(design.fabric, scenario_prices(design), failures=design.failures),
        )
        for name, design in designs.items()
    ]


def _built(scenario: Scenario, name: str) -> Scenario:
    """Return a design; InputError where it cannot be built."""
    _ = scenario.fabric  # which is refused in its own words
    try:
        design = replace(scenario, overrides=beside(scenario, name))
        _ = design.fabric
    except InputError as error:
        if error.field.startswith("--"):
            raise
        raise InputError(
            "--compare",
            f"must name designs that can be built ({error.field} {error.rule})",
            name,
            error.remedy,
        ) from error
    return design


def beside(scenario: Scenario, name: str) -> dict[str, Any]:
    """Return the overrides of a design that is set beside another, named in short.

    Raises
    ------
    InputError
        For a name that means none, or one that does not exist at this size.
    """
    change = _change(scenario, scenario.fabric, name)
    rest = {
        key: value
        for key, value in scenario.overrides.items()
        if "fabric" not in change or not key.startswith("fabric.")
    }
    return rest | change  # another fabric takes nothing of the first one's


def _change(scenario: Scenario, fabric: Fabric, name: str) -> dict[str, Any]:
    """Return the overrides that make one design of another."""
    ratio = parse_ratio(name)
    if ratio is not None:
        ratios = list(getattr(fabric, "oversubscription", ()))
        require(
            ratios, "--compare", "must name ratios of a fabric that has tiers", name, "name fabrics"
        )
        return {"fabric.clos.oversubscription": [ratio, *ratios[1:]]}
    if optics := _OPTICS.fullmatch(name):
        return {f"fabric.optics.{optics[1]}": optics[2]}
    if scale_up := _SCALE_UP.fullmatch(name):
        if not isinstance(fabric, Clos):
            raise InputError(
                "--compare", "must name a scale-up size of a Clos", fabric.noun, "name a topology"
            )
        size = with_scale_up(size_of(fabric), int(scale_up[1]))  # every device with as many NICs
        resized = replace(
            fabric,
            devices_per_node=size.devices_per_node,
            nics_per_node=size.nics_per_node,
            rails=0,
            devices_per_host=0,
        )
        return {"fabric": resized.document()}
    kind, _, at = name.partition(" ")
    leaf_ratio = parse_ratio(at)
    if kind in (TIERS if leaf_ratio else KINDS) and (leaf_ratio or not at):
        try:
            shape = FabricShape((leaf_ratio or 1.0, 1.0))
            return {"fabric": same_size(fabric, kind, shape).document()}
        except InputError as error:
            raise InputError(
                "--compare", "must exist at this size", name, f"{error}"[:-1]
            ) from error
    return {"fabric": fabric_document(name, scenario.folder)}
