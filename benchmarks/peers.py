"""Other planners and estimators beside ours, on one job and one core, as a page.

``python -m benchmarks.peers`` writes ``docs/peers.md``, after every row anew. The job is 32 layers
of 4,096 (Llama 2 7B), 2,048 tokens, batch 512, on 64 and 512 A100 of eight to a node. Every search
runs in a process of its own, so that ours is as cold as theirs; what is counted is the search, not
imports and not what Numba compiled once for the installation. Galvatron searches with the profiles
that it ships; the two estimators do not search and are given Galvatron's plan and ours.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nest_core as nest
from benchmarks.outside.facts import LLM_ANALYSIS
from benchmarks.outside.galvatron import TOOL as GALVATRON
from benchmarks.outside.tool import Tool
from nest_core.costs import Plan
from nest_core.costs.plan_words import plan_words
from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import load_scenario

PAGE = Path(__file__).parent.parent / "docs" / "peers.md"
MLSYSIM = Tool("mlsysim", "0.3.0", ("mlsysim==0.3.0",))
ESTIMATORS = ((LLM_ANALYSIS, "peers_llm_analysis.py"), (MLSYSIM, "peers_mlsysim.py"))
NODES, PER_NODE, BATCH, SEQUENCE, MEMORY_GIB = (8, 64), 8, 512, 2048, 80
SCENARIO = "gpt3-175b-512-a100"
MIXED = {"search.stage_strategies": "mixed"}
RATIOS = (
    ("uniform", "search, uniform stages", 60),
    ("layer-wise", "search, mixed stages", 150),
    ("uniform", "whole command, uniform stages", 12),
    ("layer-wise", "whole command, mixed stages", 80),
)
"""Galvatron's search, ours, and how many times its processor time ours should fit into."""

LEFT_OUT = {
    "hetu-galvatron": "the work of middle stages (only the first and the last set its pace) and "
    "all of a fabric beyond two nodes, for which it ships bandwidths",
    "llm-analysis": "fill and drain of the pipeline and every collective (a network a thousand "
    "times slower leaves its step as it is); half of the peak is given, not found",
    "mlsysim": "hand-over between stages; half of the peak is given, not found",
    "ours": "other jobs on the fabric, input, failures; see [limits](limits.md)",
}

TORCH = """
PyTorch 2.13.0 estimates no step of a plan, so it has no row: `RuntimeEstimator` times the kernels
of one rank, and its collectives are priced one at a time (DTensor's redistribution, Inductor's NCCL
estimate). Without CUDA the former answers nothing, and the latter take all groups to lie between
hosts.
"""

HEAD = """# Other planners beside ours

One job, 32 layers of 4,096 (Llama 2 7B), 2,048 tokens, batch 512, on 64 and 512 A100 of 80 GB,
eight to a node, put to programs that anybody can install. Seconds are of one run, every search in a
process of its own on one and the same core, other work on the machine or not; the processor's are
the fairer ones. Plans priced are as each counts them. *Promise* is the step that the program itself
says; *by us* is the same plan on our costs for A100 over HDR InfiniBand. Promises rest on different
measurements (Galvatron's on the profiles that it ships), so that two of them say nothing about who
is right; a plan is compared with a plan in the column *by us*, which favours ours, for ours is the
fastest by just those costs. Rows of Galvatron's layer-wise search come last, after minutes; a page
without them is of a run that was ended before. Written by `python -m benchmarks.peers`.

"""


@dataclass(frozen=True, slots=True)
class PeerRow:
    """What a program made of the job: seconds, plans priced, its plan, and two prices of it."""

    tool: str
    what: str
    devices: int
    wall_s: float
    cpu_s: float
    plans: int | None
    plan: str
    promise_s: float | None
    ours: str


def settings(nodes: int) -> dict[str, Any]:
    """Return what makes the shipped scenario of A100 this job."""
    return {
        "fabric.clos.devices": nodes * PER_NODE,
        "workload.model": "llama2-7b",
        "workload.precision": "bf16",
        "workload.sequence_length_tokens": SEQUENCE,
        "workload.global_batch_sequences": BATCH,
    }


