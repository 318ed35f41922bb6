"""Several short runs as one Slurm job array: a script whose tasks launch Megatron-LM plans.

A task takes its plan by ``SLURM_ARRAY_TASK_ID`` and starts Megatron-LM's launch script
(`nest_core.interop.exporters.megatron`) once on each of its nodes, which know their numbers from
``SLURM_PROCID``, in the order in which the plan's groups lie as drawn (`nest_core.interop.
exporters.place_job`, carried within the script). Tasks run one after the other, so that none takes
links from another. Options as of Slurm's sbatch(1), "--array" and "--hold", scontrol(1), "release",
and srun(1).
"""

import inspect
import json
from collections.abc import Sequence
from typing import Any

from nest_core.costs import Report
from nest_core.interop.exporters import place_job
from nest_core.interop.exporters.megatron import export_megatron
from nest_core.interop.exporters.shapes import allocation_shapes
from nest_core.interop.exporters.slurm import HOSTS, wanted_nodes
from nest_core.interop.exporters.values import ExportFiles, host_mapping, refuse_first
from nest_core.network import collapse
from nest_core.scenario import ScenarioValues, scenario_title

__all__ = ["FILE", "STEPS", "UPLINKS", "export_array", "export_uplinks"]

FILE, UPLINKS = "next.sbatch", "uplinks.sbatch"
STEPS = 30
"""Iterations of a run: enough for a steady median, with what starts it left out."""

_RUN = """\
nodes={nodes}
cat > "$work/shapes.json" <<'NEST_SHAPES'
{shapes}
NEST_SHAPES
launch=$(cat <<'NEST_RUN'
{script}NEST_RUN
)
"""
_TASK = """\
{place}) # {words}, predicted {seconds:.4g} s
{run}  ;;
"""
_TOP = """\
# {title}: {count} runs of {steps} steps that narrow the choice of its plan most.
# Submit from Megatron-LM's folder: sbatch {file} [DATA OPTION]...; options replace mock data.
# Send back next-*.log, the output of the tasks: nest-studio calibrate next-*.log --on SCENARIO
# --name NAME makes NAME.toml of them; then nest-studio next SCENARIO with stack = "NAME.toml".
"""
_UPLINKS_TOP = """\
# {title}: one plan on fewer and fewer uplinks of every leaf, {steps} steps each.
# {words}
# Submit from Megatron-LM's folder: sbatch --nodelist=NODES {file} [DATA OPTION]...; options
# replace mock data. All tasks are held; task K runs with K uplinks left on every leaf. For each, in
# shuffled order and with all uplinks at the start and the end: shut the ports of the other uplinks
# on every leaf, as the table has it, those to the same spines; see that routes have settled; note
# the ports that are up; and only then scontrol release JOBID_K. Hold all else fixed, as
# docs/validation.md, "What would settle oversubscription", lists it, and switch all ports on in the
# end. Compare the steady median of a step in uplinks-K.log with the table.
#
{table}
"""
_START = """\
set -euo pipefail
work="$(mktemp -d "$PWD/nest.XXXXXX")"
trap 'rm -rf -- "$work"' EXIT
NEST_FOLDER="$work"
cat > "$work/place_job.py" <<'NEST_PLACE'
{place_job}NEST_PLACE
"""
_CASE = """\
case "$SLURM_ARRAY_TASK_ID" in
"""
_ESAC = """\
*) echo "no run of this number" >&2; exit 1 ;;
esac
"""
_BOTTOM = (
    HOSTS.format(form="nodes")
    + """\
srun --ntasks="$nodes" --distribution=arbitrary --gpu-bind=none --kill-on-bad-exit=1 \\
  bash -c "$launch" launch "$@"
"""
)


def export_array(scenario: ScenarioValues, reports: Sequence[Report]) -> ExportFiles:
    """Return one script that runs every plan for `STEPS` steps.

    Raises
    ------
    Refused
        If there is none, or Megatron-LM cannot express one.
    """
    refuse_first(
        (
            not reports,
            "runs",
            "must hold a plan that Megatron-LM can run",
            "none",
            "pin the search to what it can run",
        )
    )
    shapes = [allocation_shapes(scenario, report) for report in reports]
    directives = _directives(
        scenario,
        reports,
        shapes,
        name="nest-next",
        array=f"0-{len(reports) - 1}%1",
        output="next-%a.log",
    )
    tasks = [
        _TASK.format(
            place=place,
            words=report.plan.words,
            seconds=report.iteration_s,
            run=_run(scenario, report, shape),
        )
        for place, (report, shape) in enumerate(zip(reports, shapes, strict=True))
    ]
    top = _TOP.format(
        title=" ".join(scenario_title(scenario).split()),
        count=len(reports),
        steps=STEPS,
        file=FILE,
    )
    script = _CASE + "".join(tasks) + _ESAC + _BOTTOM
    return ExportFiles({FILE: directives + top + _start() + script})


def export_uplinks(
    scenario: ScenarioValues, report: Report, max_uplinks: int, words: str, table: str
) -> ExportFiles:
    """Return one script that runs a plan once for every number of uplinks that leaves have left.

    Parameters
    ----------
    max_uplinks : int
        Uplinks of a leaf.
    words, table : str
        What leaves have; and by uplinks left what stays on and what is predicted.

    Raises
    ------
    Refused
        If Megatron-LM cannot express the plan.
    """
    shape = allocation_shapes(scenario, report)
    directives = _directives(
        scenario,
        [report],
        [shape],
        name="nest-uplinks",
        array=f"1-{max_uplinks}%1",
        output="uplinks-%a.log",
        more=("--hold",),
    )
    top = _UPLINKS_TOP.format(
        title=" ".join(scenario_title(scenario).split()),
        steps=STEPS,
        words=words,
        file=UPLINKS,
        table="\n".join(f"# {row}" for row in table.splitlines()),
    )
    run = _run(scenario, report, shape)
    return ExportFiles({UPLINKS: directives + top + _start() + run + _BOTTOM})


def _start() -> str:
    """Return the lines that unpack what orders hosts."""
    return _START.format(place_job=inspect.getsource(place_job))


def _run(scenario: ScenarioValues, report: Report, shape: dict[str, Any]) -> str:
    """Return the lines that say which nodes a plan takes, and what each of them starts."""
    return _RUN.format(
        nodes=shape["nodes"],
        shapes=json.dumps(shape, separators=(",", ":")),
        script=export_megatron(scenario, report, STEPS).files["launch.sh"],
    )


def _directives(
    scenario: ScenarioValues,
    reports: Sequence[Report],
    shapes: Sequence[dict[str, Any]],
    *,
    name: str,
    array: str,
    output: str,
    more: Sequence[str] = (),
) -> str:
    """Return the first lines of a job array whose tasks run one after the other, on whole nodes.

    Nodes are asked for as the largest run needs them.
    """
    network = collapse(scenario.fabric)
    mappings = [host_mapping(network, report.plan.point) for report in reports]
    largest, shape = max(zip(mappings, shapes, strict=True), key=lambda pair: pair[1]["nodes"])
    options = (
        f"--job-name={name}",
        f"--array={array}",
        *more,
        f"--nodes={shape['nodes']}",
        "--ntasks-per-node=1",
        f"--gpus-per-node={max(int(mapping.per_host.max()) for mapping in mappings)}",
        "--exclusive",
        *wanted_nodes(scenario, largest, shape),
        f"--output={output}",
    )
    return "#!/usr/bin/env bash\n" + "".join(f"#SBATCH {option}\n" for option in options)
