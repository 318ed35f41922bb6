"""How often plans of a shape were measured: what stands behind a plan beside its price.

A shape is what a plan's measured runs are looked up by. ``presets/validation/shapes.toml`` holds
those of the runs that parameters were fitted to, by family of accelerators and software stack;
``benchmarks/validation`` writes it.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

from nest_core.costs.plan import Plan
from nest_core.documents.presets import kept_per_edition, load_toml, preset_path

__all__ = ["Measured", "PlanShape", "measured_like", "measured_words", "shape_of"]

PATH = ("validation", "shapes.toml")
NEAR = 2.0
"""Degrees of shapes that are alike differ by this factor at most."""


class PlanShape(NamedTuple):
    """What of a plan decides which kernels and collectives run, but for their sizes.

    ``zero`` is 0 where nothing is shared;
    ``recompute`` is ``none``, ``selective`` (any part of a layer) or ``full`` (any whole layer).
    """

    tp: int
    pp: int
    cp: int
    ep: int
    zero: int
    recompute: str

    def like(self, other: Self) -> bool:
        """Whether they differ in one field at most, and if that is a degree, by `NEAR` at most."""
        ours = (self.tp, self.pp, self.cp, self.ep)
        theirs = (other.tp, other.pp, other.cp, other.ep)
        factors = [max(a, b) / min(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
        others = (self.zero != other.zero) + (self.recompute != other.recompute)
        return len(factors) + others <= 1 and all(factor <= NEAR for factor in factors)


Measured = Mapping[tuple[str, str], Mapping[PlanShape, int]]
"""Runs of each shape, by family and stack."""


def shape_of(plan: Plan) -> PlanShape:
    """Return the shape of a plan; of stages that recompute differently that of the most.

    Examples
    --------
    >>> from nest_core.costs.plan import Point
    >>> point = Point(4, True, 2, 2, 1, 2, ("tp", "cp", "dp", "pp"))
    >>> shape_of(Plan(point, (0, 5, 10), ("none", "block:2")))
    PlanShape(tp=4, pp=2, cp=1, ep=1, zero=2, recompute='full')
    """
    point, names = plan.point, set(plan.recompute)
    is_full = any(name.partition(":")[0] in ("full", "block", "uniform") for name in names)
    recompute = "full" if is_full else "none" if names == {"none"} else "selective"
    zero = point.zero if point.shared else 0
    return PlanShape(point.tp, point.pp, point.cp, point.ep, zero, recompute)


def measured_words(runs: int, family: str, stack: str) -> str:
    """``Plans of its shape were measured 14 times on family h100 with megatron-core-2025.``."""
    often = {0: "never measured", 1: "measured once"}.get(runs, f"measured {runs} times")
    return f"Plans of its shape were {often} on family {family} with {stack}."


def measured_like(family: str, stack: str, plan: Plan) -> int:
    """Measured runs of a plan's shape, or one like it, on a family under a stack."""
    wanted = shape_of(plan)
    runs_of = _measured().get((family, stack), {})
    return sum(runs for shape, runs in runs_of.items() if shape.like(wanted))


@kept_per_edition(1)
def _measured() -> Measured:
    entries = load_toml(preset_path(*PATH))["measured"]
    return {
        (entry["family"], entry["stack"]): {
            PlanShape(*shape): runs for *shape, runs in entry["shapes"]
        }
        for entry in entries
    }
