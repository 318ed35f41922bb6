"""Cable or optics tier by tier: counts, prices, power, failures, and what does not reach."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.bill.bill import bill
from nest_core.bill.ownership import owned
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.fabric.clos import Clos
from nest_core.scenario import load_fabric

LIST = load_prices()
FABRIC = load_fabric("h100-spine-leaf-64")


def with_optics(**kinds: str) -> Clos:
    assert isinstance(FABRIC, Clos)
    return replace(FABRIC, optics=tuple(kinds.items()))


@pytest.mark.parametrize(
    ("kind", "item", "each"),
    [("DAC", None, 0), ("AEC", None, 0), ("SR", "SR", 2), ("DR", "DR", 2), ("FR", "FR", 2)],
)
def test_a_tier_takes_what_it_names_and_others_what_the_list_has(kind, item, each):
    """Links inside the racks are 2 m long, which all reach; two ends per link, or none."""
    found, before = bill(with_optics(leaf=kind), LIST), bill(FABRIC, LIST)
    leaf, spine = found.links
    assert [run.kind for run in leaf.runs] == [
        kind if item is None else {"SR": "MMF", "DR": "SMF", "FR": "SMF-2km"}[kind]
    ]
    assert spine == before.links[1]
    ends = found.transceivers - before.links[1].count * 2
    assert ends == each * leaf.count
    assert found.transceivers == (each + 2) * 64
    assert bill(FABRIC, load_prices("2026", [f'cabling.tiers.leaf="{kind}"'])) == found


def test_lpo_halves_the_power_and_is_never_taken_unasked():
    """9 W instead of 15 W per twin-port module, as listed."""
    plain, lpo = (bill(fabric, LIST) for fabric in (FABRIC, with_optics(spine="LPO")))
    watts = [
        sum(line.power_W.typical for line in found.lines if line.place == "spine")
        - next(s.power_W.typical for s in found.lines if s.item == "QM9700" and s.place == "spine")
        for found in (plain, lpo)
    ]
    assert watts == [64 * 15, 64 * 9]
    assert not any("LPO" in line.item for line in plain.lines)


def test_optics_without_a_price_are_a_line_that_says_so():
    found = owned(with_optics(spine="CPO"), LIST, "H100 SXM 80 GB")
    line = next(line for line in found.lines if line.name == "co-packaged optics")
    assert (line.count, line.usd, line.power_W, line.source) == (128, None, None, "no source")
    assert line.failures.typical == pytest.approx(128 * 0.0034)
    assert "co-packaged optics" in found.missing
    assert any("No source states the price of co-packaged" in check for check in found.checks)


def test_a_reach_below_the_run_is_refused_in_one_sentence():
    with pytest.raises(InputError) as caught:
        bill(with_optics(spine="DAC"), LIST)
    assert str(caught.value) == (
        "optics.spine must reach the 6 m of the longest run to the spine tier, but is "
        "'DAC, which reaches 2.5 m': pick AEC (7 m), AOC (50 m), SR (50 m), DR (500 m), "
        "FR (2000 m), LPO (50 m), CPO (500 m), or stand the racks closer (floor.racks_per_row)."
    )


def test_tiers_and_kinds_that_there_are_not_are_refused():
    with pytest.raises(InputError, match=r"optics.core must name a tier of the fabric"):
        with_optics(core="DR")
    with pytest.raises(InputError, match=r"optics.leaf must be optical, cheapest or a listed kind"):
        bill(with_optics(leaf="QSFP"), LIST)
