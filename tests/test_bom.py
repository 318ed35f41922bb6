"""`nest-studio bom`: the fields of the contract, and a person's own prices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nest_core.documents.presets import preset_names
from nest_studio.cli import run

FIELDS = {
    "switches",
    "links",
    "nics",
    "transceivers",
    "cables",
    "price_usd",
    "power_w",
    "bisection_Bps",
}


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["bom", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    fields = json.loads(out, parse_constant=pytest.fail)
    assert isinstance(fields, dict)
    return fields


@pytest.mark.parametrize("name", preset_names("fabrics"))
@pytest.mark.sampled(4)
def test_every_preset_has_the_fields_of_the_contract(name, capsys):
    fields = ask(capsys, name)
    assert set(fields) >= FIELDS
    assert fields["cables"] >= sum(fields["links"].values())
    assert fields["price_usd_low"] <= fields["price_usd"] <= fields["price_usd_high"]
    assert fields["bisection_Bps"] > 0


def test_the_figures_are_those_of_the_reference_architecture(capsys):
    """1,024 H100: 32 leaves, 16 spines, 2 x 1,024 cables, 4 transceivers per device, 25.6 TB/s."""
    fields = ask(capsys, "dgx-superpod-h100")
    assert fields["switches"] == {"leaf": 32, "spine": 16}
    assert fields["links"] == {"leaf": 1024, "spine": 1024}
    assert (fields["nics"], fields["transceivers"], fields["cables"]) == (1024, 4096, 2048)
    assert fields["bisection_Bps"] == 512 * 50e9


def test_prices_of_ones_own(capsys, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'schema = 1\nname = "own"\nbase = "2026"\n[[nic]]\nname = "ConnectX-7 400G"\n'
        'price_usd = { typical = 1, kind = "vendor", date = "2026", source = "an offer" }\n'
    )
    before, after = (
        ask(capsys, "dgx-superpod-h100"),
        ask(capsys, "dgx-superpod-h100", "--prices", str(file)),
    )
    assert before["price_usd"] - after["price_usd"] == pytest.approx(1024 * (1750 - 1))
    told = ask(capsys, "dgx-superpod-h100", "--set", "floor.nodes_per_rack=8")
    assert told["nodes_per_rack"] == 8
    assert len(told["checks"]) > len(before["checks"])


@pytest.mark.parametrize("name", ["dgx-superpod-h100", "tpu-v4-16x16x16", "mesh-8x8", "drawn-8"])
def test_people_read_a_table(name, capsys):
    assert run(["bom", name]) == 0
    out = capsys.readouterr().out
    assert "price, $" in out
    assert "together" in out
    assert max(map(len, out.splitlines())) < 400


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "fabric must be a preset or a path"),
        (["dgx-superpod-h100", "--prices", "1999"], "prices must be a preset or a path"),
        (["dgx-superpod-h100", "--set", "floor.rows=1"], "prices.floor.rows is not a known key"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, capsys):
    assert run(["bom", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
