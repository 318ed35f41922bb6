"""Jobs that we export, started by real Slurm daemons: do ranks come to lie as they were planned.

Controller, node daemons and tasks of two releases run on this machine, eight to 24 nodes with names
that are shuffled over uneven leaves or blocks, some of them busy. Every task says its rank and its
host; which leaf a host is on the cluster's own file says. The job of an earlier commit runs on the
same allocation for comparison.
"""

import itertools
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nest_core as nest
from benchmarks.outside.slurm import BASE, SERVICES, TOOL, programs
from benchmarks.outside.tool import BUILD, ROOT, Debian, Missing, Row, reasons
from nest_core.interop.exporters.job_array import FILE, export_array

OLDER = Debian(
    "slurmctld",
    (
        *SERVICES, "libacl1", "libapparmor1", "libattr1", "libaudit1", "libb64-0d", "libblkid1",
        "libbz2-1.0", "libc6", "libcap-ng0", "libcap2", "libcrypt1", "libdbus-1-3", "libgcc-s1",
        "libgcrypt20", "libgpg-error0", "libhwloc15", "libjansson4", "libjson-c5", "libjwt2",
        "liblua5.1-0", "liblz4-1", "liblzma5", "libmunge2", "libncursesw6", "libnuma1",
        "libpam0g", "libpciaccess0", "libpcre2-8-0", "libproc2-0", "libreadline8t64",
        "libseccomp2", "libselinux1", "libssl3t64", "libstdc++6", "libsystemd0", "libtinfo6",
        "libudev1", "libxml2", "libxxhash0", "libyaml-0-2", "libzstd1", "zlib1g",
    ),
    suite="trixie",
)  # fmt: skip
BEFORE = "14c5d0e"
"""The commit whose jobs are compared."""
DRAWS, ARRAYS, SEED, WAIT_S, PENDING_S = 60, 8, 41, 40, 8
DEVICES = 2
"""Of a node; ranks are as many."""
TORCHRUN = """#!/bin/bash
while [[ $1 != --node-rank ]]; do shift; done
echo "RANK $2 $SLURMD_NODENAME"
"""
"""Stands where a node would start its processes."""
CONF = (
    BASE
    + """SlurmdUser=root
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmdParameters=config_overrides
MpiDefault=none
GresTypes=gpu
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=60
"""
)
FABRIC = """schema = 1
name = "{leaves} leaves of {nodes} nodes"
kind = "hierarchical"
[[level]]
name = "node"
group_size = {devices}
uplink_per = "device"
bandwidth_GBps = 450.0
latency_us = 0.5
[[level]]
name = "leaf"
group_size = {nodes}
uplink_per = "device"
bandwidth_GBps = 50.0
latency_us = 1.5
[[level]]
name = "spine"
group_size = {leaves}
uplink_per = "device"
bandwidth_GBps = 50.0
oversubscription = 8.0
latency_us = 3.0
"""
SCENARIO = """schema = 1
name = "a small job"
fabric = "fabric.toml"
accelerator = "h100-80gb"
costs = "own"
[workload]
model = "llama2-7b"
sequence_length_tokens = 4096
global_batch_sequences = 48
precision = "bf16"
"""
SAYS = 'echo "RANK $RANK $SLURMD_NODENAME"'


@dataclass(frozen=True, slots=True)
class Cluster:
    """Leaves or blocks of a cluster by name, and nodes that others hold."""

    kind: str
    leaves: dict[str, list[str]]
    busy: list[str]

    @property
    def leaf_of(self) -> dict[str, str]:
        """Return the leaf of every node."""
        return {node: leaf for leaf, nodes in self.leaves.items() for node in nodes}

    @property
    def topology(self) -> str:
        """Return its topology.conf."""
        key = "Switch" if self.kind == "tree" else "Block"
        lines = [f"{key}Name={leaf} Nodes={','.join(n)}" for leaf, n in self.leaves.items()]
        size = min(map(len, self.leaves.values()))
        last = f"SwitchName=s Switches={','.join(self.leaves)}"
        return "\n".join([*lines, last if self.kind == "tree" else f"BlockSizes={size}"]) + "\n"


