"""Plans for frameworks: those of all scenarios, and drawn ones until so many are exported."""

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.outside.tool import BUILD, Row, Tool, read_cases, reasons
from nest_core.api.price import given_plan
from nest_core.costs import V_SHAPED, Report, price
from nest_core.documents import InputError
from nest_core.documents.presets import preset_names
from nest_core.interop.exporters import ExportRefused, export_plan
from nest_core.interop.exporters.astra_workload import groups_of
from nest_core.planner import search
from nest_core.scenario import ScenarioValues, load_scenario

DRAWN, MOST_DRAWS, LIMIT_S = 60, 6_000, 60.0
ROOMS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Written:
    """Exports in a folder, and why the others were refused by us."""

    folder: Path
    refused: list[str]
    exported: int


@cache
def drawn_scenario(model: str, *settings: str) -> ScenarioValues:
    """Return the scenario of 64 devices that plans of a model are drawn for."""
    return load_scenario(
        "llama2-7b-64-h100",
        [
            *settings,
            f'workload.model="{model}"',
            'fabric="h100-spine-leaf-64"',
            "workload.global_batch_sequences=512",
            "workload.sequence_length_tokens=1536",
        ],
    )


def best_plans(pins: tuple[str, ...]) -> Iterator[tuple[ScenarioValues, Report]]:
    """Give every shipped scenario with its best plan under some settings."""
    for name in preset_names("scenarios"):
        values = load_scenario(name, pins)
        result = search(values.problem(), values.space, time_limit_s=LIMIT_S)
        if result.best is not None:
            yield values, result.best


