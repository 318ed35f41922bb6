"""Commands on plans: ``plan``, ``price``, ``place``, ``export``, ``memory``, ``compiled``,
``goodput``, ``next``, ``simulate``, ``diff``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import nest_core as nest
from nest_core.documents import GIB, plain, plural, require, settings, table, write_file
from nest_studio.commands.output import (
    Failures,
    JsonFlag,
    Sets,
    emit,
    show,
    tell_share,
    watched,
)
from nest_studio.jobs.kernels import build_kernels

if TYPE_CHECKING:
    from nest_core.costs import Memory, Stage
    from nest_core.scenario import Scenario

__all__ = [
    "compiled",
    "diff",
    "export",
    "goodput",
    "memory",
    "next",
    "place",
    "plan",
    "price",
    "simulate",
]

ScenarioName = Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")]
GivenPlan = Annotated[
    str | None,
    typer.Option(help="JSON file, dp=8,tp=4,… or a Megatron-LM command; the best plan by default."),
]
"""A plan that a person may name."""


def plan(
    scenario: ScenarioName,
    sets: Sets = None,
    top: Annotated[int | None, typer.Option(help="How many of the best points to print.")] = None,
    audit: Annotated[
        int, typer.Option(min=0, max=100_000, help="Solve this many excluded points at random.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the audit's draw.")] = 0,
    draws: Annotated[
        int, typer.Option(help="Draws of what is not known exactly, each searched anew.")
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Plan a scenario under the studio's own costs."""
    from nest_core.api.answer import answer, with_draws
    from nest_core.api.fields import plan_text
    from nest_core.costs.loads import link_loads
    from nest_core.planner import Neighbours, head_room_steps, shadow_prices, shared_frontier
    from nest_core.planner import audit as audit_search
    from nest_core.report.explain import busiest_text
    from nest_core.studies.recommended import checked_draws
    from nest_studio.jobs.workers import cores, processes
    from nest_studio.server.system import peak_bytes

    checked_draws(draws, "--draws")
    values = nest.load(
        scenario, settings(sets or ()) | ({} if top is None else {"search.top": top})
    ).values
    build_kernels()
    with watched() as (progress, stop):
        problem = values.problem()
        frontier = shared_frontier(problem, values.space)
        result = answer(values, problem=problem, frontier=frontier, progress=progress, stop=stop)
        if draws:
            with processes(cores()) as pool:  # which hears no interrupt: this process does
                result = with_draws(
                    result, problem, draws, pool=pool, progress=tell_share, stop=stop
                )
    fields = result.to_json()
    fields["shadow_prices"] = fields["head_room"] = None
    best = result.result.best
    busiest = link_loads(problem, best).busiest if best else ()
    fields["busiest_links"] = [entry.to_json() for entry in busiest]
    if best and result.result.certificate.proven:
        limit, plans = values.time_limit_s, (best, *result.result.alternatives)
        near = Neighbours(problem, values.space, best.iteration_s, limit, frontier)
        fields["shadow_prices"] = shadow_prices(
            problem, values.space, best.iteration_s, limit, near
        )
        steps = head_room_steps(problem, values.space, plans, limit, near)
        fields["head_room"] = [step.to_json(best.iteration_s) for step in steps]
    if audit:
        checked = audit_search(problem, values.space, result.result, audit, seed)
        fields["audit"] = {
            "solved": checked.solved,
            "infeasible": checked.infeasible,
            "violations": [repr(point) for point in checked.violations],
        }
    fields["peak_memory_bytes"] = peak_bytes()
    emit(fields, as_json, lambda of: plan_text(of) + busiest_text(busiest))


def _loaded(scenario: str, sets: Sets) -> Scenario:
    """Return a scenario with its settings, once it can be planned without compiling."""
    document = nest.load(scenario, settings(sets or ()))
    build_kernels()
    return document


