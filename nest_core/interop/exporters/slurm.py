"""Slurm: a batch script that gives every rank of a plan its node and its device.

Which nodes an allocation has, and in which order Slurm lists them, differs between its releases and
its topology plugins. So the job asks for what the plan needs (``--segment``, which topology/block
heeds; nodes by name, where the fabric names them and blocks do not forbid it), reads which switches
are above the nodes that it got, and writes the host file of its own step, a line per rank, for
``--distribution=arbitrary`` [1]_ (`nest_core.interop.exporters.place_job`). Options of ``sbatch``
and ``srun`` as of Slurm's manual pages.

A task finds ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK`` (its device), ``LOCAL_WORLD_SIZE``,
``MASTER_ADDR`` and ``MASTER_PORT``, which is what ``torch.distributed`` reads; it sees all devices
of its node. Ranks are numbered along the plan's axis order: the framework must number them alike.

References
----------
.. [1] srun(1), "-m, --distribution", "arbitrary".
"""

import inspect
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from nest_core.costs import Plan, Report
from nest_core.interop.exporters import place_job
from nest_core.interop.exporters.shapes import allocation_shapes
from nest_core.interop.exporters.values import (
    ExportFiles,
    HostMapping,
    header,
    host_mapping,
    refuse_first,
)
from nest_core.interop.formats.slurm import compressed
from nest_core.network import collapse
from nest_core.scenario import ScenarioValues, scenario_title

__all__ = ["HOSTS", "coordinates", "export_slurm", "wanted_nodes"]

_TASK = """\
#!/usr/bin/env bash
{top}# One rank: its number from Slurm, its device {source}.
set -euo pipefail
export RANK="$SLURM_PROCID" WORLD_SIZE="$SLURM_NTASKS"
{device}export LOCAL_RANK="$device"
exec "$@"
"""
_FROM_FILE = """\
read -r _ _ device LOCAL_WORLD_SIZE _ < <(awk -v rank="$RANK" '$1 == rank' "$NEST_RANKS")
export LOCAL_WORLD_SIZE
"""
_FROM_SLURM = """\
device="$SLURM_LOCALID"
export LOCAL_WORLD_SIZE="{per_node}"
"""
HOSTS = """\
srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\
  --gpu-bind=none bash -c 'echo "$SLURMD_NODENAME ${{SLURM_TOPOLOGY_ADDR:-}}"' > "$work/got.txt"
grep -q ' .' "$work/got.txt" || scontrol show topology >> "$work/got.txt"
export SLURM_HOSTFILE="$work/hosts.txt"
python3 "$NEST_FOLDER/place_job.py" "$NEST_FOLDER/shapes.json" "$work/got.txt" {form} \\
  > "$SLURM_HOSTFILE"
MASTER_ADDR="$(head -n 1 "$SLURM_HOSTFILE")"
export MASTER_ADDR
"""
"""Writes the host file of a step into the folder ``$work``; ``form`` as `place_job` takes it."""


def export_slurm(
    scenario: ScenarioValues, report: Report, others: Sequence[Plan] = ()
) -> ExportFiles:
    """Return batch and task script, what places ranks, and a rank file where it is needed.

    Parameters
    ----------
    others : sequence of Plan
        Plans that may lose less on another allocation than the planned one.

    Raises
    ------
    Refused
        If stages divide their layers so differently that a rank has no single place.
    """
    plan = report.plan
    rank_mapping = host_mapping(collapse(scenario.fabric), plan.point)
    places = coordinates(plan)
    plain = rank_mapping.in_order and rank_mapping.even
    shapes = allocation_shapes(scenario, report, others)
    files = {
        "job.sbatch": _job(scenario, plan, rank_mapping, plain, shapes),
        "place_job.py": header(scenario, plan, "slurm") + inspect.getsource(place_job),
        "shapes.json": json.dumps(shapes, separators=(",", ":")) + "\n",
        "task.sh": _TASK.format(
            top=header(scenario, plan, "slurm"),
            source="too" if plain else "from the rank file",
            device=_FROM_SLURM.format(per_node=int(rank_mapping.per_host[0]))
            if plain
            else _FROM_FILE,
        ),
    }
    if not plain:
        files["ranks.txt"] = _ranks(scenario, plan, rank_mapping, places)
    nodes = len(rank_mapping.used_hosts)
    notes = (
        "The job orders the nodes that it gets by the switches above them, and says in one line "
        "what that costs; with NEST_OTHER_SHAPE=stop it ends where groups would be cut.",
        "Nodes that the plan leaves idle are not asked for.",
    )
    return ExportFiles(files, notes if len(rank_mapping.host_sizes) > nodes else notes[:1])


