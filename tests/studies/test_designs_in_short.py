"""Designs that are set beside another in short: which there are, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.overrides import toml_document
from nest_core.scenario import scenario_or_fabric
from nest_core.studies.designs import whole_bills


@pytest.mark.parametrize(
    ("beside", "sentence"),
    [
        (["1:1", "1:1"], "--compare must name every design once"),
        (["scale-up 7"], "scale-up size must divide the 64 devices"),
        (["spine=DAC"], r"optics\.spine must reach the 6 m"),
        (["no-such"], "fabric must"),
    ],
)
def test_designs_that_there_are_not_are_refused(beside, sentence):
    with pytest.raises(InputError, match=sentence):
        whole_bills(scenario_or_fabric("h100-spine-leaf-64", {}, Path()), beside)


def test_another_scale_up_keeps_devices_and_nics():
    (found,) = whole_bills(scenario_or_fabric("h100-spine-leaf-64", {}, None), ["scale-up 16"])
    assert (found.owned.devices, found.owned.network.nics, found.owned.network.nodes) == (64, 64, 4)
    assert found.owned.lines[0].usd is None  # no listed server has 16 devices


def test_files_are_called_by_their_stems(tmp_path):
    for name in ("near", "far"):
        fabric = scenario_or_fabric("h100-spine-leaf-64", {}, Path()).fabric.document()
        (tmp_path / f"{name}.toml").write_text(toml_document(fabric))
    paths = [str(tmp_path / f"{name}.toml") for name in ("near", "far")]
    design = scenario_or_fabric("h100-spine-leaf-64", {}, Path())
    assert [bill.name for bill in whole_bills(design, paths)] == ["near", "far"]
    with pytest.raises(InputError, match="must name every design once"):
        whole_bills(design, [*paths, f"other/{Path(paths[0]).name}"])
