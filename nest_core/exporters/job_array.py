"""Several short runs as one Slurm job array: a script whose tasks launch Megatron-LM plans.

A task takes its plan by ``SLURM_ARRAY_TASK_ID`` and starts Megatron-LM's launch script
(`nest_core.exporters.megatron`) once on each of its nodes, which know their numbers from
``SLURM_NODEID``. Tasks run one after the other, so that none takes links from another. Options as
of Slurm 22.05.8's sbatch(1), "--array", and srun(1).
"""

from __future__ import annotations

from collections.abc import Sequence

from nest_core.costs import Report
from nest_core.exporters.host_mapping import host_mapping
from nest_core.exporters.megatron import export_megatron
from nest_core.exporters.values import Bundle, refuse_if, subject
from nest_core.network import collapse
from nest_core.scenario import Scenario
from nest_core.scenario.titles import scenario_title

__all__ = ["FILE", "STEPS", "export_array"]

FILE = "next.sbatch"
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
set -euo pipefail
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR="${{hosts[0]}}"
case "$SLURM_ARRAY_TASK_ID" in
"""
_BOTTOM = """\
*) echo "no run of this number" >&2; exit 1 ;;
esac
srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --gpu-bind=none \\
  --kill-on-bad-exit=1 bash -c "$launch" launch "$@"
"""


def export_array(scenario: Scenario, reports: Sequence[Report]) -> Bundle:
    """One script that runs every plan for `STEPS` steps.

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
    options = (
        "--job-name=nest-next",
        f"--array=0-{len(reports) - 1}%1",
        f"--nodes={max(nodes)}",
        "--ntasks-per-node=1",
        f"--gpus-per-node={max(int(mapping.per_host.max()) for mapping in mappings)}",
        "--exclusive",
        "--output=next-%a.log",
    )
    tasks = [
        _TASK.format(
            place=place,
            words=subject(report.plan.point),
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
    directives = "".join(f"#SBATCH {option}\n" for option in options)
    return Bundle({FILE: "#!/usr/bin/env bash\n" + directives + top + "".join(tasks) + _BOTTOM})
