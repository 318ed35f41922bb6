"""`inspect`: what logs of a cluster say comes back, what they do not is said, clashes refused."""

from __future__ import annotations

import copy
import random
import re

import pytest
from cluster_logs import Printed, nccl, printed

from nest_core.calibration.inspection.inspect import Inspected, inspect
from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.interop.formats import read_fabric
from nest_core.network import collapse
from nest_core.network.collective import collective
from nest_core.scenario import Scenario, fabric_document, load_fabric

SRUN = "srun -N 8 --ntasks-per-node 8 python train.py"


def clos(kind: str, ratio: float) -> Fabric:
    document = copy.deepcopy(fabric_document("h100-spine-leaf-64"))
    document |= {"kind": kind}
    document["clos"] |= {"radix": 32, "oversubscription": [ratio]}
    return build_fabric(checked(FabricFile, document))


@pytest.fixture(scope="module")
def cluster() -> Printed:
    return printed(clos("leaf_spine", 1.0))


def fabric_of(found: Inspected) -> Fabric:
    return Scenario(found.scenario).values.fabric


def ports(fabric: Fabric) -> list[list[float]]:
    """Rates of every device's NICs, device by device."""
    graph = fabric.explicit()
    return [
        [
            graph.edges[one, far]["bandwidth_Bps"]
            for far in graph[one]
            if graph.nodes[far]["role"] == "nic"
        ]
        for one in range(fabric.devices)
    ]


@pytest.mark.parametrize(
    ("kind", "ratio"), [("leaf_spine", 1.0), ("leaf_spine", 3.0), ("rail_optimised", 1.0)]
)
def test_a_fabric_comes_back_from_its_logs_at_the_same_prices(kind, ratio):
    """Whatever the order of blocks, adapters and files, and with file servers on its leaves."""
    fabric = clos(kind, ratio)
    logs = printed(fabric, seed=7, others=2)
    files = logs.files
    random.Random(3).shuffle(files)
    found = inspect(files)
    again = fabric_of(found)
    assert again.devices == fabric.devices
    assert ports(again) == ports(fabric)
    before, after = collapse(fabric), collapse(again)
    for size, stride in ((64, 1), (8, 1), (8, 8), (16, 4), (2, 8)):
        for op in ("all_reduce", "all_to_all"):
            old, new = (
                collective(network, op, 1e9, size, stride=stride, concurrent="all")
                for network in (before, after)
            )
            assert new.time_s == pytest.approx(old.time_s, rel=1e-6)
    assert any("2 hosts left out, not listed as nodes" in one for one in found.assumed)


def test_meshes_and_fewer_nics_than_devices():
    """DGX-1: six NVLinks per V100 to four others, four EDR NICs for eight devices."""
    fabric = load_fabric("dgx1-v100-64")
    found = inspect(printed(fabric).files)
    again = fabric_of(found)
    assert found.scenario["accelerator"] == "v100-32gb"
    assert ports(again) == ports(fabric) == [[12.5e9]] * 64
    switch = next(link for link in found.scenario["fabric"]["link"] if link["latency_us"] == 0.25)
    assert switch["bandwidth_GBps"] == 150.0
    assert any("devices joined directly" in one for one in found.assumed)


def test_devices_share_nics_that_are_equally_near(cluster):
    """Everything is SYS in some machines: each device then has a NIC of its own, in order."""
    far = [
        (name, text.replace("PIX", "SYS").replace("NODE", "SYS")) for name, text in cluster.files
    ]
    fabric = fabric_of(inspect(far))
    graph = fabric.explicit()
    used = {far for one in range(64) for far in graph[one] if graph.nodes[far]["role"] == "nic"}
    assert len(used) == 64
    assert ports(fabric) == [[50e9]] * 64


def test_nvlinks_and_nics_are_counted_on_a_node_that_is_not_the_usual():
    """Four A100 with eight of their twelve NVLinks and two NICs."""
    found = inspect(
        [("topo", other_topo(4, 8, nics=2)), ("s", "SwitchName=s Nodes=n[1-4]")],
        accelerator="a100-80gb",
    )
    node, leaf = found.scenario["fabric"]["level"]
    assert (node["group_size"], node["bandwidth_GBps"]) == (4, 200.0)
    assert (leaf["group_size"], leaf["bandwidth_GBps"]) == (4, 12.5)
    assert any("4 devices of a node share its 2 NICs" in one for one in found.assumed)


