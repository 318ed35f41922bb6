"""What a comparison says of money holds on both sides of its figure; a tie is said as one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from nest_core.documents import InputError
from nest_core.report.sheet import decision_sheet, question_of
from nest_core.report.sheet.charts import bill_chart, parts_of_bill, throughput_chart
from nest_core.report.sheet.dearness import curves
from nest_core.report.sheet.sheet import differences
from nest_core.report.sheet.words import title, why
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies import comparison
from nest_core.studies.comparison import compare
from nest_core.studies.decision import DecisionInputs, decide
from nest_core.studies.failures import Failure
from nest_studio.cli import run as command

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
def test_a_curve_is_what_the_decision_says_at_every_price(compared, usd, hours):
    bills = certain(compared.at({"ownership.device_usd.typical": usd}).candidates)
    decision = decide(bills, DecisionInputs(hours))
    assert all(decision.dearer(bill) >= 0 for bill in decision.bills)
    for line in curves(decision):
        other = next(bill for bill in bills if bill.name == line.name)
        edge = decision.break_evens[line.name][0]
        signs = np.sign(line.dearer)
        if edge.value is None:
            assert len(set(signs)) == 1
        elif edge.value < line.usd[-1]:
            assert np.interp(edge.value, line.usd, line.dearer) == pytest.approx(0, abs=2e-3)
        at = replace(decision.assumed, device_usd=line.usd[-1])
        assert line.dearer[-1] == decision.dearer(other, at)


def test_twins_tie_in_all_that_the_rule_reads(compared):
    twin = replace(compared.candidates[0], name="twin")
    decision = decide([compared.candidates[0], twin])
    assert title(decision) == (
        "Build 1:1: it ties with twin per token, and twin is the same in all that the rule reads"
    )
    cells = {cells[1][0].partition(",")[0] for _, cells in differences(decision)}
    assert cells <= {"tie", "0 %", ""}


def test_a_title_never_sets_a_design_against_itself(compared):
    """Seen on Compare: "1:1 ties with 1:1, 2:1 ties with 1:1"."""
    twins = [replace(compared.candidates[0], name=name) for name in ("1:1", "twin", "third")]
    chart = throughput_chart(decide(twins))
    assert chart.title == "twin ties with 1:1 in speed, third ties with 1:1 in speed"


def test_a_plan_that_is_not_proven_and_could_win_decides_nothing(compared):
    bills = certain(compared.candidates)
    best = decide(bills).best
    others = [bill for bill in bills if bill.name != best.name]
    decision = decide([best, replace(others[0], gap=0.2), *others[1:]])
    words = f"The plan of {others[0].name} is not proven and may be up to 25 % faster"
    assert title(decision) == f"Not decided: {words}"
    assert f"{words}." in " ".join(why(decision))
    sure = decide([replace(best, gap=0.2), *others])
    assert title(sure).startswith(f"Build {best.name}: ")


def test_other_jobs_are_not_decided_between(compared):
    first, second, _ = compared.candidates
    other = replace(second, scenario=replace(second.scenario, batch=2 * second.scenario.batch))
    with pytest.raises(InputError, match="designs must train the same model"):
        decide([first, other])


def test_designs_of_another_size_say_so_wherever_they_are_decided_between(compared):
    first, second, _ = compared.candidates
    decision = decide([first, replace(second, owned=replace(second.owned, devices=64))])
    assert "differ in size, 64 to 1,024 devices" in " ".join(why(decision))
    assert "differ in size" not in " ".join(why(compared.decision()))


def test_what_a_failure_costs_is_not_taken_for_nothing_where_nobody_knows(compared):
    """A design of which nobody asked does not pass a limit that others are held to."""
    known, other, *_ = compared.candidates
    loss = Failure(("leaf 0",), 0.95, 1.0)
    pair = [replace(known, failure=loss), replace(known, name="unknown", owned=other.owned)]
    decision = decide(pair)
    assert decision.best.name == known.name
    assert "What a single failure costs is unknown of unknown." in decision.unknown


def test_bills_without_accelerators_are_not_compared(compared):
    first, second, _ = compared.candidates
    lines = tuple(
        replace(line, usd=None) if line.part.startswith("accelerators") else line
        for line in second.owned.lines
    )
    decision = decide([first, replace(second, owned=replace(second.owned, lines=lines))])
    assert decision.goal == "days"
    assert all(decision.difference(bill, "total_usd") is None for bill in decision.bills)
    assert bill_chart(decision).title.startswith("Bills are not compared")
    assert "$" not in title(decision)


def test_prices_of_a_scenario_are_its_own():
    document, _ = scenario_document("llama2-7b-64-h100")
    price = {"prices.ownership.device_usd.typical": 1000.0}
    entries = [
        (name, Scenario(document, FEW | price | {"fabric": FABRICS["1:1"]})) for name in ("a", "b")
    ]
    result = compare(entries, failures=False)
    assert all(bill.owned.device_usd.typical == 1000.0 for bill in result.candidates)
    moved = result.at({"ownership.pue.typical": 1.2})
    assert all(bill.owned.device_usd.typical == 1000.0 for bill in moved.candidates)


def test_parts_of_a_bill_are_the_whole_bill(compared):
    for one in compared.candidates:
        assert sum(parts_of_bill(one)) == pytest.approx(one.owned.total_usd.typical)


def test_a_sheet_that_was_cut_off_is_refused(compared):
    """Half a sheet, and one whose last line alone is gone, are no other documents."""
    sheet = decision_sheet(compared.decision(), datetime(2026, 11, 28))
    for length in (len(sheet) // 2, len(sheet) - 9):
        with pytest.raises(InputError, match="is 'one that was cut off before its end'"):
            question_of(sheet[:length])
    with pytest.raises(InputError, match="is 'another document'"):
        question_of("<html></html>")


def test_bills_that_lack_different_lines_are_not_compared(compared):
    """A switch without a price made its design the cheaper one."""
    first, second, third = compared.candidates
    lines = list(second.owned.lines)
    place = next(n for n, line in enumerate(lines) if line.part == "network, leaf")
    lines[place] = replace(lines[place], usd=None)
    cheaper = replace(second, owned=replace(second.owned, lines=tuple(lines)))
    bills = [first, cheaper, third]
    decision = decide(bills)
    refused = f"ills are not compared: {lines[place].name} has no price"
    assert decision.goal == "days"
    assert title(decision).endswith(refused)
    assert bill_chart(decision).title == f"B{refused}"
    assert f"B{refused}." in decision.unknown
    table = dict(differences(decision, full=True))
    money = [cells for name, cells in table.items() if name.startswith(("Bill", "$", "Network"))]
    assert len(money) == 4
    assert not any(apart for cells in money for apart, _ in cells)
    figures = ("Whole bill", "Per million tokens", "Per accelerator-hour", "Network price")
    for line in replace(compared, candidates=tuple(bills)).lines():
        assert line.figure not in figures or not any(line.relative)
    assert not decide(bills, goal="tokens_per_network_usd").break_evens
    alike = [
        replace(bill, owned=replace(bill.owned, lines=tuple(bill.owned.lines[:place])))
        for bill in (first, third)
    ]
    assert decide(alike).goal == "tokens_per_usd", "what all of them lack cancels"


def test_the_command_refuses_other_jobs_before_it_plans(monkeypatch, capsys):
    """It planned both for a minute, and then said so."""
    monkeypatch.setattr(comparison, "planned_candidate", lambda *_: pytest.fail("planned"))
    assert command(["compare", "llama2-7b-64-h100", "bert-large-64-v100"]) == 2
    assert "designs must train the same model, sequence length and batch" in capsys.readouterr().err