def drawn(rng: random.Random, kind: str, group: int, needed: int) -> Cluster:
    """Return a cluster with some busy nodes that has as many idle ones as are needed."""
    while True:
        least = group if kind == "block" else 2
        sizes = [rng.randint(least, least + 4) for _ in range(rng.randint(2, 5))]
        names = [f"n{number}" for number in range(1, sum(sizes) + 1)]
        rng.shuffle(names)
        each = iter(names)
        leaves = {f"l{k}": list(itertools.islice(each, size)) for k, size in enumerate(sizes)}
        busy = rng.sample(names, rng.randint(0, len(names) // 3))
        idle = [len({*nodes} - {*busy}) for nodes in leaves.values()]
        # Under blocks a job waits until its segments fit.
        room = sum(n // group * group for n in idle) if kind == "block" else sum(idle)
        if 8 <= len(names) <= 24 and room >= needed:
            return Cluster(kind, leaves, busy)


@contextmanager
def running(tool: Debian, cluster: Cluster) -> Iterator[dict[str, str]]:
    """Run the daemons of a cluster; gives the environment for its commands."""
    found = programs(tool)
    folder = BUILD / "slurm-jobs"
    shutil.rmtree(folder, ignore_errors=True)
    names = sorted(cluster.leaf_of)
    for name in ("state", "run", *(f"spool-{node}" for node in names)):
        (folder / name).mkdir(parents=True)
    nodes = "\n".join(
        f"NodeName={node} NodeAddr=127.0.0.1 Port={17900 + place} CPUs={DEVICES} Gres=gpu:{DEVICES}"
        for place, node in enumerate(names)
    )
    plugins = tool.root() / "usr/lib/x86_64-linux-gnu/slurm-wlm"
    text = CONF.format(
        host=socket.gethostname(), plugins=plugins, folder=folder, kind=cluster.kind, nodes=nodes
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "topology.conf").write_text(cluster.topology)
    (folder / "gres.conf").write_text(f"Name=gpu File=/dev/tty[0-{DEVICES - 1}]\n")
    # They know what they are by their own names.
    (folder / "slurmstepd").symlink_to(found["slurmstepd"])
    path = f"{tool.root()}/usr/bin:{os.environ['PATH']}"
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}
    services = [["slurmctld", "-D", "-c"]]
    services += [["slurmd", "-D", "-N", n, "-d", f"{folder}/slurmstepd"] for n in names]

    def are_idle(text: str) -> bool:
        return text.count("State=IDLE") == len(names)

    with (folder / "log").open("w") as log:
        processes = [
            subprocess.Popen(
                words, executable=found[words[0]], env=environment, stdout=log, stderr=log
            )
            for words in services
        ]
        try:
            if not until(environment, ["nodes"], are_idle, WAIT_S):
                raise Missing("Slurm's daemons do not come up")
            if cluster.busy:
                words = ["update", f"NodeName={','.join(cluster.busy)}", "State=DRAIN", "Reason=b"]
                asked(environment, "scontrol", *words)
            yield environment
        finally:
            for process in processes[::-1]:
                process.terminate()
            for process in processes:
                process.wait()


def asked(environment: dict[str, str], *words: str, folder: Path = BUILD) -> str:
    """Return what a command prints."""
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def until(
    environment: dict[str, str], words: list[str], holds: Callable[[str], bool], limit_s: float
) -> str:
    """Ask until the answer is so, and return it; empty where it does not become so."""
    end = time.monotonic() + limit_s
    while not holds(text := asked(environment, "scontrol", "show", *words)):
        if time.monotonic() > end:
            return ""
        time.sleep(0.1)
    return text


def ran(environment: dict[str, str], files: Path) -> tuple[list[str], str]:
    """Return the hosts of ranks 0, 1, …, and what else the job printed."""
    folder = BUILD / "slurm-jobs" / "run"
    shutil.rmtree(folder)
    shutil.copytree(files, folder)
    printed = asked(environment, "sbatch", "job.sbatch", "bash", "-c", SAYS, folder=folder)
    if not (job := re.search(r"Submitted batch job (\d+)", printed)):
        return [], printed
    words = ["job", job[1]]
    if not until(environment, words, lambda text: "JobState=PENDING" not in text, PENDING_S):
        asked(environment, "scontrol", "update", f"JobId={job[1]}", "Priority=0")
        return [], "pending"
    until(
        environment,
        words,
        lambda text: bool(re.search("JobState=(COMPLETED|FAILED)", text)),
        WAIT_S,
    )
    lines = (folder / f"slurm-{job[1]}.out").read_text().splitlines()
    ranks = {int(word[1]): word[2] for line in lines if (word := line.split())[:1] == ["RANK"]}
    rest = [line for line in lines if not line.startswith(("RANK", "srun: error: plugin"))]
    return [ranks[rank] for rank in sorted(ranks)], "\n".join(rest)


def exported(folder: Path, leaves: int, group: int, root: Path) -> Path:
    """Return the folder with the job of a plan whose stages fill leaves, written by a checkout."""
    files = folder / f"{root.name}-{leaves}-{group}"
    shutil.rmtree(files, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fabric.toml").write_text(FABRIC.format(leaves=leaves, nodes=group, devices=DEVICES))
    (folder / "job.toml").write_text(SCENARIO)
    plan = f"dp={group},tp={DEVICES},pp={leaves},zero=1,micro_batch=1,sp=true"
    words = ["export", "job.toml", "--to", "slurm", "--plan", plan, "--output", str(files)]
    command = [sys.executable, "-m", "nest_studio", *words]
    environment = os.environ | {"PYTHONPATH": str(root)}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return files


def before() -> Path:
    """Return the files of the earlier commit."""
    folder = BUILD / BEFORE
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "archive", BEFORE], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def cut(hosts: list[str], leaf_of: dict[str, str], group: int) -> int:
    """Return how many groups of a plan lie below several leaves."""
    nodes = hosts[::DEVICES]
    return sum(
        len({leaf_of[host] for host in nodes[start : start + group]}) > 1
        for start in range(0, len(nodes), group)
    )


def array_hosts(environment: dict[str, str], script: str) -> list[str]:
    """Return the hosts of node ranks 0, 1, … of the first run of a job array."""
    folder = BUILD / "slurm-jobs" / "array"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / FILE).write_text(script)
    (folder / "torchrun").write_text(TORCHRUN)
    (folder / "torchrun").chmod(0o755)
    environment = environment | {"PATH": f"{folder}:{environment['PATH']}"}
    printed = asked(environment, "sbatch", FILE, folder=folder)
    job = re.findall(r"Submitted batch job (\d+)", printed)[0]
    until(environment, ["job", job], lambda text: "JobState=COMPLETED" in text, WAIT_S)
    lines = [line.split() for line in (folder / "next-0.log").read_text().splitlines()]
    ranks = {int(words[1]): words[2] for words in lines if words[:1] == ["RANK"]}
    return [ranks[rank] for rank in sorted(ranks)]


def arrays() -> Row:
    """Return how many job arrays of `next` number nodes so that stages lie below one leaf."""
    rng, group, good = random.Random(SEED), 3, 0
    exported(BUILD / "slurm-exports", 2, group, ROOT)
    scenario = nest.load(str(BUILD / "slurm-exports" / "job.toml"))
    plan = f"dp={group},tp={DEVICES},pp=2,zero=1,micro_batch=1,sp=true"
    files = export_array(scenario.values, [nest.price(scenario, plan).report]).files
    for draw in range(ARRAYS):
        tool, kind = (TOOL, OLDER)[draw % 2], ("tree", "block")[draw // 2 % 2]
        cluster = drawn(rng, kind, group, 2 * group)
        with running(tool, cluster) as environment:
            hosts = array_hosts(environment, str(files[FILE]))
        room = sum(n // group for n in Counter(cluster.leaf_of[host] for host in hosts).values())
        count = cut([host for host in hosts for _ in range(DEVICES)], cluster.leaf_of, group)
        good += len(hosts) == 2 * group and count <= 2 - room
    what = "job arrays whose nodes are numbered as the allocation allows"
    return Row("Slurm", f"{OLDER.version()} and {TOOL.version()}", what, ARRAYS, good, "")


def rows() -> list[Row]:
    """Return how many allocations had all groups as planned, or said what they cost."""
    if os.geteuid():
        raise Missing("its daemons without a key want root")
    rng = random.Random(SEED)
    folder = BUILD / "slurm-exports"
    jobs = [(leaves, group) for leaves in (2, 3) for group in (2, 3, 4)]
    now = {job: exported(folder, *job, ROOT) for job in jobs}
    earlier = {job: exported(folder, *job, before()) for job in jobs}
    tally: Counter[tuple[str, str]] = Counter()
    wrong = []
    for draw in range(DRAWS):
        tool, kind = (TOOL, OLDER)[draw % 2], ("tree", "block")[draw // 2 % 2]
        leaves, group = rng.choice(jobs)
        cluster = drawn(rng, kind, group, leaves * group)
        with running(tool, cluster) as environment:
            hosts, printed = ran(environment, now[leaves, group])
            old_hosts, old_printed = ran(environment, earlier[leaves, group])
        name = f"{tool.version()}, {kind}, {leaves} groups of {group}"
        count = cut(hosts, cluster.leaf_of, group)
        room = sum(
            number // group for number in Counter(cluster.leaf_of[h] for h in {*hosts}).values()
        )
        told = re.search(r"slower here than planned; (\d+) of", printed)
        if len(hosts) != leaves * group * DEVICES:
            wrong.append(f"{name}: {printed.splitlines()[-1]}")
        elif count > max(leaves - room, 0):
            wrong.append(f"{name}: {count} groups cut where there was room")
        elif count != (int(told[1]) if told else 0):
            wrong.append(f"{name}: {count} groups cut, said {told and told[1]}")
        else:
            tally["now", "announced" if count else "as planned"] += 1
        if not old_hosts:
            tally["before", f"not started ({old_printed.splitlines()[-1]})"] += 1
        else:
            is_whole = not cut(old_hosts, cluster.leaf_of, group)
            tally["before", "as planned" if is_whole else "cut in silence"] += 1
    version = f"{OLDER.version()} and {TOOL.version()}"
    remarks = {
        when: ", ".join(f"{n} {what}" for (at, what), n in sorted(tally.items()) if at == when)
        for when in ("now", "before")
    }
    what = "ranks of exported jobs lie as planned, or the job says what it costs"
    good = sum(n for (when, _), n in tally.items() if when == "now")
    return [
        Row(
            "Slurm",
            version,
            what,
            DRAWS,
            good,
            "; ".join(filter(None, [remarks["now"], reasons(wrong)])),
        ),
        Row(
            "Slurm",
            version,
            f"the same of jobs that {BEFORE} exports",
            DRAWS,
            tally["before", "as planned"],
            remarks["before"],
        ),
        arrays(),
    ]
