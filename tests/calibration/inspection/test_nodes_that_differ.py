"""Nodes whose devices are not joined alike, boards without NVSwitch, racks that NVLink spans.

The files of `../shared/inputs` (`tests/data/inputs`), read by hand, and others of each kind.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cluster_logs import nccl

from nest_core.calibration.inspection.inspect import Inspected, inspect
from nest_core.documents import InputError
from nest_core.network import collapse
from nest_core.scenario import Scenario

TESTS = Path(__file__).parents[2]
FOLDERS = (TESTS / "data" / "inputs", TESTS.parents[1] / "shared" / "inputs")


def shared(name: str) -> tuple[str, str]:
    path = next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)
    if path is None:
        pytest.skip("the files of others are not beside the repository (../shared/inputs)")
    return name, path.read_text()


def inside(result: Inspected) -> list[tuple[int, float]]:
    """Of every level: its size and what a device reaches in it, GB/s."""
    levels = collapse(Scenario(result.scenario).values.fabric).levels
    return [(level.group_size or 0, level.bandwidth_Bps / 1e9) for level in levels]


def words(result: Inspected) -> str:
    return " ".join(result.assumed)


def matrix(codes: list[list[str]], nics: tuple[str, ...] = (), tail: str = "\t0-47\t0") -> str:
    """What `nvidia-smi topo` prints of GPUs with these codes between them."""
    names = [f"GPU{place}" for place in range(len(codes))]
    rows = [
        "\t".join([name, *(code or " X " for code in row), *("PIX" for _ in nics)]) + tail
        for name, row in zip(names, codes, strict=True)
    ]
    rows += [
        "\t".join([nic, *("PIX" for _ in names), *(" X " if nic == one else "SYS" for one in nics)])
        for nic in nics
    ]
    head = "\t" + "\t".join([*names, *nics, "CPU Affinity", "NUMA Affinity"])
    return "\n".join([head, *rows]) + "\n"


def all_to_all(gpus: int, code: str) -> list[list[str]]:
    return [["" if a == b else code for b in range(gpus)] for a in range(gpus)]


def paired(gpus: int, code: str, stride: int = 1, far: str = "SYS") -> list[list[str]]:
    """GPU k is bridged to the next of its pair, `stride` away."""
    return [
        ["" if a == b else code if {a, b} in [{k, k + stride} for k in range(0, gpus, 1)
         if (k // stride) % 2 == 0] else far for b in range(gpus)]
        for a in range(gpus)
    ]  # fmt: skip


class TestMatrices:
    """Matrices of `nvidia-smi topo` in which devices differ."""

    def test_one_gpu_off_nvlink(self):
        """GPU2 of eight has no NVLink: the node was said to show none at all."""
        result = inspect([shared("topo_gpu_off_nvlink.txt")], accelerator="h100-80gb")
        assert "shows no NVLink" not in words(result)
        assert "Not all GPUs of topo_gpu_off_nvlink.txt have 18 NVLinks: GPU2 with 0." in words(
            result
        )
        assert inside(result) == [(8, 63.0)]

    @pytest.mark.parametrize(
        ("gpus", "code", "off", "preset", "reason"),
        [
            (2, "NV4", (), "h100-80gb", ": no log names it"),
            (8, "NV12", (5,), "a100-80gb", ", as NV12 of topo.txt suggests: no log"),
            (4, "NV18", (), "h100-80gb", ", as NV18 of topo.txt suggests (H200, B200 and GB200"),
        ],
    )
    def test_what_nvlinks_suggest(self, gpus, code, off, preset, reason):
        """Two cards under a bridge of four links were an H100 "as NV4 suggests"."""
        codes = [
            ["X" if a == b else "SYS" if {a, b} & {*off} else code for b in range(gpus)]
            for a in range(gpus)
        ]
        result = inspect([("topo.txt", matrix(codes))])
        assert f"The accelerator is {preset}{reason}" in words(result)

    def test_bridged_pairs(self):
        """Four pairs of NV12, PCIe between them: eight devices had 300 GB/s each to all."""
        result = inspect([shared("topo_h100pcie_pairs.txt")], accelerator="NVIDIA H100 PCIe")
        assert inside(result) == [(2, 300.0), (8, 63.0)]
        assert "GPU0-GPU1, GPU2-GPU3, GPU4-GPU5, GPU6-GPU7" in words(result)

    def test_nvlinks_that_mp_never_shows(self):
        """`topo -mp` of eight H20 was read as a node of PCIe boards."""
        result = inspect([shared("topo_mp_h20.txt")])
        assert "as topo -mp never does" in words(result)
        assert inside(result) == [(8, 450.0)]

    def test_columns_that_are_called_as_the_adapters(self):
        """Two adapters of a DGX-1 with an old driver: none was seen, and each GPU had its own."""
        result = inspect([shared("topo_old_mlx.txt")], "srun -N 4 --ntasks-per-node 8 a.py")
        assert result.scenario["accelerator"] == "v100-32gb"
        assert "The 8 devices of a node share its 2 NICs." in words(result)
        assert inside(result) == [(8, 150.0), (32, 12.5 / 4)]

    def test_one_link_down(self):
        codes = all_to_all(8, "NV18")
        for other in range(8):
            if other != 5:
                codes[5][other] = codes[other][5] = "NV17"
        result = inspect([("topo", matrix(codes))], accelerator="h100-80gb")
        assert "Not all GPUs of topo have 18 NVLinks: GPU5 with 17." in words(result)
        assert inside(result) == [(8, 425.0)]

    def test_pairs_that_are_not_neighbours(self):
        """GPU0 is bridged to GPU4: devices are numbered pair by pair."""
        result = inspect([("topo", matrix(paired(8, "NV4", stride=4)))], accelerator="a100-40gb")
        assert "GPU0-GPU4, GPU1-GPU5" in words(result)
        assert inside(result) == [(2, 100.0), (8, 31.5)]
        assert result.scenario["fabric"]["devices_per_host"] == 8, "hosts had two devices"

    def test_four_and_four(self):
        """Two boards of four devices that their switches join, PCIe between the boards."""
        codes = [
            ["" if a == b else "NV12" if a // 4 == b // 4 else "SYS" for b in range(8)]
            for a in range(8)
        ]
        result = inspect([("topo", matrix(codes))], accelerator="a100-80gb")
        assert [size for size, _ in inside(result)] == [4, 8]

    @pytest.mark.parametrize("tail", ["\t0-19", "\t0-19\t0", "\t0-19\t0\t\tN/A"])
    def test_adapters_of_any_driver(self, tail):
        text = matrix(all_to_all(4, "NV4"), ("mlx5_0", "mlx5_bond_0", "hfi1_0"), tail)
        result = inspect([("topo", text)], "srun -N 2 --ntasks-per-node 4 a.py", "a100-40gb")
        assert "The 4 devices of a node share its 3 NICs." in words(result)


class TestBoards:
    """Boards in PCIe slots, which have no NVSwitch."""

    def test_a_log_of_boards(self):
        """Eight H100 PCIe ran at 20 GB/s, and 450 GB/s were assumed between them."""
        result = inspect([shared("nccl_h100pcie.txt")])
        assert inside(result) == [(8, 63.0)]
        assert "H100 PCIe has no NVSwitch" in words(result)
        (one,) = result.compared
        assert one.measured_busbw_Bps == pytest.approx(20e9, rel=1e-3)

    @pytest.mark.parametrize("name", ["NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe"])
    def test_other_boards(self, name):
        result = inspect([("nccl.txt", nccl(("n1", "n2"), 20.0, name=name))])
        assert inside(result)[0] == (8, 31.5)

    @pytest.mark.parametrize(
        ("name", "preset", "rate"),
        [
            ("NVIDIA H20", "h20-96gb", 450.0),
            ("NVIDIA H800", "h800-80gb", 200.0),
            ("NVIDIA A800-SXM4-80GB", "a800-80gb", 200.0),
            ("NVIDIA L40S", "l40s-48gb", 31.5),
            ("NVIDIA H100 NVL", "h100-nvl-94gb", 63.0),
            ("NVIDIA H100 PCIe", "h100-pcie-80gb", 63.0),
            ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb", 31.5),
        ],
    )
    def test_devices_of_2026_are_known_by_their_drivers_names(self, name, preset, rate):
        result = inspect([("nccl.txt", nccl(("n1", "n2"), 20.0, name=name))])
        assert result.scenario["accelerator"] == preset
        assert inside(result)[0] == (8, rate)
        assert "none of its own" not in words(result)

    def test_a_module_of_the_same_family(self):
        result = inspect([("nccl.txt", nccl(("n1", "n2"), name="NVIDIA A100-SXM4-40GB"))])
        assert inside(result)[0] == (8, 300.0)


GB200 = "NVIDIA GB200"


class TestRacks:
    """nccl-tests over trays of four devices show how far NVLink reaches."""

    def run(self, hosts: int, rate: float, name: str = GB200) -> tuple[str, str]:
        names = tuple(f"t{number:02d}" for number in range(1, hosts + 1))
        return f"nccl{hosts}.txt", nccl(names, rate, per_host=4, name=name)

    def test_a_run_over_a_rack_shows_one_domain(self):
        result = inspect([self.run(18, 830.0)], "srun -N 36 --ntasks-per-node 4 a.py")
        assert inside(result) == [(4, 900.0), (72, 900.0), (144, 50.0)]
        assert "NVLink joins the devices of 18 hosts of nccl18.txt" in words(result)

    def test_a_run_at_the_rate_of_nics_shows_none(self):
        result = inspect([self.run(18, 160.0)])
        assert inside(result) == [(4, 900.0), (72, 50.0)]
        assert "no log shows how far it reaches" in words(result)

    def test_the_largest_fast_run_counts(self):
        """Two racks: one at the speed of NVLink, both at that of their NICs."""
        result = inspect([self.run(9, 820.0), self.run(18, 180.0)])
        assert inside(result) == [(4, 900.0), (36, 900.0), (72, 50.0)]

    def test_blocks_of_slurm_are_domains(self):
        blocks = "BlockName=a Nodes=t[01-18]\nBlockName=b Nodes=t[19-36]\nBlockSizes=18\n"
        result = inspect([self.run(18, 830.0), ("topology.conf", blocks)])
        assert inside(result) == [(4, 900.0), (72, 900.0), (144, 50.0)]

    def test_eight_devices_of_a_host_are_no_rack(self):
        """NVLink SHARP makes two H100 hosts faster than their NICs alone."""
        log = nccl(("n1", "n2"), 480.0)
        assert inside(inspect([("nccl.txt", log)])) == [(8, 450.0), (16, 50.0)]


class TestOtherClusters:
    """Logs of two clusters."""

    def test_hosts_that_a_topology_lacks(self):
        slurm = ("topology.conf", "SwitchName=s Nodes=gpu[00-03]\n")
        with pytest.raises(InputError) as error:
            inspect([slurm, ("nccl.txt", nccl(("node00", "node01")))])
        assert str(error.value) == (
            "nccl.txt must run on hosts of topology.conf, such as gpu00, but is"
            " 'node00 and 1 more': give logs of one cluster."
        )

    def test_hosts_of_a_subnet_without_names(self):
        name, text = shared("ib_localhost.txt")
        result = inspect([(name, text), ("nccl.txt", nccl(("node00", "node01")))])
        assert "which does not name its hosts" in words(result)
        assert not re.search(r"All \d+ hosts .* and .*\d+ more", words(result))
