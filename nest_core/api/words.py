"""Lines of text about plans that several results print, from the fields of their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest_core.costs.plan_words import degrees_in_words, plan_words
from nest_core.costs.shapes import measured_words
from nest_core.documents.text import table
from nest_core.planner.baselines import NAMES

__all__ = ["interval_line", "overlap_line", "plan_text"]


def plan_text(fields: Mapping[str, Any]) -> str:
    """A planned scenario: the plan, its proof, its interval, and the baselines beside it."""
    if not fields["feasible"]:
        return "\n".join(filter(None, [f"infeasible: {fields['reason']}", fields["advice"]]))
    words = plan_words(fields["plan"])
    certificate = fields["certificate"]
    proof = "proven optimal" if certificate["proven"] else f"within {certificate['gap']:.2%}"
    interval = f"{fields['interval']['share']:.0%} interval, s"
    rows: list[list[str | None]] = [
        ["this plan", f"{fields['iteration_time_s']:.4g}", _span(fields, fields), words]
    ]
    for entry in fields["baselines"]:
        other = entry["plan"] if entry["feasible"] else None
        rows.append(
            [
                NAMES["nest"] if entry["name"] == "nest" else entry["name"],
                f"{entry['iteration_time_s']:.4g}" if entry["feasible"] else None,
                _span(entry, fields) if entry["feasible"] else None,
                degrees_in_words(other) + _promise(entry) if other else entry["reason"],
            ]
        )
    audited = ""
    if "audit" in fields:
        audit = fields["audit"]
        audited = (
            f"audit: {audit['solved']} excluded points solved, {audit['infeasible']} infeasible, "
            f"{len(audit['violations'])} below their bound\n"
        )
    left = f"{certificate['open']:,} open, " if certificate.get("open") else ""
    others = [
        [str(place), f"{entry['iteration_time_s']:.4g}", plan_words(entry["plan"])]
        for place, entry in enumerate(fields["alternatives"], start=2)
    ]
    further = table(["place", "iteration, s", "plan"], others) if others else ""
    return (
        f"{fields['scenario']}: {fields['samples_per_s']:.4g} sequences/s, "
        f"MFU {fields['mfu']:.1%} ({fields['mfu_convention']}), "
        f"bubble {fields['bubble']:.1%} of the time that stages work\n"
        f"{proof}: {certificate['points']:,} points, {certificate['solved']:,} solved, "
        f"{certificate['bounded']:,} bounded, {certificate['infeasible']:,} infeasible, "
        f"{left}{fields['solve_seconds'] * 1e3:.0f} ms\n"
        f"{certificate['words']}\n"
        + audited
        + f"{interval_line(fields)}\n{fields['validity']}\n{overlap_line(fields)}\n"
        + head_room_line(fields)
        + (f"{_recommended(fields)}\n\n" if fields.get("recommended") else "\n")
        + table(["method", "iteration, s", interval, "plan or reason"], rows)
        + (f"\n\n{further}" if further else "")
    )


def interval_line(fields: Mapping[str, Any]) -> str:
    """Where the plan's time will lie in four cases of five, and under which software."""
    found, stack = fields["interval"], fields["stack"]
    told = f"{stack['measured_runs']} runs of it" if stack["validated"] else "unvalidated"
    if stack["calibrated"]:
        told = "calibrated"
    return (
        f"{found['share']:.0%} interval {found['low_s']:.4g} to {found['high_s']:.4g} s "
        f"under {stack['name']} ({told})"
    )


def head_room_line(fields: Mapping[str, Any]) -> str:
    """What plans take that fit into memory more or less surely, if that was asked and proven."""
    steps = [
        f"{entry['iteration_time_s']:.4g} s ({entry['difference']:+z.2%}) "
        f"to fit with {entry['certainty']:.0%} certainty"
        for entry in fields.get("head_room") or ()
        if entry["difference"] is not None
    ]
    return f"head-room: {', '.join(steps)}\n" if steps else ""


def overlap_line(fields: Mapping[str, Any]) -> str:
    """What is assumed to hide behind compute, and whether the device was calibrated."""
    shares, estimator = fields["overlap_shares"], fields["estimator"]
    words = f"overlap {fields['overlap']}"
    if fields["overlap"] == "fitted":
        words += f" (tp {shares['tp']:.0%}, pp {shares['pp']:.0%}, dp {shares['dp']:.0%})"
    return f"{words}; estimator {estimator['family']}" + (
        "" if estimator["calibrated"] else ": nothing was fitted for this device"
    )


def _recommended(fields: Mapping[str, Any]) -> str:
    """What draws recommend, how sure that is, and what cannot be told from it."""
    found = fields["recommended"]
    span = found["interval"]
    same = found["plan"] == fields["plan"]
    lines = [
        "recommended: " + ("this plan" if same else plan_words(found["plan"])),
        f"{found['words']}; expected {found['expected_s']:.4g} s, "
        f"{span['share']:.0%} interval {span['low_s']:.4g} to {span['high_s']:.4g} s",
        measured_words(found["measured"], fields["estimator"]["family"], fields["stack"]["name"]),
    ]
    for one in found["equals"]:
        low, high = (f"{100 * value:+z.1f} %" for value in one["slower"])
        told = f"{low} to {high}; its shape measured {one['measured']} times"
        lines.append(f"cannot be told from it ({told}): {plan_words(one['plan'])}")
    return "\n".join(lines)


def _promise(entry: Mapping[str, Any]) -> str:
    """What NEST's program promised, and the largest cause of what it loses to the exact search."""
    if entry.get("promised_s") is None:
        return ""
    words = f"; promised {entry['promised_s']:.4g} s"
    fall = entry["waterfall"]
    if fall and max(fall.values()) > 1e-9 * entry["promised_s"]:
        cause = max(fall, key=lambda name: float(fall[name]))
        words += f", loses most by {cause.replace('_', ' ')} ({fall[cause]:.3g} s)"
    return words


def _span(entry: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """The interval of a method's plan: as wide as that of ours, of which it shares the software."""
    found = fields["interval"]
    low, high = (
        entry["iteration_time_s"] * found[end] / found["centre_s"] for end in ("low_s", "high_s")
    )
    return f"{low:.4g} to {high:.4g}"