def coordinates(plan: Plan) -> dict[str, list[int]]:
    """Return place of every rank on each axis.

    Raises
    ------
    Refused
        Where stages differ in width and the axes lie so that a rank belongs to two stages.
    """
    point = plan.point
    places = {axis: np.zeros(point.devices_used, dtype=np.int64) for axis in point.order}
    for stage in range(point.pp):
        layout = plan.stage_point(stage).layout
        in_stage = layout.stage_of(point.devices_used) == stage
        refuse_first(
            (
                not np.array_equal(in_stage, point.layout.stage_of(point.devices_used) == stage),
                "plan.stage_strategies",
                "must leave every rank to one stage for Slurm under the order "
                + "-".join(point.order),
                f"stage {stage + 1}",
                "pin search.order so that pp does not lie between tp and cp",
            )
        )
        ranks = np.flatnonzero(in_stage)
        for axis in point.order:
            places[axis][ranks] = ranks // layout.stride(axis) % getattr(layout, axis)
    return {axis: place.tolist() for axis, place in places.items()}


def _job(
    scenario: ScenarioValues,
    plan: Plan,
    rank_mapping: HostMapping,
    plain: bool,
    shapes: dict[str, Any],
) -> str:
    nodes = shapes["nodes"]
    name = re.sub(r"[^A-Za-z0-9]+", "-", scenario_title(scenario)).strip("-")[:40]
    per_node = int(rank_mapping.host_sizes[rank_mapping.used_hosts].max())
    options = [
        f"--job-name={name}",
        f"--nodes={nodes}",
        f"--ntasks={rank_mapping.ranks}",
        f"--ntasks-per-node={int(rank_mapping.per_host.max())}",
        f"--gpus-per-node={per_node}",
        "--exclusive",
        *wanted_nodes(scenario, rank_mapping, shapes),
    ]
    directives = "".join(f"#SBATCH {option}\n" for option in options)
    step = (
        f"srun --ntasks={rank_mapping.ranks} --distribution=arbitrary "
        "--gpu-bind=none --kill-on-bad-exit=1 \\\n"
        '  bash "$NEST_FOLDER/task.sh" "$@"\n'
    )
    return (
        "#!/usr/bin/env bash\n"
        + directives
        + header(scenario, plan, "slurm")
        + "# Submit from the folder of these files: sbatch job.sbatch PROGRAM [ARGUMENT]...\n"
        "set -euo pipefail\n"
        ': "${1:?the program that every rank runs}"\n'
        'export NEST_FOLDER="${NEST_FOLDER:-$SLURM_SUBMIT_DIR}"\n'
        + ("" if plain else 'export NEST_RANKS="$NEST_FOLDER/ranks.txt"\n')
        + 'work="$(mktemp -d "$PWD/nest.XXXXXX")"\n'
        + "trap 'rm -rf -- \"$work\"' EXIT\n"
        + HOSTS.format(form="ranks")
        + 'export MASTER_PORT="${MASTER_PORT:-29500}"\n'
        + step
    )


def wanted_nodes(
    scenario: ScenarioValues, rank_mapping: HostMapping, shapes: dict[str, Any]
) -> list[str]:
    """Return the options that ask for nodes below as few switches as the plan needs."""
    if not shapes["levels"]:
        return []
    sizes = np.unique(np.bincount(shapes["levels"][0]["groups"]))
    names, blocks = list(shapes["paths"]), "block" in scenario.fabric.tier_names
    by_name = [names[host] for host in rank_mapping.used_hosts] if names and not blocks else []
    return [
        *([f"--segment={sizes[0]}"] if len(sizes) == 1 < sizes[0] < shapes["nodes"] else []),
        *([f"--nodelist={compressed(by_name)}"] if by_name else []),
    ]


def _ranks(
    scenario: ScenarioValues, plan: Plan, rank_mapping: HostMapping, places: dict[str, list[int]]
) -> str:
    axes = ("tp", "cp", "dp", "pp")
    used = {int(host): index for index, host in enumerate(rank_mapping.used_hosts)}
    crowd = dict(zip(used, map(int, rank_mapping.per_host), strict=True))
    rows = zip(
        rank_mapping.hosts.tolist(),
        rank_mapping.slots.tolist(),
        *(places[axis] for axis in axes),
        strict=True,
    )
    head = header(scenario, plan, "slurm") + f"# rank node device on_node {' '.join(axes)}\n"
    return head + "".join(
        f"{rank} {used[host]} {slot} {crowd[host]} {' '.join(map(str, place))}\n"
        for rank, (host, slot, *place) in enumerate(rows)
    )
