"""How far measured memory was from what was predicted, by framework.

Sources count alike, however many runs they give: runs of one source share their software and
machine, and err together. A source is a repository or a paper, whatever its revisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from nest_core.calibration.training.predict import Prediction
from nest_core.costs.head_room import FEWEST, POOLED, MemorySpread

__all__ = ["measured_spreads", "spreads_toml"]


def measured_spreads(predictions: Iterable[Prediction]) -> list[MemorySpread]:
    """Spreads of all frameworks with `FEWEST` runs or more, then that of all together."""
    found: dict[tuple[str, str], list[float]] = {}
    for item in predictions:
        error = item.memory_error
        if error is not None:
            source = item.run.source.split()[0] if item.run.source else ""
            found.setdefault((item.run.framework, source), []).append(math.log1p(error))
    own = [_spread(name, found) for name in sorted({framework for framework, _ in found})]
    return [spread for spread in (*own, _spread(POOLED, found)) if spread.runs >= FEWEST]


def _spread(name: str, found: dict[tuple[str, str], list[float]]) -> MemorySpread:
    chosen = [errors for (framework, _), errors in found.items() if name in (POOLED, framework)]
    squares = [math.fsum(error**2 for error in errors) / len(errors) for errors in chosen]
    sd = math.sqrt(math.fsum(squares) / len(squares)) if squares else 0.0
    return MemorySpread(name, round(sd, 4), sum(map(len, chosen)), len(chosen))


def spreads_toml(spreads: Iterable[MemorySpread]) -> str:
    """The text of the shipped file."""
    lines = ["# Written by `python -m benchmarks.validation regenerate training`; do not edit."]
    for spread in spreads:
        lines += [
            "",
            "[[spread]]",
            f'framework = "{spread.framework}"',
            f"sd = {spread.sd:.4f}",
            f"runs = {spread.runs}",
            f"sources = {spread.sources}",
        ]
    return "\n".join(lines) + "\n"
