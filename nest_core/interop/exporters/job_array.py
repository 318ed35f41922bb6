"""Several short runs as one Slurm job array: a script whose tasks launch Megatron-LM plans.

A task takes its plan by ``SLURM_ARRAY_TASK_ID`` and starts Megatron-LM's launch script
(`nest_core.interop.exporters.megatron`) once on each of its nodes, which know their numbers from
``SLURM_NODEID``. Tasks run one after the other, so that none takes links from another. Options as
of Slurm 22.05.8's sbatch(1), "--array" and "--hold", scontrol(1), "release", and srun(1).
"""

from __future__ import annotations

from collections.abc import Sequence

from nest_core.costs import Report
from nest_core.interop.exporters.host_mapping import HostMapping, host_mapping
from nest_core.interop.exporters.megatron import export_megatron
from nest_core.interop.exporters.values import ExportFiles, refuse_if
from nest_core.network import collapse
from nest_core.scenario import ScenarioValues
from nest_core.scenario.titles import scenario_title

__all__ = ["FILE", "STEPS", "UPLINKS", "export_array", "export_uplinks"]

FILE, UPLINKS = "next.sbatch", "uplinks.sbatch"
STEPS = 30
"""Iterations of a run: enough for a steady median, with what starts it left out."""

_TASK = """\
{place}) # {words}, predicted {seconds:.4g} s
  nodes={nodes}
  launch=$(cat <<'NEST_RUN'
{script}NEST_RUN
)
  ;;
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
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR="${hosts[0]}"
"""
_CASE = """\
case "$SLURM_ARRAY_TASK_ID" in
"""
_ESAC = """\
*) echo "no run of this number" >&2; exit 1 ;;
esac
"""
_ONE = """\
nodes={nodes}
launch=$(cat <<'NEST_RUN'
{script}NEST_RUN
)
"""
_BOTTOM = """\
srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --gpu-bind=none \\
  --kill-on-bad-exit=1 bash -c "$launch" launch "$@"
"""


def export_array(scenario: ScenarioValues, reports: Sequence[Report]) -> ExportFiles:
    """Return one script that runs every plan for `STEPS` steps.

    Raises
    ------
    Refused
        If there is none, or Megatron-LM cannot express one.
    """
    refuse_if(
        not reports,
        "runs",
        "must hold a plan that Megatron-LM can run",
        "none",
        "pin the search to what it can run, or leave --to out",
    )
    network = collapse(scenario.fabric)
    mappings = [host_mapping(network, report.plan.point) for report in reports]
    nodes = [len(mapping.used_hosts) for mapping in mappings]
    directives = _directives(
        mappings, name="nest-next", array=f"0-{len(reports) - 1}%1", output="next-%a.log"
    )
    tasks = [
        _TASK.format(
            place=place,
            words=report.plan.words,
            seconds=report.iteration_s,
            nodes=count,
            script=export_megatron(scenario, report, STEPS).files["launch.sh"],
        )
        for place, (report, count) in enumerate(zip(reports, nodes, strict=True))
    ]
    top = _TOP.format(
        title=" ".join(scenario_title(scenario).split()),
        count=len(reports),
        steps=STEPS,
        file=FILE,
    )
    return ExportFiles({FILE: directives + top + _START + _CASE + "".join(tasks) + _ESAC + _BOTTOM})


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
    mapping = host_mapping(collapse(scenario.fabric), report.plan.point)
    directives = _directives(
        [mapping],
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
    launch = _ONE.format(
        nodes=len(mapping.used_hosts),
        script=export_megatron(scenario, report, STEPS).files["launch.sh"],
    )
    return ExportFiles({UPLINKS: directives + top + _START + launch + _BOTTOM})


def _directives(
    mappings: Sequence[HostMapping], *, name: str, array: str, output: str, more: Sequence[str] = ()
) -> str:
    """The first lines of a job array whose tasks have nodes to themselves, one after the other."""
    options = (
        f"--job-name={name}",
        f"--array={array}",
        *more,
        f"--nodes={max(len(mapping.used_hosts) for mapping in mappings)}",
        "--ntasks-per-node=1",
        f"--gpus-per-node={max(int(mapping.per_host.max()) for mapping in mappings)}",
        "--exclusive",
        f"--output={output}",
    )
    return "#!/usr/bin/env bash\n" + "".join(f"#SBATCH {option}\n" for option in options)