def test_slow_nics_and_cables_are_told_as_a_conversion_tells_them(cluster):
    """`inspect` took their usual rate for one that it knows better."""
    text = cluster.ibnetdiscover
    for ends in (r'"node03 mlx5_\d+" lid 7', r'"spine\d+" lid 7'):
        row = re.search(rf'(?m)^\[(\d+)\]\t"(\S+)"\[(\d+)\].*{ends} 4xNDR$', text)
        assert row is not None
        near = re.findall(r'Switch\t\d+ "(\S+)"', text[: row.start()])[-1]
        far = re.search(
            rf'(?m)^(?:Ca|Switch)\t\d+ "{row[2]}"[^v]*?^\[{row[3]}\].*"{near}".*$', text
        )
        assert far is not None
        for lines in (row[0], far[0]):
            text = text.replace(lines, lines[: -len("4xNDR")] + "1xNDR")
    notes = read_fabric(text.encode(), "ib.txt").notes
    slow = [note for note in notes if "slower than the usual 50 GB/s" in note]
    assert [note.split()[1] for note in slow] == ["NIC", "cable"]
    for files in ([("ib.txt", text)], [("ib.txt", text), ("topo.txt", cluster.topo)]):
        assert {*slow} <= {*inspect(files).assumed}


def test_devices_keep_their_rails_where_adapters_are_not_those_of_the_matrix(cluster):
    """And where a NIC is down its device has the nearest rail's, as without the matrix."""
    text = re.sub(r"mlx5_(\d+)", r"HCA-\1", cluster.ibnetdiscover)
    block = re.search(r'(?m)^vendid.*\n(?:.+\n){3}Ca\t.*"node03 HCA-\d+"\n(?:.+\n)+', text)
    assert block is not None
    guid = re.search(r'Ca\t1 "(\S+)"', block[0])
    assert guid is not None
    text = re.sub(rf'(?m)^.*"{guid[1]}".*\n', "", text.replace(block[0], ""))
    found = [inspect([("ib.txt", text), *topo]) for topo in ([], [("topo.txt", cluster.topo)])]
    links = [
        {(link["a"], link["b"]) for link in one.scenario["fabric"]["link"] if "node03" in link["a"]}
        for one in found
    ]
    assert links[0] == links[1]
    assert any("8 nodes use" in one and "is down" in one for one in found[1].assumed)


def test_all_logs_together_leave_little_to_assume(cluster):
    found = inspect([*cluster.files, ("nccl.txt", nccl(cluster.hosts))], SRUN)
    assert found.kinds == {
        "ib.txt": "ibnetdiscover",
        "topo.txt": "nvidia-smi topo -m",
        "topology.conf": "Slurm tree",
        "nccl.txt": "nccl-tests",
    }
    assert found.scenario["accelerator"] == "h100-80gb"
    starts = [" ".join(sentence.split()[:2]) for sentence in found.assumed]
    assert starts == ["Latencies are", "Every node", "The software", "The workload"]


def test_a_job_on_some_of_the_nodes_is_no_contradiction(cluster):
    found = inspect(cluster.files, "srun -N 4 --ntasks-per-node 8 a.py")
    assert fabric_of(found).devices == 64
    assert any("starts a job on 4 of them" in one for one in found.assumed)


