"""What is known of the parameters of kernels and links, and how surely.

Every parameter is a factor on a figure of a `Family` or on what the network between nodes
carries. Its logarithm is a sum of *effects*: one that all accelerators share, one of the family,
one of the family under a framework, one under a software stack. Effects are jointly normal;
``presets/validation/posterior.toml`` holds their centre and covariance as
`nest_core.calibration.training.predict` found them, and the spread of the prior, which is what an
effect without measurements keeps. What no parameter explains is left as the spread between sources
and between the runs of one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nest_core.documents.presets import kept_per_edition, load_toml, preset_path
from nest_core.hardware.accelerators import Accelerator

__all__ = [
    "BOUNDED",
    "PARAMETERS",
    "RUN_FACTOR",
    "SHARE",
    "WIDTH",
    "Effect",
    "Knowledge",
    "Posterior",
    "adjusted",
    "load_posterior",
]

PARAMETERS = (
    "gemm_efficiency",
    "memory_efficiency",
    "attention_efficiency",
    "biased_attention_efficiency",
    "host_s",
    "network",
)
"""Fields of `Family`, and ``network``: what ports between nodes carry of their line rate."""

RUN_FACTOR = "run_factor"
"""What a cluster's runs take beyond what parameters say: known of a person's own stack only."""

BOUNDED = ("memory_efficiency", "attention_efficiency", "biased_attention_efficiency")
"""Shares of the peak: at most one."""


SHARE = 0.8
WIDTH = 1.2816
"""An interval holds `SHARE` of a normal, `WIDTH` standard deviations on either side."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One term of a parameter's logarithm.

    Parameters
    ----------
    parameter : str
        One of `PARAMETERS`.
    family, framework, stack : str
        Whose it is; empty: of all.
    prior_sd : float
    """

    parameter: str
    family: str
    framework: str
    stack: str
    prior_sd: float

    def of(self, family: str, framework: str, stack: str) -> bool:
        """Whether it counts for an accelerator's family under a stack of a framework."""
        whose = zip(
            (self.family, self.framework, self.stack), (family, framework, stack), strict=True
        )
        return all(fitted in ("", theirs) for fitted, theirs in whose)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The parameters of one accelerator under one stack.

    Parameters
    ----------
    parameters : tuple of str
    centre : array (n,)
        Natural logarithms of the factors.
    covariance : array (n, n)
        Of the same.
    source_sd, run_sd, experts_sd : float
        Of the logarithm of a time: between sources, and between the runs of one, of dense models
        and of mixtures of experts.
    """

    parameters: tuple[str, ...]
    centre: np.ndarray[Any, np.dtype[np.float64]]
    covariance: np.ndarray[Any, np.dtype[np.float64]]
    source_sd: float
    run_sd: float
    experts_sd: float

    def factors(self, values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
        """Factors by parameter, of logarithms in the order of ``parameters``."""
        return dict(zip(self.parameters, map(float, np.exp(values)), strict=True))

    def draws(self, count: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Logarithms of factors, (count, n), drawn with a seed."""
        return np.random.default_rng(seed).multivariate_normal(
            self.centre, self.covariance, count, method="eigh"
        )


@dataclass(frozen=True, slots=True)
class Posterior:
    """All effects together.

    Parameters
    ----------
    effects : tuple of Effect
    values : array (n,)
    covariance : array (n, n)
    stack_sd, family_sd : mapping
        Spread, by parameter, of a stack and of a family that no measurement was fitted for.
    source_sd, run_sd, experts_sd : float
    measured : tuple of (str, str, int)
        Family, stack, and its measured runs of quality A over several nodes.
    """

    effects: tuple[Effect, ...]
    values: np.ndarray[Any, np.dtype[np.float64]]
    covariance: np.ndarray[Any, np.dtype[np.float64]]
    stack_sd: Mapping[str, float]
    family_sd: Mapping[str, float]
    source_sd: float
    run_sd: float
    experts_sd: float
    measured: tuple[tuple[str, str, int], ...] = ()

    def sure_rows(self, family: str, stack: str) -> int:
        """Measured runs of quality A over several nodes."""
        return sum(n for *whose, n in self.measured if whose == [family, stack])

    def of(self, family: str, framework: str, stack: str) -> Knowledge:
        """Return what is known of a family under a stack of a framework."""
        chosen = np.array(
            [
                [
                    effect.parameter == name and effect.of(family, framework, stack)
                    for effect in self.effects
                ]
                for name in PARAMETERS
            ],
            dtype=float,
        )
        fitted = {
            effect.parameter
            for effect in self.effects
            if effect.stack and effect.of(family, framework, stack)
        }
        unseen = np.array(
            [0.0 if name in fitted else self.stack_sd.get(name, 0.0) for name in PARAMETERS]
        )
        if all(effect.family != family for effect in self.effects):
            unseen = np.hypot(unseen, [self.family_sd.get(name, 0.0) for name in PARAMETERS])
        return Knowledge(
            PARAMETERS,
            chosen @ self.values,
            chosen @ self.covariance @ chosen.T + np.diag(np.square(unseen)),
            self.source_sd,
            self.run_sd,
            self.experts_sd,
        )


def adjusted(accelerator: Accelerator, factors: Mapping[str, float]) -> Accelerator:
    """Return an accelerator whose family's figures and network are multiplied by factors.

    Shares stay at most 1. `RUN_FACTOR` slows all that an accelerator has a figure for: kernels,
    host, links and ports, so that plans keep their order. Latencies and the constants of
    collectives stay, which is why a time grows by slightly less.
    """
    factors, slower = dict(factors), factors.get(RUN_FACTOR, 1.0)
    factors.pop(RUN_FACTOR, None)
    network = accelerator.network_reach * factors.pop("network", 1.0) / slower
    if slower != 1.0:
        for name in PARAMETERS:
            if name != "network":
                by = slower if name == "host_s" else 1.0 / slower
                factors[name] = factors.get(name, 1.0) * by
    family = accelerator.family
    changed: dict[str, Any] = {
        name: min(getattr(family, name) * factor, 1.0 if name in BOUNDED else math.inf)
        for name, factor in factors.items()
    }
    return replace(
        accelerator,
        family=replace(family, **changed),
        links_reach=accelerator.links_reach / slower,
        network_reach=network,
    )


@kept_per_edition(1)
def load_posterior() -> Posterior:
    """Return the shipped posterior."""
    document = load_toml(preset_path("validation", "posterior.toml"))
    effects = tuple(
        Effect(
            entry["parameter"],
            entry.get("family", ""),
            entry.get("framework", ""),
            entry.get("stack", ""),
            float(entry["prior_sd"]),
        )
        for entry in document["effect"]
    )
    return Posterior(
        effects,
        np.array([float(entry["value"]) for entry in document["effect"]]),
        np.array(document["covariance"], dtype=float),
        {name: float(sd) for name, sd in document["stack_sd"].items()},
        {name: float(sd) for name, sd in document["family_sd"].items()},
        float(document["source_sd"]),
        float(document["run_sd"]),
        float(document["experts_sd"]),
        tuple((entry["family"], entry["stack"], entry["rows"]) for entry in document["measured"]),
    )
