"""Host and rank files of `place`, read by Open MPI: is every rank mapped where its line says.

It maps and does not launch, so hosts are names alone.
"""

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import nest_core as nest
from benchmarks.outside.slurm_jobs import DEVICES, SEED, cut, drawn, exported
from benchmarks.outside.tool import BUILD, ROOT, Row, Tool, reasons

VERSION = "5.0.11"
TOOL = Tool("openmpi", VERSION, (f"openmpi=={VERSION}",))
DRAWS, GROUP, LEAVES = 20, 3, 2


def mapped(folder: Path, options: list[str], ranks: int) -> list[tuple[str, int]]:
    """Return host and local rank of ranks 0, 1, … as Open MPI says that it would start them."""
    program = TOOL.interpreter().parent / "mpirun"
    asked = ["--runtime-options", "donotlaunch", "--display", "map"]
    done = subprocess.run(
        [str(program), *asked, *options, "-n", str(ranks), "true"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        capture_output=True,
        text=True,
    )
    places = {}
    for node in done.stdout.split("Data for node: ")[1:]:
        processes = re.findall(r"Data for proc: \[\S+,(\d+)\]\s+Pid: \d+\s+Local rank: (\d+)", node)
        places |= {int(rank): (node.split()[0], int(local)) for rank, local in processes}
    return [places[rank] for rank in sorted(places)]


def rows() -> list[Row]:
    """Return in how many allocations ranks are where `place` says, groups as far as there is room.

    Node ranks of torchrun are those of the same order; there is nothing of it to start here.
    """
    rng = random.Random(SEED)
    exported(BUILD / "slurm-exports", LEAVES, GROUP, ROOT)
    plan = f"dp={GROUP},tp={DEVICES},pp={LEAVES},zero=1,micro_batch=1,sp=true"
    folder = BUILD / "openmpi-jobs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wrong: dict[str, list[str]] = {"ranks": [], "rankfile": []}
    for draw in range(DRAWS):
        cluster = drawn(rng, "tree", GROUP, LEAVES * GROUP)
        idle = sorted({*cluster.leaf_of} - {*cluster.busy})
        got = rng.sample(idle, LEAVES * GROUP)
        lines = [f"{host} spine.{cluster.leaf_of[host]}.{host}\n" for host in got]
        (folder / "got.txt").write_text("".join(lines))
        order = nest.place_on(str(BUILD / "slurm-exports" / "job.toml"), folder / "got.txt", plan)
        expected = order.text("ranks").split()
        (folder / "hosts.txt").write_text(order.text("ranks"))
        (folder / "ranks.txt").write_text(order.text("rankfile"))
        options = {
            "ranks": ["--hostfile", "hosts.txt", "--map-by", "seq"],
            "rankfile": ["--hostfile", "hosts.txt", "--map-by", "rankfile:file=ranks.txt"],
        }
        groups_cut = cut(expected, cluster.leaf_of, GROUP)
        for form, words in options.items():
            places = mapped(folder, words, len(expected))
            if [host for host, _ in places] != expected:
                wrong[form].append(f"draw {draw}: {json.dumps(places)}")
            elif [slot for _, slot in places] != [slot for _, slot in order.shapes["ranks"]]:
                wrong[form].append(f"draw {draw}: other devices")
            elif groups_cut != sum(order.placement.cut):
                wrong[form].append(f"draw {draw}: {groups_cut} groups cut, said otherwise")
    return [
        TOOL.row(
            f"{form} of place: every rank on the host and device of its line",
            DRAWS,
            DRAWS - len(texts),
            reasons(texts),
        )
        for form, texts in wrong.items()
    ]