@pytest.mark.parametrize(
    ("taken", "devices", "told"),
    [
        (
            (0,),
            64,
            [
                "h100-80gb",
                "A node has 8",
                "450 GB/s",
                "8 hosts of ib.txt with devices are",
                "in order",
            ],
        ),
        ((1,), 8, ["as NV18 of topo.txt suggests", "one node"]),
        ((2,), 64, ["h100-80gb", "A node has 8", "450 GB/s", "NICs' rate is 50 GB/s", "no rates"]),
        ((0, 1), 64, ["as NV18", "Every node is like"]),
        ((1, 2), 64, ["as NV18", "NICs' rate is 50 GB/s"]),
        ((3,), 64, ["as many as nccl-tests ran on", "450 GB/s", "blocks nowhere"]),
        ((1, 3), 64, ["NICs' rate is 50 GB/s", "blocks nowhere"]),
    ],
)
def test_any_combination_is_a_scenario_that_says_what_was_missing(cluster, taken, devices, told):
    files = [*cluster.files, ("nccl.txt", nccl(cluster.hosts))]
    found = inspect([files[place] for place in taken])
    scenario = Scenario(found.scenario).values
    assert scenario.fabric.devices == devices
    for words in (*told, "Latencies are", "placeholder"):
        assert sum(words in one for one in found.assumed) == 1
    assert all(one.endswith(".") for one in found.assumed)
    assert len(set(found.assumed)) == len(found.assumed)


def test_topology_yaml_and_a_launch_command_alone():
    yaml = (
        "- topology: racks\n  block: {block_sizes: [2], blocks: [{block: r1, nodes: 'n[1-2]'},"
        " {block: r2, nodes: 'n[3-4]'}]}\n"
    )
    found = inspect([("t.yaml", yaml)], "torchrun --nnodes 4 --nproc-per-node 4", "a100-40gb")
    assert fabric_of(found).devices == 16
    assert found.scenario["accelerator"] == "a100-40gb"
    assert any("rate is 25 GB/s" in one for one in found.assumed)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA H200", "h200-141gb"),
        ("Tesla V100-SXM2-16GB", "v100-16gb"),
        ("NVIDIA B200", "b200-180gb"),
    ],
)
def test_accelerators_are_known_by_the_names_that_drivers_print(name, preset):
    found = inspect([("nccl.txt", nccl(("n1", "n2"), name=name))])
    assert found.scenario["accelerator"] == preset
    assert not any(preset in one for one in found.assumed)


@pytest.mark.parametrize("program", ["all_reduce_perf", ""])
def test_measured_bus_bandwidth_is_told_beside_the_predicted(cluster, program):
    """Also of older versions, which do not say which collective they ran."""
    log = nccl(cluster.hosts, busbw_GBps=163.0, program=program)
    found = inspect([*cluster.files, ("nccl.txt", log)])
    (one,) = found.compared
    assert one.measured_busbw_Bps == pytest.approx(163e9, rel=1e-3)
    assert one.predicted_busbw_Bps is not None
    off = one.predicted_busbw_Bps / 163e9 - 1
    assert 0.8 < off < 1.2
    assert f"({100 * off:+.0f} %)".replace("-", "−") in one.sentence
    assert "8.00 GiB over 64 devices of 8 nodes" in one.sentence


def other_log(log: str, old: str, new: str) -> str:
    assert old in log
    return log.replace(old, new)


GOOD = nccl(("node00", "node01"))


