"""The bill as a figure and as rows: every bar and cell is a line's own figure."""

from __future__ import annotations

import pytest

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.presets import preset_names
from nest_core.fabric import Clos, Dragonfly
from nest_core.report.figures.bill import (
    PART_COLOURS,
    bill_figure,
    bill_rows,
    link_rows,
    ports_table,
)
from nest_core.scenario import load_fabric

PRICES = load_prices()
FABRICS = {name: load_fabric(name) for name in preset_names("fabrics")}
fabrics = pytest.mark.parametrize("name", FABRICS)


@pytest.mark.sampled(3)
@fabrics
def test_bars_stack_to_the_total_and_whiskers_to_its_ends(name):
    found = bill(FABRICS[name], PRICES)
    picture = bill_figure(found)
    *bars, ends = picture.plot.data
    unit = picture.subtitle.split("; ")[0].split(", ")[1]
    scale = {"G$": 1e9, "M$": 1e6, "k$": 1e3, "$": 1.0}[unit]
    assert sum(sum(bar.x) for bar in bars) * scale == pytest.approx(found.price_usd.typical)
    assert sum(ends.x) * scale == pytest.approx(found.price_usd.typical)
    above, below = sum(ends.error_x.array), sum(ends.error_x.arrayminus)
    assert (sum(ends.x) + above) * scale == pytest.approx(found.price_usd.high)
    assert (sum(ends.x) - below) * scale == pytest.approx(found.price_usd.low)
    assert [bar.marker.color for bar in bars] == [colour for _, colour in picture.legend]
    assert picture.plot.layout.title.text is None
    assert picture.titled().layout.title.text == picture.title


def test_the_title_states_the_finding():
    found = bill(FABRICS["dgx-superpod-h100"], PRICES)
    share = {
        part: sum(line.price_usd.typical for line in found.lines if line.part == part)
        for part in PART_COLOURS
    }
    largest = max(share, key=share.__getitem__)
    assert largest == "transceiver"
    percent = 100 * share[largest] / found.price_usd.typical
    title = bill_figure(found).title
    assert title.startswith(f"The network costs $6.52 M, {percent:.1f} % of it transceivers, and")
    assert title.endswith(" 92.7 kW")


@pytest.mark.sampled(3)
@fabrics
def test_rows_have_one_shape_and_all_lines(name):
    found = bill(FABRICS[name], PRICES)
    rows = bill_rows(found)
    assert len(rows) == len(found.lines)
    assert {tuple(row) for row in rows} <= {tuple(rows[0])}
    together = sum(float(row["together, $"].replace(",", "")) for row in rows)
    assert together == pytest.approx(found.price_usd.typical, abs=len(rows))
    assert sum(int(row["number"].replace(",", "")) for row in link_rows(found)) == found.cables


@pytest.mark.sampled(3)
@fabrics
def test_ports_are_of_switched_fabrics_and_add_up(name):
    fabric = FABRICS[name]
    table = ports_table(fabric)
    assert (table is not None) == isinstance(fabric, Clos | Dragonfly)
    for row in table.rows if table else ():
        down, up, free, ports = (int(row[key]) for key in ("down", "up", "free", "ports"))
        assert down + up + free == ports
        assert free >= 0


def test_ratios_stand_beside_the_ports_that_make_them():
    leaf, spine = ports_table(FABRICS["h100-spine-leaf-1024-4to1"]).rows
    assert (leaf["down"], leaf["up"], leaf["free"]) == ("32", "8", "24")
    assert (leaf["asked, down : up"], leaf["realised"]) == ("4:1", "4:1")
    assert (spine["asked, down : up"], spine["realised"]) == ("–", "–")
