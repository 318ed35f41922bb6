"""Shipped curves: presets read, written and found by the name of an accelerator or network.

``presets/collectives/`` holds one file per accelerator family (``a100-nvlink3``, …), one per
kind of network (``network-efa``, …), the pooled curves for what was never measured (``pooled``,
``network-pooled``) and the starting points of their fits (``start``, ``network-start``). Facts
(link rates, devices from which NVLS is used, wiring) are written by people with their source;
regimes and ``own_block`` are written by the fit. Keys carry human units; times here are seconds.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from nest_core.documents import (
    GB,
    MICROSECOND,
    InputError,
    kept_per_edition,
    load_toml,
    preset_names,
    preset_path,
    require,
)
from nest_core.hardware.collectives.curves import Curve, Regime
from nest_core.hardware.collectives.measurements import OPS

__all__ = [
    "KIND",
    "OWN",
    "REDUCING",
    "Library",
    "curve_document",
    "curve_from",
    "load_curve",
    "load_library",
]

KIND = "collectives"
REDUCING = {"network-infiniband": "network-infiniband-sharp"}
"""Curves of the same links where switches reduce, by that of links where they do not."""
OWN = "own"
"""The name of a curve that was measured on a person's own cluster."""
POOLED = {"nvlink": "pooled", "network": "network-pooled"}

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Library:
    """Curves by name.

    Parameters
    ----------
    curves : tuple of Curve
        In order of their names.
    """

    curves: tuple[Curve, ...]

    def __getitem__(self, name: str) -> Curve:
        return next(curve for curve in self.curves if curve.name == name)

    def replaced(self, curve: Curve) -> Self:
        """Return the library with a curve in place of the one of its name."""
        return type(self)(tuple(curve if old.name == curve.name else old for old in self.curves))

    def local(self, accelerator: str) -> tuple[Curve, float] | None:
        """Curve and link rate (bytes/s) of an accelerator's own links; None if unknown.

        PCIe variants are unknown: their name is that of a part with other links.
        """
        words = set(_WORD.findall(accelerator.lower()))
        return None if {"pcie", "nvl"} & words else self._find("nvlink", words)

    def network(self, link: str, bandwidth_Bps: float = 0.0) -> tuple[Curve, float] | None:
        """Curve and rate per device of a network; the pooled curve if only the rate is known."""
        curve, rate = self._find("network", set(_WORD.findall(link.lower()))) or (
            self[POOLED["network"]],
            0.0,
        )
        rate = bandwidth_Bps or rate
        return (curve, rate) if rate else None

    def _find(self, link: str, words: set[str]) -> tuple[Curve, float] | None:
        listed = (
            (curve, bandwidth)
            for curve in self.curves
            if curve.link == link
            for word, bandwidth in curve.bandwidths
            if word.lower() in words
        )
        return next(listed, None)


@kept_per_edition(2)
def load_library() -> Library:
    """All shipped curves."""
    return Library(tuple(load_curve(name) for name in preset_names(KIND)))


def load_curve(name: str) -> Curve:
    """One shipped curve."""
    return curve_from(load_toml(preset_path(KIND, f"{name}.toml")), name)


def curve_from(document: Mapping[str, Any], name: str) -> Curve:
    """Return a curve from a TOML document.

    Raises
    ------
    InputError
        If a key is missing or a figure is not a number in its range.
    """
    try:
        regimes = tuple(
            Regime(
                str(item["name"]),
                _one_of(item["algorithm"], ("ring", "in_network"), f"{name}.algorithm"),
                _by_op(item["base_us"], f"{name}.base_us", MICROSECOND),
                _number(item["step_us"], f"{name}.step_us") * MICROSECOND,
                _by_op(item["efficiency"], f"{name}.efficiency", 1.0),
            )
            for item in document["regimes"]
        )
        for regime in regimes:
            offered = regime.efficiency[: len(OPS) if regime.algorithm == "ring" else 1]
            require(
                min(offered) > 0,
                f"{name}.efficiency",
                "must be positive for every collective",
                regime.name,
                "complete the preset",
            )
        require(
            any(regime.algorithm == "ring" for regime in regimes),
            f"{name}.regimes",
            "must have a ring",
            len(regimes),
            "add one",
        )
        rates = document["bandwidths_GBps"]
        first = document.get("in_network_from")
        return Curve(
            name=name,
            link=_one_of(document["link"], ("nvlink", "network"), f"{name}.link"),
            latency_s=_number(document["latency_us"], f"{name}.latency_us") * MICROSECOND,
            own_block=_by_op(document["own_block"], f"{name}.own_block", 1.0),
            regimes=regimes,
            in_network_from=None if first is None else int(_number(first, "in_network_from")),
            shares=tuple(
                (int(item["devices"]), _number(item["share"], f"{name}.share"))
                for item in document.get("shares", ())
            ),
            bandwidths=tuple(
                (str(word), _number(rate, f"{name}.bandwidths_GBps.{word}") * GB)
                for word, rate in rates.items()
            ),
            trees=_one_of(document.get("trees", False), (False, True), f"{name}.trees"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            name,
            "must have the keys of a collectives preset",
            str(error),
            "see presets/collectives",
        ) from error


def curve_document(curve: Curve) -> dict[str, Any]:
    """Return a curve as a document, in the digits that presets keep; `curve_from` reads it back."""
    shares = [{"devices": devices, "share": _digits(share)} for devices, share in curve.shares]
    first = curve.in_network_from
    return {
        "link": curve.link,
        "latency_us": _digits(curve.latency_s, MICROSECOND),
        **({} if first is None else {"in_network_from": first}),
        **({"trees": True} if curve.trees else {}),
        "bandwidths_GBps": {word: _digits(rate, GB) for word, rate in curve.bandwidths},
        **({"shares": shares} if shares else {}),
        "own_block": _of_ops(curve.own_block),
        "regimes": [
            {
                "name": regime.name,
                "algorithm": regime.algorithm,
                "step_us": _digits(regime.step_s, MICROSECOND),
                "base_us": _of_ops(regime.base_s, MICROSECOND),
                "efficiency": _of_ops(regime.efficiency),
            }
            for regime in curve.regimes
        ],
    }


def _of_ops(values: Iterable[float], unit: float = 1.0) -> dict[str, float]:
    return {op: _digits(value, unit) for op, value in zip(OPS, values, strict=True) if value > 0}


def _digits(value: float, unit: float = 1.0) -> float:
    """Four significant digits."""
    return float(f"{value / unit:.4g}")


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(field, "must be a number", value, "correct the preset")
    require(
        math.isfinite(value) and value >= 0,
        field,
        "must be finite and not negative",
        value,
        "correct the preset",
    )
    return float(value)


def _by_op(values: Mapping[str, object], field: str, unit: float) -> tuple[float, ...]:
    """One figure per entry of `OPS`; 0 where the file has none."""
    return tuple(_number(values.get(op, 0.0), f"{field}.{op}") * unit for op in OPS)


def _one_of(value: object, allowed: tuple[Any, ...], field: str) -> Any:
    require(
        value in allowed,
        field,
        f"must be one of {', '.join(map(str, allowed))}",
        value,
        "choose one",
    )
    return value