def price(
    scenario: ScenarioName,
    plan: Annotated[
        str,
        typer.Option(help="JSON file (Galvatron's too), dp=8,tp=4,… or a Megatron-LM command."),
    ],
    placement: Annotated[
        Path | None, typer.Option(help="Its rank mapping: CSV or JSON, see place.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Price a plan on a scenario, term by term beside the best plan."""
    show(nest.price(_loaded(scenario, sets), plan, placement=placement), as_json)


def simulate(
    scenario: ScenarioName,
    plan: GivenPlan = None,
    placement: Annotated[Path | None, typer.Option(help="Its rank mapping: CSV or JSON.")] = None,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ELEMENT",
            help="Without it: 'leaf 3', 'nic 5', a link by its name; each: every one in turn.",
        ),
    ] = None,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ELEMENT=PERCENT", help="It lost so much of its speed: 'device 5=20'."
        ),
    ] = None,
    replan: Annotated[bool, typer.Option("--replan", help="Plan anew on what is left.")] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Write what runs when here, as Perfetto reads it (JSON).")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Play an iteration of a plan event by event, beside what was planned."""
    result = nest.simulate(
        _loaded(scenario, sets),
        plan,
        placement=placement,
        fail=fail or (),
        slow={
            name: _share(name, percent) for name, percent in settings(slow or (), "--slow").items()
        },
        replan=replan,
    )
    if trace is not None:
        write_file(trace, "\n".join(result.trace()), "--trace")
    fields = result.to_json() | {"trace": trace and str(trace)}
    words = [f"what runs when: {trace}"] if trace else []
    emit(fields, as_json, lambda _: "\n\n".join([str(result), *words]))


def _share(name: str, percent: object) -> float:
    require(
        isinstance(percent, int | float) and 0 < percent < 100,
        f"--slow {name}",
        "must be above 0 and below 100",
        percent,
        "change it",
    )
    return float(str(percent)) / 100


