"""The job array starts, on every node, the plan that its task has: flags read back as plans."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest

from nest_core.costs import price
from nest_core.costs.parse import parse_plan, read_pasted
from nest_core.interop.exporters import ExportRefused
from nest_core.interop.exporters.job_array import FILE, STEPS, UPLINKS, export_array, export_uplinks
from nest_core.scenario import load_scenario

PLANS = (
    {"dp": 64, "zero": 1, "micro_batch": 2},
    {"dp": 8, "tp": 4, "sp": True, "pp": 2, "zero": 1, "schedule": "interleaved", "interleave": 4},
    {"dp": 4, "tp": 2, "sp": True, "cp": 2, "pp": 2, "recompute": "full"},
)
"""The last leaves half of the devices idle."""
STUBS = {
    "srun": """\
echo "srun $*" >&2
for option; do [[ $option == --distribution=* ]] && step=1; done
while [[ $1 == --* ]]; do shift; done
if [[ -n ${step:-} ]]; then
  echo "hosts $(tr '\\n' ' ' < "$SLURM_HOSTFILE")" >&2
  SLURM_PROCID=1 "$@"
else
  for place in 7 5 3 1 6 4 2 0; do
    SLURMD_NODENAME=node-$place SLURM_TOPOLOGY_ADDR=leaf$((place % 2)).node-$place "$@"
  done
fi
""",
    "torchrun": "printf '%q ' \"$@\"",
}
"""Slurm lists eight nodes, which lie below two leaves by turns."""


@pytest.fixture(scope="module")
def asked():
    return load_scenario("llama2-7b-64-h100")


@pytest.fixture(scope="module")
def reports(asked):
    problem = asked.problem(("full",))
    return [price(problem, parse_plan(fields, problem.layers)) for fields in PLANS]


@pytest.fixture
def task(asked, reports, tmp_path):
    """``task(number, *data)``: how the script ends, run with programs that print what they get."""
    script = tmp_path / FILE
    script.write_text(str(export_array(asked, reports).files[FILE]))
    for name, body in STUBS.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (tmp_path / name).chmod(0o755)

    def run(number, *data):
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "SLURM_ARRAY_TASK_ID": str(number),
            "SLURM_JOB_NUM_NODES": "8",
        }
        return subprocess.run(
            ["bash", str(script), *data],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_every_task_starts_its_plan(asked, reports, task, tmp_path, number):
    done = task(number)
    assert done.returncode == 0, done.stderr
    read = read_pasted("torchrun " + done.stdout, asked.problem().layers, 64)
    assert read.plan == reports[number].plan
    words = shlex.split(done.stdout)
    assert words[words.index("--train-iters") + 1] == str(STEPS)
    assert words[words.index("--node-rank") + 1] == "1"
    hosts = re.search(r"^hosts (.*) $", done.stderr, re.M)[1].split()
    assert words[words.index("--master-addr") + 1] == hosts[0]
    nodes = int(words[words.index("--nnodes") + 1])
    assert f"--ntasks={nodes} --distribution" in done.stderr
    assert len(set(hosts)) == len(hosts) == nodes
    assert not list(tmp_path.glob("nest.*"))


def test_nodes_of_a_leaf_follow_each_other(task):
    hosts = re.search(r"^hosts (.*) $", task(1).stderr, re.M)[1]
    leaves = [int(host[-1]) % 2 for host in hosts.split()]
    assert leaves in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)


def test_there_are_as_many_tasks_as_runs(asked, reports, task):
    text = str(export_array(asked, reports).files[FILE])
    assert re.search(r"^#SBATCH --array=0-2%1$", text, re.M)
    assert re.search(r"^#SBATCH --nodes=8$", text, re.M)
    done = task(len(reports))
    assert done.returncode == 1
    assert "no run" in done.stderr


def test_every_task_of_the_experiment_starts_its_plan(asked, reports, task, tmp_path):
    text = str(export_uplinks(asked, reports[1], 4, "Four each.", "left\n4").files[UPLINKS])
    (tmp_path / FILE).write_text(text)
    for number in (1, 4):
        done = task(number, "--data-path", "corpus")
        read = read_pasted("torchrun " + done.stdout, asked.problem().layers, 64)
        assert read.plan == reports[1].plan
        assert "--data-path corpus" in done.stdout
        assert "--ntasks=8 --distribution" in done.stderr
    assert "# Four each.\n" in text
    assert "\n# left\n# 4\n" in text


def test_data_options_reach_the_program(task):
    assert "--data-path corpus" in task(0, "--data-path", "corpus").stdout
    assert "--mock-data" not in task(0, "--data-path", "corpus").stdout


def test_without_a_plan_nothing_is_written(asked):
    with pytest.raises(ExportRefused, match="Megatron-LM can run"):
        export_array(asked, [])
