"""``nest-studio memory``: what a plan holds on a device, stage by stage and part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.plan import Sets

if TYPE_CHECKING:
    from nest_core.costs import Memory, Stage

__all__ = ["memory"]

PARTS = ("weights", "gradients", "optimizer", "activations", "stash", "buffers")
LINES = {
    "working": "activations made again, gradients of activations",
    "whole": "weights and new gradients of the layer that runs",
    "step": "what the optimizer step needs beyond the passes",
    "fragmentation": "held by the allocator beyond tensors",
    "context": "driver and context",
    "communicators": "buffers of the communication library",
}
GIB = 2.0**30


def memory(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    plan: Annotated[str, typer.Option(help="JSON file, dp=8,tp=4,… or Megatron-LM flags.")],
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Memory of a plan on a scenario: bytes per stage and component."""
    from nest_core.api.fields import memory_json
    from nest_core.costs import price
    from nest_core.costs.parse import read_plan
    from nest_core.report.explain import check_heads
    from nest_core.report.explain.other_stacks import name_stack_for_plan
    from nest_core.scenario import load_scenario

    values = load_scenario(scenario, sets or ())
    problem = values.problem()
    given = read_plan(
        plan, problem.layers, problem.network.devices, whole_experts=not values.expert_tensor
    )
    check_heads(values.model, given)
    report = name_stack_for_plan(values, price(values.problem(given.recompute), given))
    fields: dict[str, object] = {
        "feasible": report.feasible,
        "reason": report.reason,
        "memory_limit_bytes": report.memory_limit_bytes,
        "fullest_bytes": max(stage.memory.total for stage in report.stages),
        "memory": memory_json(values, report),
        "communicators": max(given.stage_point(s).communicators for s in range(given.point.pp)),
        "plan": given.to_json(),
        "stages": [_stage(stage) for stage in report.stages],
    }
    emit(fields, as_json, _as_text)


def _stage(stage: Stage) -> dict[str, object]:
    from nest_core.costs.memory import BUFFERS

    parts: Memory = stage.memory
    return {
        "layers": [stage.first, stage.last],
        "chunks": [list(virtual_stage) for virtual_stage in stage.virtual_stages],
        "recompute": stage.recompute,
        "memory_bytes": {part: getattr(parts, part) for part in PARTS},
        "buffers_bytes": {part: getattr(parts, part) for part in BUFFERS},
        "tensor_bytes": parts.tensors,
        "total_bytes": parts.total,
        "host_bytes": parts.host,
    }


def _as_text(fields: Mapping[str, Any]) -> str:
    rows = [
        [
            number,
            f"{stage['layers'][0]}..{stage['layers'][1] - 1}",
            stage["recompute"],
            *(f"{stage['memory_bytes'][part] / GIB:.2f}" for part in PARTS),
            f"{stage['total_bytes'] / GIB:.2f}",
        ]
        for number, stage in enumerate(fields["stages"], start=1)
    ]
    verdict = "fits" if fields["feasible"] else f"does not fit: {fields['reason']}"
    limit = f"{fields['memory_limit_bytes'] / GIB:.1f} GiB per device"
    fullest = max(fields["stages"], key=lambda stage: float(stage["total_bytes"]))
    lines = [
        [name, f"{size / GIB:.2f}", LINES[name]] for name, size in fullest["buffers_bytes"].items()
    ]
    head = ["stage", "layers", "recompute", *PARTS, "total"]
    hosts = [stage["host_bytes"] / GIB for stage in fields["stages"]]
    away = f"; {max(hosts):.2f} on the host for a device" if max(hosts) else ""
    return (
        f"{verdict}; {limit}\n{fields['memory']['words']}\n\n{table(head, rows)}\n\nGiB{away}\n\n"
        + table(["buffers of the fullest", "GiB", "what it is"], lines)
        + f"\n\n{fields['communicators']} communicators"
    )
