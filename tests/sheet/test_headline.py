"""What a comparison says of money holds on both sides of its figure; a tie is said as one."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from nest_core.report.sheet.charts import parts_of_bill, throughput_chart
from nest_core.report.sheet.sheet import differences
from nest_core.report.sheet.weighing import curves, dearer, weigh
from nest_core.report.sheet.words import headline, rests_on_price
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.comparison import compare

FEW = {
    "search.pp": 1,
    "search.zero": 1,
    "search.recompute": "none",
    "search.schedule": "1f1b",
}
FABRICS = {
    "1:1": "h100-spine-leaf-1024",
    "rails": "dgx-superpod-h100",
    "4:1": "h100-spine-leaf-1024-4to1",
}


@pytest.fixture(scope="module")
def compared():
    document, _ = scenario_document("llama2-7b-64-h100")
    entries = [
        (name, Scenario(document, FEW | {"fabric": fabric})) for name, fabric in FABRICS.items()
    ]
    return compare(entries, failures=False)


def certain(bills):
    """The same without what is not known of them, so that no speeds tie."""
    return [replace(one, sureness=None) for one in bills]


@pytest.mark.parametrize("hours", [1.0, 0.6])
@pytest.mark.parametrize("usd", [300.0, 8_000.0, 300_000.0])
def test_whoever_wins_is_cheaper_per_token_on_that_side_alone(compared, usd, hours):
    bills = certain(compared.at({"ownership.device_usd.typical": usd}).candidates)
    found = weigh(bills, against_first=True, hours=hours)
    assert found.choice is bills[0]
    title = headline(found)
    winner, loser = re.match(r"(\S+) wins over (\S+) w", title).groups()
    first, second = (
        next(one for one in bills if one.name == name).cost() for name in (winner, loser)
    )
    edge = found.device_edge.value
    if edge is None:
        assert "whatever an accelerator costs" in title
        assert all(dearer(first, second, price, hours) >= 0 for price in np.geomspace(1, 1e6, 30))
    else:
        side = 1 if "more than" in title else -1
        assert side * dearer(first, second, edge * 1.01, hours) > 0
        assert side * dearer(first, second, edge * 0.99, hours) < 0
    for line in curves(found):
        other = next(one for one in bills if one.name == line.name)
        design, mine = other.cost(), found.choice.cost()
        assert line.dearer[-1] == pytest.approx(dearer(mine, design, line.usd[-1], hours))


def test_a_tie_is_said_with_what_it_saves(compared):
    twin = replace(compared.candidates[0], name="twin")
    found = weigh([compared.candidates[0], twin], against_first=True)
    assert headline(found) == "1:1 and twin tie in speed"
    assert {cells[1][0] for _, cells in differences(found, found.bills)} <= {"tie", "0 %"}
    cheap = compared.at({}).candidates[2]
    pair = weigh([compared.candidates[0], replace(cheap, sureness=compared.candidates[0].sureness)])
    assert pair.rival is not None
    assert rests_on_price(pair)


def test_a_title_never_holds_a_design_against_itself(compared):
    """Seen on Compare: "1:1 ties with 1:1, 2:1 ties with 1:1"."""
    twins = [replace(compared.candidates[0], name=name) for name in ("1:1", "twin", "third")]
    title = throughput_chart(weigh(twins, against_first=True), twins).title
    assert title == "twin ties with 1:1, third ties with 1:1"


def test_a_plan_that_is_not_proven_decides_nothing(compared):
    first, *others = certain(compared.candidates)
    found = weigh([replace(first, gap=0.2), *others], against_first=True)
    assert headline(found) == "Not decided: 1:1's plan may be 20 % from the best"
    assert "1:1's plan is not proven" in rests_on_price(found)


def test_parts_of_a_bill_are_the_whole_bill(compared):
    for one in compared.candidates:
        assert sum(parts_of_bill(one)) == pytest.approx(one.owned.total_usd.typical)