def sets(nodes: int, mixed: bool) -> list[str]:
    """Return the same as options of the command line."""
    values = settings(nodes) | (MIXED if mixed else {})
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def searched(nodes: int, mixed: bool) -> None:
    """Search once, and print figures as JSON; runs in a process of its own."""
    scenario = load_scenario(SCENARIO, sets(nodes, mixed))
    clock, processor = time.perf_counter(), time.process_time()
    result = search(scenario.problem(), scenario.space)
    wall_s, cpu_s = time.perf_counter() - clock, time.process_time() - processor
    if result.best is None or not result.certificate.proven:
        raise SystemExit("not proven")
    figures = {
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "plans": result.certificate.points,
        "step_s": result.best.iteration_s,
        "plan": result.best.plan.to_json(),
    }
    print(json.dumps(figures))


def process(*words: str) -> tuple[str, float, float]:
    """Return what a Python process prints, its seconds and those of the processor."""
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    wall_s, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, wall_s, cpu_s


def our_rows(nodes: int, mixed: bool) -> tuple[list[PeerRow], Plan]:
    """Return our search alone, and the command with every baseline beside it."""
    what = f"{'mixed' if mixed else 'uniform'} stages"
    devices = nodes * PER_NODE
    printed, _, _ = process("-m", "benchmarks.peers", "search", str(nodes), str(int(mixed)))
    figures = json.loads(printed)
    plan = nest.price(nest.load(SCENARIO, settings(nodes)), figures["plan"]).report.plan
    alone = PeerRow(
        "ours",
        f"search, {what}",
        devices,
        figures["wall_s"],
        figures["cpu_s"],
        figures["plans"],
        plan_words(plan.to_json()),
        figures["step_s"],
        f"{figures['step_s']:.4g} s",
    )
    options = [word for value in sets(nodes, mixed) for word in ("--set", value)]
    _, wall_s, cpu_s = process("-m", "nest_studio", "plan", SCENARIO, *options, "--json")
    command = f"whole command, {what}"
    return [alone, PeerRow("ours", command, devices, wall_s, cpu_s, None, "", None, "")], plan


def priced(nodes: int, plan: str | Path | Plan) -> str:
    """Return our price of somebody's plan in words, or why there is none."""
    try:
        answer = nest.price(nest.load(SCENARIO, settings(nodes)), plan)
    except InputError as error:
        return str(error)
    report, best = answer.report, answer.best
    later = report.iteration_s / best.iteration_s - 1 if best else 0.0
    return f"{report.iteration_s:.4g} s ({later:+.1%} to ours)" + (
        "" if report.feasible else f"; does not fit: {report.reason}"
    )


def galvatron_row(nodes: int, fine: bool, folder: Path) -> tuple[PeerRow, Path]:
    """Return what Galvatron's search finds, and the file that it writes."""
    folder.mkdir()
    words = ["--fine"] if fine else []
    printed = GALVATRON.run("galvatron_engine.py", nodes, BATCH, MEMORY_GIB, folder, *words)
    figures = json.loads(printed.splitlines()[-1])
    (file,) = folder.glob("galvatron_config_*.json")
    row = PeerRow(
        "hetu-galvatron",
        "layer-wise" if fine else "uniform",
        nodes * PER_NODE,
        figures["wall_s"],
        figures["cpu_s"],
        figures["plans"],
        in_words(json.loads(file.read_text())),
        BATCH / figures["rate"],
        priced(nodes, file),
    )
    return row, file


def in_words(document: dict[str, Any]) -> str:
    """Return a strategy file in few words, with how many layers do what."""
    names = {"tp_sizes_enc": "tp", "dp_types_enc": "ZeRO-3", "checkpoint": "recomputed"}
    words = [f"pp {document['pp_deg']}, {document['chunks']} micro-batches"]
    for field, name in names.items():
        values = document[field].split(",")
        counts = {value: values.count(value) for value in dict.fromkeys(values)}
        if len(counts) == 1 and name == "tp":
            words.append(f"tp {values[0]}")
        elif name == "tp":
            parts = (f"{count} layers {value}" for value, count in counts.items())
            words.append("tp of " + ", ".join(parts))
        else:
            words.append(f"{name} {counts.get('1', 0)} of {len(values)} layers")
    return ", ".join(words)


