"""What exports share: a bundle of files, a refusal, and the words at the top of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nest_core.costs.plan import Plan, Point
from nest_core.errors import InputError
from nest_core.scenario import Scenario
from nest_core.titles import scenario_title

__all__ = ["Bundle", "Refused", "header", "subject"]

Content = str | bytes


class Refused(InputError):
    """A plan that a framework cannot express; the sentence says which part and why."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files of one export.

    Parameters
    ----------
    files : mapping of str to str or bytes
        Contents by name; text is UTF-8 with Unix line ends.
    notes : tuple of str
        One sentence each: what the framework decides for itself, or what is left out.
    """

    files: Mapping[str, Content]
    notes: tuple[str, ...] = ()


def header(scenario: Scenario, plan: Plan, version: str, comment: str = "# ") -> str:
    """Comment lines that say what a file is, for which version, and of which plan."""
    lines = (
        f"{scenario_title(scenario)}: {subject(plan.point)}.",
        f"Checked against {version}.",
    )
    return "".join(f"{comment}{' '.join(line.split())}\n" for line in lines)


def subject(point: Point) -> str:
    """A point in one line.

    Examples
    --------
    >>> subject(Point(8, True, 4, 2, 1, 1, ("tp", "cp", "dp", "pp")))
    'tp 8 with sp, dp 4, pp 2, micro-batch 1, ZeRO 1, 1f1b, order tp-cp-dp-pp, natural devices'
    """
    degrees = [("tp", point.tp), ("cp", point.cp), ("dp", point.dp), ("pp", point.pp)]
    shown = [
        f"{axis} {size}" + (" with sp" if axis == "tp" and point.sp else "")
        for axis, size in degrees
        if axis != "cp" or size > 1
    ]
    if point.ep > 1:
        shown.append(f"ep {point.ep}")
    schedule = point.schedule + (f" x{point.interleave}" if point.interleave > 1 else "")
    devices = point.device_order if isinstance(point.device_order, str) else "hand-picked"
    shown += [
        f"micro-batch {point.micro_batch}", f"ZeRO {point.zero}", schedule,
        f"order {'-'.join(point.order)}", f"{devices} devices",
    ]  # fmt: skip
    return ", ".join(shown)
