"""Shipped accelerators: figures as tabled, consistent among themselves, usable in a scenario."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from nest_core.bill.ownership import server_of
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names, preset_path
from nest_core.hardware import Accelerator, load_accelerator, load_family
from nest_core.hardware.stacks import under
from nest_core.scenario import load_scenario

NAMES = preset_names("accelerators")
# More than the vendor states, as libtpu 0.0.42.1 hands it out.
GRANTED_GIB = {"TPU v5p": 95.74}
# Presets by the name of their row in ../shared/reference/accelerators.csv.
TABLED = {
    "V100-SXM2-32G": "v100-32gb",
    "A100-SXM-40G": "a100-40gb",
    "A100-SXM-80G": "a100-80gb",
    "H100-SXM": "h100-80gb",
    "H200-SXM": "h200-141gb",
    "B200-SXM": "b200-180gb",
    "GB200 (per GPU)": "gb200-186gb",
    "B300-SXM": "b300-288gb",
    "GB300 (per GPU)": "gb300-288gb",
    "MI300X": "mi300x-192gb",
    "MI355X": "mi355x-288gb",
    "TPU v4": "tpu-v4",
    "TPU v5e": "tpu-v5e",
    "TPU v5p": "tpu-v5p",
    "TPU v6e (Trillium)": "tpu-v6e",
    "Gaudi2": "gaudi2-96gb",
    "Gaudi3": "gaudi3-128gb",
    "Trainium2": "trainium2-96gb",
    "GH200-96G": "gh200-96gb",
    "MI325X": "mi325x-256gb",
    "TPU v7x (Ironwood)": "tpu-v7x",
}
# Presets by the name of their row in tests/data/accelerators.csv.
OWN = {
    "H100-PCIe": "h100-pcie-80gb",
    "H100-NVL": "h100-nvl-94gb",
    "H200-NVL": "h200-nvl-141gb",
    "A100-PCIe-80G": "a100-pcie-80gb",
    "H20": "h20-96gb",
    "L40S": "l40s-48gb",
}
UNTABLED = {
    "v100-16gb": "v100-32gb",
    "a100-pcie-40gb": "a100-40gb",
    "h100-96gb-hbm2e": "h100-80gb",
    "h800-80gb": "h100-80gb",
    "a800-80gb": "a100-80gb",
    "tpuv4-like": "tpu-v4",
}

# FLOP of one unit and clock in the precision named, and the clock in GHz that follows from the
# published peak. Tensor cores: vendors' architecture papers; arrays: two FLOP for each cell.
# v6e publishes a peak that its two arrays reach with two multiply-adds for each cell and clock.
CLOCKS = {
    "v100-32gb": ("fp16", 8 * 4**3 * 2, 1.53),
    "a100-80gb": ("bf16", 4 * 256 * 2, 1.41),
    "h100-80gb": ("bf16", 4 * 512 * 2, 1.83),
    "b200-180gb": ("bf16", 4 * 1024 * 2, 1.85),
    "gb200-186gb": ("bf16", 4 * 1024 * 2, 2.0),
    "mi300x-192gb": ("bf16", 4 * 256 * 2, 2.1),
    "mi355x-288gb": ("bf16", 4 * 512 * 2, 2.4),
    "tpu-v4": ("bf16", 2 * 128**2, 1.05),
    "tpu-v5e": ("bf16", 2 * 128**2, 1.5),
    "tpu-v5p": ("bf16", 2 * 128**2, 1.75),
    "tpu-v6e": ("bf16", 4 * 256**2, 1.75),
    "tpu-v7x": ("bf16", 4 * 256**2, 2.2),
    "h100-pcie-80gb": ("bf16", 4 * 512 * 2, 1.62),
    "h100-nvl-94gb": ("bf16", 4 * 512 * 2, 1.545),
    "h200-nvl-141gb": ("bf16", 4 * 512 * 2, 1.545),
    "l40s-48gb": ("bf16", 4 * 128 * 2, 2.49),
    "mi325x-256gb": ("bf16", 4 * 256 * 2, 2.1),
    "gaudi2-96gb": ("bf16", 2 * 256**2, 1.65),
    "gaudi3-128gb": ("bf16", 2 * 256**2, 1.6),
    "trainium2-96gb": ("bf16", 2 * 128**2, 2.54),
}


@pytest.fixture(scope="session")
def tabled(shared_data: Path, require: Any) -> dict[str, dict[str, str]]:
    """Rows of the reference table by name."""
    path = shared_data.parent / "reference" / "accelerators.csv"
    require(path.is_file(), f"the reference table is not beside the repository ({path.name})")
    return rows_of(path)


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def written(name: str) -> dict[str, Any]:
    """The file itself, without the schema between."""
    return tomllib.loads(preset_path("accelerators", f"{name}.toml").read_text(encoding="utf-8"))


def test_every_preset_is_compared_with_the_table_or_with_its_sibling():
    """A preset added without either would be a figure that nothing checks."""
    assert sorted(NAMES) == sorted({*TABLED.values(), *OWN.values(), *UNTABLED})


@pytest.mark.parametrize(("row", "name"), TABLED.items())
def test_figures_are_those_of_the_reference_table(row, name, tabled):
    """Every field that the table has; a memory in GB may mean 1e9 bytes or a GiB."""
    # The table rounds AMD's 1,307.4 to 1,300.
    check_figures(tabled[row], written(name), rel=6e-3 if row == "MI325X" else 1e-3)


@pytest.mark.parametrize(("row", "name"), OWN.items())
def test_figures_are_those_of_the_vendors_sheets(row, name, root):
    """Parts that the reference table lacks, as copied from the sheets that the rows name."""
    reference = rows_of(root / "tests" / "data" / "accelerators.csv")[row]
    check_figures(reference, written(name), rel=1e-3)
    assert written(name)["scale_up_GBps"] == float(reference["scaleup_GBps_per_dir_per_device"])


def test_cards_have_no_nvswitch():
    """A failure: a node of PCIe cards is planned at the rate of an SXM board."""
    for name in NAMES:
        device = load_accelerator(name)
        if "PCIe" in device.name or "NVL" in device.name:
            assert device.scale_up_Bps == device.host_Bps
            assert not device.links
            assert server_of(device.name, 8, load_prices()) is None, "no DGX holds cards"


def check_figures(reference: dict[str, str], file: dict[str, Any], *, rel: float) -> None:
    peaks = file["peak_TFLOPs"]
    for precision in ("bf16", "fp16", "fp8"):
        if text := reference[f"{precision}_dense_TFLOPs"]:
            assert peaks[precision] == pytest.approx(float(text), rel=rel)
        else:
            assert precision not in peaks
    for precision, told in (("nvfp4", r"FP4 (\d+) dense"), ("int8", r"int8 (\d+)")):
        if found := re.search(told, reference["notes"]):
            assert peaks[precision] == float(found[1])
    if text := reference["fp32_TFLOPs"]:
        assert peaks["fp32"] == pytest.approx(float(text), rel=1e-3)
    assert file["memory_bandwidth_GBps"] == pytest.approx(float(reference["hbm_GBps"]), rel=1e-3)
    stated = float(reference["hbm_GB"])
    most = max(stated, GRANTED_GIB.get(file["name"], 0.0))
    assert stated / 1.0742 <= file["memory_GiB"] <= most
    if text := reference["tdp_W"]:
        assert file["power_W"] == float(text)
    else:
        assert "power_W" not in file


@pytest.mark.parametrize(("name", "sibling"), UNTABLED.items())
def test_what_the_table_lacks_has_its_siblings_silicon(name, sibling):
    assert sibling in TABLED.values(), "a sibling is compared with the table itself"
    one, other = written(name), written(sibling)
    for key in ("units", "tile"):
        assert one[key] == other[key]
    shared = one["peak_TFLOPs"].keys() & other["peak_TFLOPs"].keys()
    assert shared
    assert all(one["peak_TFLOPs"][key] == other["peak_TFLOPs"][key] for key in shared)


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_in_order(name):
    """Wider numbers are slower; buffers fit; the source and the units are there."""
    accelerator = load_accelerator(name)
    assert isinstance(accelerator, Accelerator)
    peaks = dict(accelerator.peak_flops)
    speeds = [peaks[p] for p in ("fp8", "bf16", "tf32", "fp32") if p in peaks]
    assert speeds == sorted(speeds, reverse=True)
    assert max(peaks.get("bf16", 0.0), peaks.get("fp16", 0.0)) >= peaks.get("tf32", 0.0)
    assert 0 <= accelerator.reserved_bytes < 0.1 * accelerator.memory_bytes
    assert accelerator.source.strip()
    assert load_family(accelerator.family.name) == accelerator.family
    assert accelerator.units >= 1
    assert all(side % 16 == 0 for side in accelerator.tile)
    if accelerator.power_w is not None:
        assert 100 <= accelerator.power_w <= 2000


@pytest.mark.parametrize("name", CLOCKS)
def test_units_times_their_width_times_a_clock_make_the_peak(name):
    """A wrong number of units is a clock that no such device has."""
    precision, per_clock, gigahertz = CLOCKS[name]
    accelerator = load_accelerator(name)
    clock = accelerator.peak(precision) / accelerator.units / per_clock
    assert clock / 1e9 == pytest.approx(gigahertz, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_serves_a_scenario(name):
    """Its curves exist and are of the right kind: a wrong one is refused here."""
    accelerator = load_accelerator(name)
    precision = "bf16" if "bf16" in accelerator.precisions else "fp16"
    scenario = load_scenario(
        "llama2-7b-64-h100", [f'accelerator="{name}"', f'workload.precision="{precision}"']
    )
    assert scenario.accelerator == under(accelerator, scenario.stack, precision)
    assert scenario.problem().peak_flops == accelerator.peak(precision)
    for link, kind in ((accelerator.links, "links"), (accelerator.network, "network")):
        assert not link or link in preset_names("collectives"), kind


def test_curves_are_only_those_of_the_same_link():
    """NVLink by generation; nothing borrows a curve of another vendor's links."""
    links = {name: load_accelerator(name).links for name in NAMES}
    generations = {"v100": "v100-nvlink2", "a100": "a100-nvlink3", "h": "h100-nvlink4"}
    generations |= {"a800": "a100-nvlink3", "gh": "h100-nvlink4"}
    generations |= {"b": "b200-nvlink5", "gb": "b200-nvlink5"}
    for name, link in links.items():
        expected = next((c for start, c in generations.items() if name.startswith(start)), "")
        if {"pcie", "nvl"} & set(name.split("-")):
            expected = ""
        assert link == expected, name


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("accelerator.tile=[128]", "accelerator.tile must be a list of at least 2 entries"),
        ("accelerator.tile=[128,0]", "accelerator.tile[1] must be at least 1, but is 0"),
        ("accelerator.units=0", "accelerator.units must be at least 1, but is 0"),
        ("accelerator.power_W=-1.0", "accelerator.power_W must be at least 1e-09, but is -1.0"),
        ("accelerator.matmul_efficiency=0.8", "accelerator.matmul_efficiency is not a known key"),
    ],
)
def test_a_wrong_fact_is_refused_in_one_sentence(setting, sentence):
    with pytest.raises(InputError) as caught:
        load_scenario("llama2-7b-64-h100", [setting])
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_the_peak_bounds_what_was_measured():
    """A lowered peak holds for products too, and a precision that the device lacks is ignored."""

    def best(*sets):
        return load_scenario("gpt3-175b-512-a100", sets).accelerator.matmul_peak("bf16")

    assert best() == 271.2e12
    assert best("accelerator.peak_TFLOPs.bf16=100.0") == 100e12
    assert best("accelerator.matmul_TFLOPs={bf16=90000.0}") == 312e12
    assert best("accelerator.matmul_TFLOPs={fp8=1.0}") == 312e12