def estimated(tool: Tool, program: str, nodes: int, plan: Plan, whose: str) -> PeerRow:
    """Return what an estimator says of a plan."""
    point = plan.point
    job = {"nodes": nodes, "batch": BATCH, "sequence": SEQUENCE}
    degrees = {name: getattr(point, name) for name in ("dp", "tp", "pp", "zero", "micro_batch")}
    figures = json.loads(tool.run(program, json.dumps(job | degrees)).splitlines()[-1])
    return PeerRow(
        tool.name,
        f"a step of {whose}",
        nodes * PER_NODE,
        figures["wall_s"],
        figures["cpu_s"],
        figures["plans"],
        plan_words(plan.to_json()),
        figures["step_s"],
        priced(nodes, plan),
    )


def cells(row: PeerRow) -> list[str]:
    """Return a line of the table."""
    return [
        row.tool,
        row.what,
        str(row.devices),
        f"{row.wall_s:.3g}",
        f"{row.cpu_s:.3g}",
        "–" if row.plans is None else f"{row.plans:,}",
        row.plan or "as above",
        "–" if row.promise_s is None else f"{row.promise_s:.4g}",
        row.ours or "–",
    ]


def ratios(rows: list[PeerRow]) -> list[str]:
    """Return how often our processor time fits into Galvatron's, and whether often enough."""
    lines = []
    cpu_s = {(row.tool, row.what, row.devices): row.cpu_s for row in rows}
    for theirs, ours, wanted in RATIOS:
        for nodes in NODES:
            devices = nodes * PER_NODE
            pair = ("hetu-galvatron", theirs, devices), ("ours", ours, devices)
            if all(key in cpu_s for key in pair):
                ratio = cpu_s[pair[0]] / cpu_s[pair[1]]
                verdict = "met" if ratio >= wanted else "missed"
                lines.append(
                    f"* {devices} GPUs, our {ours} beside Galvatron's {theirs} search: "
                    f"1/{ratio:.3g} of its processor time; wanted 1/{wanted}, {verdict}."
                )
    return lines


def growth(rows: list[PeerRow]) -> list[str]:
    """Return how processor time grows from the small fabric to the large one, search by search."""
    few, many = (nodes * PER_NODE for nodes in NODES)
    cpu_s = {(row.tool, row.what, row.devices): row.cpu_s for row in rows}
    wanted = [(row.tool, row.what) for row in rows if row.devices == few]
    words = [
        f"{tool} {what} {cpu_s[tool, what, many] / cpu_s[tool, what, few]:.3g}"
        for tool, what in wanted
        if (tool, what, many) in cpu_s and "step" not in what
    ]
    return [f"* From {few} to {many} GPUs processor time becomes, times: {'; '.join(words)}."]


def write(rows: list[PeerRow]) -> None:
    """Write the page from the rows that there are."""
    titles = ["program", "what", "GPUs", "wall, s", "CPU, s", "plans priced", "plan", "promise, s"]
    lines = [[*titles, "by us"], ["---"] * 9, *map(cells, rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    left_out = "".join(f"* {name}: {text}.\n" for name, text in LEFT_OUT.items())
    speed = "## Speed\n\n" + "\n".join(ratios(rows) + growth(rows))
    promises = f"## What the promises leave out\n\n{left_out}{TORCH}"
    page = f"{HEAD}{table}\n{speed}\n\n{promises}"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Measure everything, writing the page after each row."""
    if sys.argv[1:2] == ["search"]:
        searched(int(sys.argv[2]), bool(int(sys.argv[3])))
        return
    for tool in (GALVATRON, LLM_ANALYSIS, MLSYSIM):
        tool.interpreter()
    our_rows(min(NODES), True)  # Numba compiles once for an installation
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows: list[PeerRow] = []

    def add(*more: PeerRow) -> None:
        rows.extend(more)
        for row in more:
            print(" | ".join(cells(row)), flush=True)
        write(rows)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for nodes in NODES:
            row, file = galvatron_row(nodes, False, folder / f"uniform{nodes}")
            add(row)
            uniform, plan = our_rows(nodes, False)
            add(*uniform)
            add(*our_rows(nodes, True)[0])
            theirs = nest.price(nest.load(SCENARIO, settings(nodes)), file).report.plan
            for tool, program in ESTIMATORS:
                add(estimated(tool, program, nodes, theirs, "Galvatron's"))
                add(estimated(tool, program, nodes, plan, "ours"))
        for nodes in NODES:
            add(galvatron_row(nodes, True, folder / f"layers{nodes}")[0])


if __name__ == "__main__":
    main()
