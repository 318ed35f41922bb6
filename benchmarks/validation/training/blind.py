"""How well runs are predicted whose source the fit has not seen, and whether intervals hold.

Every source is left out as a whole (`nest_core.calibration.training.predict.left_out`), or every
family of models under one stack. Beside the
model's intervals stand those of the regions (`nest_core.calibration.training.bands`), made from the
other sources alone: the quantiles of the errors of runs of the same kind, or of all runs where
other sources have too few. The interval score is the width of an interval and, for what lies
outside, ten times by how much, on the logarithm of the time; less is better (Gneiting and Raftery,
2007, equation 43, at 80 %).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.training.bands import FEWEST
from benchmarks.validation.training.posterior import Evidence, LeftOut, left_out, source_name
from benchmarks.validation.training.regions import cell_of
from nest_core.calibration.training.machines import family_of, machine_of
from nest_core.calibration.training.predict import Prediction
from nest_core.calibration.training.runs import Run
from nest_core.hardware.posterior import SHARE, WIDTH

__all__ = ["Blind", "left_out_section", "regional", "scored"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Blind:
    """Errors and intervals of runs whose sources were left out.

    Parameters
    ----------
    n : int
    error, bias : float
        Mean of the absolute relative error, and of the signed one.
    inside : float
        Share of the runs that lie in their interval.
    score : float
        Mean interval score.
    """

    n: int
    error: float
    bias: float
    inside: float
    score: float


def scored(measured: FloatArray, predicted: FloatArray, low: FloatArray, high: FloatArray) -> Blind:
    """Of logarithms, all of one length."""
    error = np.expm1(predicted - measured)
    outside = np.maximum(0.0, low - measured) + np.maximum(0.0, measured - high)
    score = high - low + 2.0 / (1.0 - SHARE) * outside
    return Blind(
        len(measured),
        float(np.abs(error).mean()),
        float(error.mean()),
        float((outside == 0.0).mean()),
        float(score.mean()),
    )


def regional(predictions: Sequence[Prediction]) -> Mapping[str, tuple[float, float]]:
    """Ends of the regional interval of every measured run, by its name: factors on its prediction.

    From the errors of other sources alone.
    """
    known = [item for item in predictions if item.error is not None]
    errors = np.array([np.log1p(item.error or 0.0) for item in known])
    sources = np.array([source_name(item.run.source) for item in known])
    places = [cell_of(item) for item in known]
    answer = {}
    for item, source, place in zip(known, sources, places, strict=True):
        other = sources != source
        alike = other & np.array([theirs == place for theirs in places])
        chosen = errors[alike if alike.sum() >= FEWEST else other]
        if len(chosen):
            low, high = np.quantile(chosen, (0.1, 0.9))
            answer[item.run.id] = (float(-high), float(-low))
    return answer


def _of(items: Sequence[LeftOut]) -> Blind:
    measured, predicted, spread = (
        np.array([getattr(item, field) for item in items])
        for field in ("measured", "predicted", "spread")
    )
    return scored(measured, predicted, predicted - WIDTH * spread, predicted + WIDTH * spread)


def _by_regions(
    items: Sequence[LeftOut], predictions: Sequence[Prediction]
) -> tuple[list[LeftOut], Blind]:
    """The runs that regions have an interval for, and how those hold."""
    ends = regional(predictions)
    centre = {item.run.id: float(np.log(item.seconds)) for item in predictions}
    kept = [item for item in items if item.run.id in ends and item.run.id in centre]
    here = np.array([centre[item.run.id] for item in kept])
    low, high = np.array([ends[item.run.id] for item in kept]).T
    measured = np.array([item.measured for item in kept])
    return kept, scored(measured, here, here + low, here + high)


Kind = tuple[str, Callable[[Run], bool]]


def _device(run: Run, *names: str) -> bool:
    return machine_of(run.accelerator).name in names


KINDS: tuple[Kind, ...] = (
    ("all runs but single nodes of A100", lambda run: not _one_node(run)),
    ("single nodes of A100", lambda run: _one_node(run)),
    ("quality A of train_measurements.csv", lambda run: run.quality == "A" and not _mlperf(run)),
    ("MLPerf", lambda run: _mlperf(run)),
    ("H100, dense, Megatron-LM", lambda run: _dense(run, "megatron") and _device(run, "H100")),
    ("H100, dense, FSDP", lambda run: _dense(run, "fsdp") and _device(run, "H100", "H200")),
    ("B200, B300, GB200, GB300", lambda run: _device(run, "B200", "B300", "GB200", "GB300")),
    ("mixtures of experts", lambda run: run.experts > 1),
)


def _mlperf(run: Run) -> bool:
    return run.source.startswith("mlcommons/")


def _one_node(run: Run) -> bool:
    return run.source.startswith("VIA-Research") and run.devices <= 8


def _dense(run: Run, framework: str) -> bool:
    return run.experts == 1 and run.framework == framework


HEAD = ("runs", "mean error", "bias", "inside 80 %", "interval score")


def left_out_section(found: Sequence[Evidence], predictions: Sequence[Prediction]) -> list[str]:
    """Tables by kind, by stack and by source."""
    items = left_out(found)
    kept, bands = _by_regions(items, predictions)
    by_stack = _grouped(items, lambda run: f"{run.stack}, {machine_of(run.accelerator).name}")
    by_source = _grouped(items, lambda run: source_name(run.source))
    parts = [
        "No run of a source stands in the fit that predicts it; a source is a repository or a "
        "paper, whatever its revision. Nothing else is blind: which effects there are and their "
        "prior spreads were chosen with these rows in view.",
        "",
        *markdown_table(
            ("", *HEAD),
            [
                *_by_kind(items),
                _line(f"regional bands, of {len(kept)} runs", bands),
                _line("the model, of the same", _of(kept)),
            ],
        ),
        "",
        f"By stack and device, of {FEWEST} runs and more:",
        "",
        *markdown_table(
            ("stack and device", *HEAD),
            [
                _row(name, chosen)
                for name, chosen in sorted(by_stack.items())
                if len(chosen) >= FEWEST
            ],
        ),
        "",
        "Models left out: no run of the same family of models under the same stack stands in the "
        "fit that predicts it; runs of its source with other models or stacks do.",
        "",
        *markdown_table(("", *HEAD), _by_kind(left_out(found, _model))),
        "",
        "By source:",
        "",
        *markdown_table(
            ("source", *HEAD), [_row(name, chosen) for name, chosen in sorted(by_source.items())]
        ),
    ]
    return parts


def _model(item: Evidence) -> tuple[str, str]:
    return family_of(item.run), item.run.stack


def _by_kind(items: Sequence[LeftOut]) -> list[list[object]]:
    return [_row(name, chosen) for name, holds in KINDS if (chosen := _held(items, holds))]


def _held(items: Sequence[LeftOut], holds: Callable[[Run], bool]) -> list[LeftOut]:
    return [item for item in items if holds(item.run)]


def _grouped(items: Sequence[LeftOut], key: Callable[[Run], str]) -> dict[str, list[LeftOut]]:
    found: dict[str, list[LeftOut]] = {}
    for item in items:
        found.setdefault(key(item.run), []).append(item)
    return found


def _row(name: str, chosen: Sequence[LeftOut]) -> list[object]:
    return _line(name, _of(chosen))


def _line(name: str, found: Blind) -> list[object]:
    return [
        name,
        found.n,
        f"{found.error:.1%}",
        f"{found.bias:+z.1%}",
        f"{found.inside:.0%}",
        f"{found.score:.3f}",
    ]
