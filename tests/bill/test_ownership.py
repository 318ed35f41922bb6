"""The whole bill against bills made by hand, and what it does with what no source states."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nest_core.bill.ownership import Owned, owned
from nest_core.bill.prices import load_prices, prices_of
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import settings
from nest_core.fabric.graph import as_graph
from nest_core.scenario import load_fabric, scenario_or_fabric

BILLS = Path(__file__).parent.parent / "data" / "bills"
SUPERPOD = "dgx-superpod-h100"


def whole(fabric: str = SUPERPOD, accelerator: str = "H100 SXM 80 GB", *keys: str) -> Owned:
    return owned(load_fabric(fabric), load_prices("2026", keys), accelerator)


@pytest.mark.parametrize(
    ("accelerator", "watts"),
    [
        ("H100 SXM 80 GB", 10_200 / 8),
        ("A100 80 GB", 6_500 / 8),
        ("TPU v4", 250),  # whose power nobody publishes
    ],
)
def test_an_accelerator_draws_its_own_power_on_a_torus_as_well(accelerator, watts):
    """H100 in place of chips were billed with 0.25 kW each: an eighth of a DGX is 1.275 kW."""
    bill = whole("tpu-v4-4x4x4", accelerator)
    assert bill.lines[0].power_W.typical == pytest.approx(watts * bill.devices)


@pytest.mark.parametrize("name", ["superpod-1024", "leaf-spine-64", "rail-only-1024"])
def test_a_bill_is_the_one_made_by_hand(name):
    """Every line, the power and the total; what was not on paper has no price here either."""
    paper = tomllib.loads((BILLS / f"{name}.toml").read_text())
    fabric = scenario_or_fabric(paper["fabric"], settings(paper["settings"]), None).fabric
    found = owned(fabric, load_prices(), "H100 SXM 80 GB")
    lines = [line for line in found.lines if line.usd is not None]
    assert len(lines) == len(paper["line"])
    for wanted in paper["line"]:
        (line,) = (
            line
            for line in lines
            if line.part == wanted["part"] and wanted.get("name", line.name) == line.name
        )
        assert (line.count, line.usd.typical) == (wanted["count"], pytest.approx(wanted["usd"]))
    assert found.missing == ("storage", "staff")
    assert found.power_W.typical == paper["power_W"]
    assert found.total_usd.typical == pytest.approx(paper["total_usd"], abs=0.01)


def test_nodes_that_are_there_already_are_not_bought():
    """128 nodes of which 28 are owned; without a price, nothing is known unless all are."""
    full, some = whole(), whole(SUPERPOD, "H100 SXM 80 GB", "ownership.owned_nodes=28")
    before, after = full.lines[0], some.lines[0]
    assert (before.count, after.count) == (128, 128)
    assert after.usd.typical == pytest.approx(100 / 128 * before.usd.typical)
    assert after.source.endswith("; 28 are owned already")
    assert full.total_usd.typical - some.total_usd.typical == pytest.approx(
        28 * before.unit_usd.typical
    )
    assert full.power_W == some.power_W
    assert whole("rail-only-1024", "Trn2", "ownership.owned_nodes=28").lines[0].usd is None
    assert whole("rail-only-1024", "Trn2", "ownership.owned_nodes=128").lines[0].usd.typical == 0.0


def test_the_superpod_is_near_the_published_whole():
    """The spreadsheet's own prices of nodes and switches give its sums; its cabling is 2.62 M$."""
    published = tomllib.loads((BILLS / "superpod-1024.toml").read_text())["published_usd"]
    found = whole()
    nodes = found.of("accelerators with servers")[0].usd + found.of("network, node")[0].usd
    assert nodes.typical == pytest.approx(published["nodes_with_nics"], rel=1e-3)
    switches = [line for line in found.lines if line.name == "QM9700"]
    assert sum(line.usd.low for line in switches) == published["switches"]
    cabling = [line for line in found.lines if line.unit in ("transceiver", "cable")]
    least, typical = (sum(getattr(line.usd, end) for line in cabling) for end in ("low", "typical"))
    assert least < published["cabling"] < typical
    assert found.of("hall")[0].usd.typical == pytest.approx(published["hall"], rel=0.06)


@pytest.mark.parametrize("fabric", [SUPERPOD, "torus-16x16", "gb200-nvl72-rails"])
def test_lines_sum_to_the_total_and_count_times_unit_is_the_line(fabric):
    found = whole(fabric, "")
    priced = [line for line in found.lines if line.usd]
    assert sum(line.usd.typical for line in priced) == pytest.approx(found.total_usd.typical)
    for line in priced:
        assert line.count * line.unit_usd.typical == pytest.approx(line.usd.typical, rel=1e-9)
        assert line.usd.low <= line.usd.typical <= line.usd.high
        assert line.source not in ("", "no source")
    assert sum(line.power_W.typical for line in found.lines if line.power_W) == pytest.approx(
        found.power_W.typical
    )