def drawn_fields(rng: random.Random, scenario: ScenarioValues) -> dict[str, Any]:
    """Return the fields of some plan of 64 devices; not all are plans of the scenario."""
    model, layers = scenario.model, scenario.model.blocks + 2
    tp, pp, cp = rng.choice(ROOMS), rng.choice(ROOMS), rng.choice((1, 1, 1, 2, 3, 4))
    fields: dict[str, Any] = {
        "tp": tp,
        "sp": tp > 1 and rng.random() < 0.7,
        "pp": pp,
        "cp": cp,
        "dp": max(1, 64 // (tp * pp * cp)),
        "micro_batch": rng.choice((1, 1, 2, 4)),
        "zero": rng.randrange(4),
        "recompute": rng.choice(("none", "none", "full", "full", "selective", "core_attn+mlp")),
    }
    if pp > 1:
        schedules = ("1f1b", "1f1b", "gpipe", "interleaved", "interleaved", "zb_h1", "zb_1p")
        schedules += ("interleaved_zb", "zbv", "dualpipev")
        fields["schedule"] = rng.choice(schedules)
    if fields.get("schedule") in ("interleaved", "interleaved_zb"):
        fields["interleave"] = rng.choice((2, 2, 3))
    if fields.get("schedule") in V_SHAPED:
        fields["interleave"] = 2
    stages = pp * fields.get("interleave", 1)
    if stages > 1 and rng.random() < 0.3:
        fields["cuts"] = [0, *sorted(rng.sample(range(1, layers), stages - 1)), layers]
    if model.experts > 1:
        fields["ep"] = rng.choice([n for n in (1, 2, 4, 8, 16) if model.experts % n == 0])
        fields["etp"] = rng.choice((1, 1, tp))
    if fields["zero"] and rng.random() < 0.2:
        fields["zero_group"] = rng.choice((2, 4, 8))
    if rng.random() < 0.15:
        fields["offload"] = rng.choice(("optimizer", "optimizer=0.5"))
    return fields


def drawn_plans(
    models: tuple[str, ...], jobs: tuple[str, ...] = (), seed: int = 0
) -> Iterator[tuple[ScenarioValues, Report]]:
    """Give plans of models in turn, each priced; the same seed, the same plans.

    ``jobs`` are settings of which every second plan has one.
    """
    for number in range(MOST_DRAWS):
        rng = random.Random(f"{seed} {number}")
        job = jobs[number // 2 % len(jobs) :][:1] if jobs and number % 2 else ()
        scenario = drawn_scenario(models[number % len(models)], *job)
        try:
            plan = given_plan(scenario, scenario.problem(), drawn_fields(rng, scenario)).plan
            yield scenario, price(scenario.problem(plan.recompute), plan)
        except InputError:
            continue


def written(
    target: str, models: tuple[str, ...], pins: tuple[str, ...], jobs: tuple[str, ...] = ()
) -> tuple[Written, Written]:
    """Return exports of the plans of all scenarios, and of `DRAWN` drawn ones."""
    shipped = write_plans(f"{target}-scenarios", target, best_plans(pins))
    return shipped, write_plans(f"{target}-drawn", target, drawn_plans(models, jobs))


def write_plans(
    name: str, target: str, plans: Iterator[tuple[ScenarioValues, Report]], most: int = DRAWN
) -> Written:
    """Return exports of the first plans that we do not refuse, in a folder of a name."""
    folder = BUILD / "plans" / name
    shutil.rmtree(folder, ignore_errors=True)
    cases: list[dict[str, Any]] = []
    refused = []
    for scenario, report in plans:
        try:
            bundle = export_plan(target, scenario, report)
        except ExportRefused as error:
            refused.append(str(error))
            continue
        case = f"{len(cases):03}"
        for file, content in bundle.files.items():
            (folder / case).mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            (folder / case / file).write_bytes(data)
        cases.append(_facts(case, scenario, report))
        if len(cases) == most:
            break
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.json").write_text(json.dumps(cases))
    return Written(folder, refused, len(cases))


def _facts(name: str, scenario: ScenarioValues, report: Report) -> dict[str, Any]:
    """Return what a program needs to see whether it reads the plan that was meant."""
    plan, batch = report.plan, scenario.batch
    pipelines = {"pp": plan.point.layout.devices.reshape(plan.point.pp, -1).T}
    return {
        "name": name,
        "model": scenario.model.name,
        "ranks": plan.devices_used,
        "batch": batch,
        "sequence": scenario.sequence,
        "micro_batches": plan.point.micro_batches(batch),
        "blocks": scenario.model.blocks,
        "experts": scenario.model.experts,
        "dense": scenario.model.dense_blocks
        if scenario.model.experts > 1
        else scenario.model.blocks,
        "vocabulary": scenario.model.vocabulary,
        "latent": scenario.model.kv_rank > 0,
        "groups": {
            axis: sorted(sorted(row) for row in rows.tolist())
            for axis, rows in (groups_of(plan.point).members | pipelines).items()
        },
        "plan": plan.to_json(),
    }


def export_rows(
    tool: Tool,
    target: str,
    program: str,
    models: tuple[str, ...],
    pins: tuple[str, ...] = (),
    jobs: tuple[str, ...] = (),
) -> list[Row]:
    """Return what a tool says of our exports: of all scenarios, and of drawn plans.

    Parameters
    ----------
    program : str
        Of ``inside/``, which reads them.
    models : tuple of str
        Of drawn plans.
    pins : tuple of str
        Settings that keep the search for a scenario's best plan to what the target can do.
    jobs : tuple of str
        Settings of the workload, one for every second drawn plan.
    """
    tool.interpreter()
    rows = []
    for kind, exports in zip(
        ("scenarios", "drawn plans"), written(target, models, pins, jobs), strict=True
    ):
        answers = read_cases(tool, program, exports.folder) if exports.exported else []
        accepted = sum(answer["accepted"] for answer in answers)
        remarks = [f"we refuse {len(exports.refused)} more"] if exports.refused else []
        bad = [answer["reason"] for answer in answers if not answer["accepted"]]
        remarks += [f"refused: {reasons(bad)}"] if bad else []
        rows.append(tool.row(f"exports of {kind}", len(answers), accepted, "; ".join(remarks)))
    return rows