@pytest.mark.parametrize(
    ("log", "launch", "sentence"),
    [
        ("", "srun -N 16 --ntasks-per-node 8", "--launch must fit on the 8 nodes of 8 that ib.txt"),
        ("", "srun -n 128", "must fit on the 8 nodes of 8 that ib.txt shows, but is '128 ranks'"),
        ("", "torchrun --nnodes 8 --nproc-per-node 4 a.py", "on each of the 8 GPUs that topo.txt"),
        ("", "srun -N 4 torchrun --nnodes 8 a.py", "must state one number of nodes"),
        ("", "srun -N 4 --ntasks-per-node 8 -n 16 a.py", "its nodes times those of a node"),
        ("", "torchrun --nnodes 1:4 --nproc-per-node 8", "--launch --nnodes must be one number"),
        ("", "python a.py -N 8", "--launch must state nodes or processes"),
        ("", "srun '-N 8", "--launch must close its quotes"),
        (nccl(tuple(f"node{n:02d}" for n in range(9))), "", "at most the 64 devices that ib.txt"),
        (nccl(("node00", "node44")), "", "hosts of ib.txt, such as node00, but is 'node44'"),
        (nccl(("node00",), per_host=16), "", "at most the 8 devices of a node of topo.txt"),
        (nccl(("node00",), name="NVIDIA A100-SXM4-80GB"), "", "at most the 12 NVLinks that A100"),
        (nccl(("node00",), name="NVIDIA RTX A6000"), "", "accelerator must have a preset"),
        (other_log(GOOD, "300.00      0 ", "300.00      7 "), "", "must have no wrong results"),
        (other_log(GOOD, "values : 0 OK", "values : 9 FAILED"), "", "a run that ended well"),
        (
            GOOD.replace("# Out", "node01: Test NCCL failure common.cu:958 'unhandled'\n# Out"),
            "",
            "must be of a run that ended well",
        ),
        (GOOD[: GOOD.index("# Avg")], "", "nccl.txt must end with the average bus bandwidth"),
        (other_log(GOOD, "#  Rank  3 ", "#  ..."), "", "must list every rank in its header"),
        (other_log(GOOD, "[0000:03:00] NVIDIA H100", "[0000:03:00] NVIDIA H200"), "", "one kind"),
    ],
)  # fmt: skip
def test_contradictions_are_one_sentence(cluster, log, launch, sentence):
    files = [*cluster.files, *([("nccl.txt", log)] if log else [])]
    with pytest.raises(InputError) as error:
        inspect(files, launch)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_contradict_one_another(cluster):
    ib, topo, slurm = (text for _, text in cluster.files)
    cut = topo.replace("\nGPU7", "\nGPX7")
    for files, sentence in [
        ([("ib", ib), ("s", slurm.replace("node07", "n70"))], "s must list nodes that are hosts"),
        ([("ib", ib), ("ib2", ib)], "LOG must be one output of ibnetdiscover, but is 'ib and ib2'"),
        ([("s", slurm), ("s2", slurm)], "LOG must be one Slurm topology"),
        ([("topo", topo), ("b", other_topo(4, 18))], "b must show a node like that of topo"),
        ([("ib", ib), ("topo", other_topo(4, 18))], "topo must show a host of ib, which have"),
        ([("topo", cut)], "topo must have a row for every GPU"),
        ([("topo", topo.replace("NV18", "NV17", 1))], "must say the same of GPU0 and GPU1"),
        ([("empty", " \n")], "empty must hold the output of ibnetdiscover"),
        ([("binary", "\x7fELF\0\0")], "binary must be the output of ibnetdiscover"),
        ([("fabric", "schema = 1\nkind = 'torus'\n")], "fabric must be the output of"),
    ]:  # fmt: skip
        with pytest.raises(InputError) as error:
            inspect(files)
        assert sentence in str(error.value)


def other_topo(gpus: int, links: int, nics: int = 0) -> str:
    names = [f"GPU{place}" for place in range(gpus)] + [f"NIC{place}" for place in range(nics)]

    def code(one: str, other: str) -> str:
        return "X" if one == other else f"NV{links}" if one[0] == other[0] == "G" else "NODE"

    rows = ["\t".join([one, *(code(one, other) for other in names), "0-47\t0"]) for one in names]
    return "\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\n" + "\n".join(rows) + "\n"


def test_whatever_is_cut_or_garbled_is_a_sentence_or_a_scenario(cluster):
    """No traceback, wherever a log ends and whatever stands in a byte of it."""
    files = [*printed(clos("leaf_spine", 1.0), seed=1).files, ("nccl.txt", GOOD)]
    chance = random.Random(0)
    refused = []
    for _ in range(60):
        name, text = chance.choice(files)
        if chance.random() < 0.5:
            text = text[: chance.randrange(len(text))]
        else:
            at = chance.randrange(len(text))
            text = (
                text[:at] + chr(chance.choice((0, 9, 10, 32, 0x37, 0x5B, 0x2028))) + text[at + 1 :]
            )
        try:
            found = inspect([(name, text)])
        except InputError as error:
            refused.append(str(error))
        else:
            assert fabric_of(found).devices >= 1
    assert len(refused) > 20
    assert "\n" not in "".join(refused)