@pytest.mark.parametrize(
    ("fabric", "accelerator", "name"),
    [
        ("dgx-superpod-b200", "B200 SXM 180 GB", "DGX B200"),
        ("torus-16x16", "TPU v5e", "chip"),
        (SUPERPOD, "MI300X 192 GB", "node of 8 devices"),
        ("h100-nvl-pairs-16", "H100 NVL 94 GB", "node of 8 devices"),
    ],
)
def test_without_a_source_the_line_is_empty_and_no_price_is_taken_from_another(
    fabric, accelerator, name
):
    found = whole(fabric, accelerator)
    nodes = found.lines[0]
    assert (nodes.usd, nodes.unit_usd, nodes.source) == (None, None, "no source")
    assert found.device_usd is None
    assert found.usd_per_device_hour is None
    assert found.total_usd.typical > 0
    priced = whole(fabric, accelerator, "ownership.device_usd.typical=30000")
    assert priced.device_usd.typical == pytest.approx(30_000)
    assert priced.usd_per_device_hour is not None
    assert nodes.name == name


def test_what_a_person_states_is_their_own_figure():
    before, after = (
        whole(),
        whole(
            SUPERPOD,
            "H100 SXM 80 GB",
            "ownership.storage_usd_per_device.typical=500",
            "ownership.staff_usd_per_year.typical=1e6",
            "ownership.sold_share.typical=0.8",
            "ownership.draw_share.typical=0.7",
        ),
    )
    assert after.missing == ()
    energy, less = before.of("energy")[0].usd, after.of("energy")[0].usd
    assert less.typical == pytest.approx(0.7 * energy.typical)
    assert after.total_usd.typical == pytest.approx(
        before.total_usd.typical + 1024 * 500 + 5e6 - 0.3 * energy.typical
    )
    hours = 1024 * 5 * 8766 * 0.8
    assert after.usd_per_device_hour.typical == pytest.approx(after.total_usd.typical / hours)
    assert after.of("storage")[0].source == "own, now: set by hand"
    # The network's hall, the energy of a year, and what accelerators cost make up the whole.
    rest = after.besides_usd.typical + 5 * after.yearly_usd.typical
    accelerators = (1 + after.spares) * 1024 * after.device_usd.typical
    assert rest + accelerators == pytest.approx(after.total_usd.typical)


def test_expected_failures_are_counts_times_cited_rates():
    found = whole()
    nodes, switches = found.lines[0], found.of("network, spine")[0]
    # Llama 3's counts on devices and on hosts of eight, over 54 days (presets/failures).
    a_day = 1024 * (148 + 72 + 48) / 16384 / 54 + 128 * (14 + 32) / 2048 / 54
    assert nodes.failures.typical == pytest.approx(365.25 * a_day)
    assert switches.failures.typical == pytest.approx(16 * 0.0061)
    fibre = next(line for line in found.lines if line.name.startswith("multimode"))
    assert (fibre.failures, fibre.failures_source) == (None, "no source")


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("switch.0.price_usd.typical=-5", r"switch\[0\].price_usd.typical must be at least 0.0"),
        ("ownership.pue.typical=0.9", "ownership.pue.typical must be at least 1.0, but is 0.9"),
        ("ownership.pue.typical=nan", "ownership.pue.typical must be a finite number"),
        ('ownership.pue.typical="1.2 W"', "ownership.pue.typical must be a number"),
        ("ownership.sold_share.typical=80", "ownership.sold_share.typical must be at most 1.0"),
        ("switch.0.price_eur.typical=9", r"switch\[0\].price_eur "),
        ("ownership.years.typical=0", "ownership.years.typical must be at least 0.1"),
        ('cabling.tiers.leaf="QSFP"', "cabling.tiers.leaf must be optical, cheapest or a listed"),
    ],
)
def test_bad_prices_are_one_sentence(key, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        load_prices("2026", [key])
    assert str(caught.value).startswith("prices.")
    assert str(caught.value).count(". ") == 0


def test_a_scenario_may_hold_prices_over_a_base():
    table = {"ownership": {"pue": {"typical": 1.2, "kind": "own", "date": "now", "source": "me"}}}
    found = prices_of(table, {"ownership.years.typical": 3})
    assert (found.ownership.pue.range.high, found.ownership.years.range.low) == (1.2, 3)
    assert found.switch == load_prices().switch
    with pytest.raises(InputError, match=r"prices\.base"):
        prices_of({"base": 3})


def test_nodes_of_a_drawing_have_the_price_of_their_server():
    """A fabric that was read is of the same nodes as one that was chosen."""
    fabric = load_fabric("h100-spine-leaf-64")
    drawn, chosen = (
        owned(one, load_prices(), "H100 SXM 80 GB").lines[0] for one in (as_graph(fabric), fabric)
    )
    assert (drawn.name, drawn.count, drawn.usd) == (chosen.name, chosen.count, chosen.usd)
    assert drawn.usd is not None