def diff(
    scenario: ScenarioName,
    traces: Annotated[
        list[Path], typer.Argument(help="Traces of PyTorch's profiler or Chakra, unpacked.")
    ],
    plan: Annotated[
        str | None,
        typer.Option(
            help="That ran: JSON file, dp=8,tp=4,… or a Megatron-LM command; or the best."
        ),
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Set profiler traces of ranks beside the simulated iteration, per stage and term."""
    from nest_core.api.simulate import diff

    show(diff(_loaded(scenario, sets), traces, plan), as_json)


def place(
    scenario: ScenarioName,
    plan: GivenPlan = None,
    placement: Annotated[Path | None, typer.Option(help="Its rank mapping: CSV or JSON.")] = None,
    got: Annotated[
        Path | None,
        typer.Option(help="Order these hosts instead: a line per node, HOST [SPINE.LEAF.HOST]."),
    ] = None,
    form: Annotated[
        Literal["ranks", "nodes", "rankfile"],
        typer.Option(help="With --got: a host per rank or per node, or Open MPI's rank file."),
    ] = "ranks",
    output: Annotated[
        Path | None, typer.Option(help="Write the table here, as CSV or JSON by the ending.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Name every device's rank, replica, stage and rank on each axis, all counted from 0."""
    if got is not None:
        order = nest.place_on(_loaded(scenario, sets), got, plan, placement=placement)
        if output is not None:
            write_file(output, order.text(form), "--output")
        fields = order.to_json() | {"output": output and str(output)}
        return emit(fields, as_json, lambda _: str(order))
    require(
        output is None or output.suffix.lower() in (".csv", ".json"),
        "--output",
        "must end in .csv or .json",
        str(output),
        "rename it",
    )
    mapping = nest.place(_loaded(scenario, sets), plan, placement=placement)
    if output is None or mapping.plan is None:
        show(mapping, as_json)
        return
    fields = mapping.to_json()
    document = json.dumps(plain({"plan": fields["plan"], "placement": fields["placement"]})) + "\n"
    text = document if output.suffix.lower() == ".json" else mapping.to_csv()
    write_file(output, text, "--output")
    words = f"{output}: {fields['devices']:,} devices"
    emit(fields | {"output": str(output)}, as_json, lambda _: words)


def export(
    scenario: ScenarioName,
    to: Annotated[
        str,
        typer.Option(help="megatron, nemo, deepspeed, torchtitan, maxtext, slurm or astra-sim."),
    ],
    plan: Annotated[
        str,
        typer.Option(help="JSON file, dp=8,tp=4,… or a Megatron-LM command; without it, the best."),
    ] = "",
    placement: Annotated[
        Path | None, typer.Option(help="Its rank mapping: CSV or JSON, see place.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write into; without it, files are printed.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Export a plan, or say why the target cannot express it."""
    bundle = nest.export(_loaded(scenario, sets), to, plan or None, placement=placement)
    if output is None:
        return show(bundle, as_json)
    files = {path.name: str(path) for path in bundle.write(output)}
    fields = bundle.to_json() | {"files": files, "base64": [], "output": str(output)}
    listed = ", ".join(sorted(files)[:12]) + (", …" if len(files) > 12 else "")
    written = [f"{plural(len(files), 'file')} in {output}: {listed}"] if files else []
    emit(fields, as_json, lambda _: "\n".join([*written, *bundle.remarks]))


PARTS = ("weights", "gradients", "optimizer", "activations", "stash", "buffers")
LINES = {
    "working": "activations made again, gradients of activations",
    "whole": "weights and new gradients of the layer that runs",
    "step": "what the optimizer step needs beyond the passes",
    "fragmentation": "held by the allocator beyond tensors",
    "context": "driver and context",
    "communicators": "buffers of the communication library",
}


def memory(
    scenario: ScenarioName,
    plan: Annotated[str, typer.Option(help="JSON file, dp=8,tp=4,… or Megatron-LM flags.")],
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the memory of a plan on a scenario: bytes per stage and component."""
    from nest_core.api.fields import memory_json
    from nest_core.costs import price
    from nest_core.costs.parse import read_plan
    from nest_core.report.explain import check_heads
    from nest_core.report.explain.mine import name_stack_for_plan
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
        "fullest_bytes": report.fullest_bytes,
        "memory": memory_json(values, report),
        "communicators": max(given.stage_point(s).communicators for s in range(given.point.pp)),
        "plan": given.to_json(),
        "stages": [_stage(stage) for stage in report.stages],
    }
    emit(fields, as_json, _memory_text)


def compiled(
    scenario: ScenarioName,
    plan: Annotated[
        str | None, typer.Option(help="JSON file or dp=8,tp=4,…; the best plan by default.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Compile a plan's fullest stage for TPUs that are not there, its bytes beside ours."""
    show(nest.compiled(_loaded(scenario, sets), plan), as_json)


def goodput(
    scenario: ScenarioName,
    plan: GivenPlan = None,
    failures: Failures = None,
    tokens: Annotated[
        float | None, typer.Option(help="Of the training run; 20 per parameter by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what failures leave of a plan: saves, restarts, lost work, spares, days to train."""
    show(
        nest.goodput(_loaded(scenario, sets), plan, failures=failures, tokens=tokens, seed=seed),
        as_json,
    )


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


def _memory_text(fields: Mapping[str, Any]) -> str:
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
    fullest = max(fields["stages"], key=lambda stage: float(stage["total_bytes"]))
    lines = [
        [name, f"{size / GIB:.2f}", LINES[name]] for name, size in fullest["buffers_bytes"].items()
    ]
    host = max(stage["host_bytes"] for stage in fields["stages"]) / GIB
    return (
        f"{verdict}; {fields['memory_limit_bytes'] / GIB:.1f} GiB per device\n"
        f"{fields['memory']['words']}\n\n"
        + table(["stage", "layers", "recompute", *PARTS, "total"], rows)
        + f"\n\nGiB{f'; {host:.2f} on the host for a device' if host else ''}\n\n"
        + table(["buffers of the fullest", "GiB", "what it is"], lines)
        + f"\n\n{fields['communicators']} communicators"
    )


def next(  # named as the command is
    scenario: ScenarioName,
    runs: Annotated[int | None, typer.Option(help="At most so many; 6 unless told.")] = None,
    to: Annotated[str, typer.Option(help="slurm: write one job array of 30-step runs.")] = "",
    output: Annotated[Path, typer.Option(help="Folder to write into.")] = Path(),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    experiment: Annotated[
        Literal["", "uplinks"],
        typer.Option(help="uplinks: its plan on fewer and fewer uplinks of every leaf."),
    ] = "",
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Choose the runs of a scenario's plans that tell most about which is the fastest."""
    from nest_core.api.export import Experiment, Next
    from nest_core.api.export import experiment as write_experiment

    document = _loaded(scenario, sets)
    require(
        not experiment or runs is None,
        "--runs",
        "has no part in an experiment, which runs once for every number of uplinks left",
        runs,
        "leave it out",
    )
    if experiment:
        choice: Experiment | Next = write_experiment(document, to=to)
    else:
        choice = nest.next_runs(document, 6 if runs is None else runs, to=to, seed=seed)
    written = choice.write(output)
    fields = choice.to_json() | {"files": {path.name: str(path) for path in written}}
    paths = "".join(f"\n\nWritten to {path}." for path in written)
    emit(fields, as_json, lambda _: f"{choice}{paths}")
