"""The prices on a sheet's first page are those of all parts of a kind, on its second as well."""

from __future__ import annotations

from pathlib import Path

from nest_core.report.sheet.words import prices_table
from nest_core.scenario import scenario_or_fabric
from nest_core.studies.designs import whole_bills


def test_both_pages_count_as_many_switches():
    (bill,) = whole_bills(scenario_or_fabric("h100-spine-leaf-1024", {}, Path()))
    switches = sum(line.count for line in bill.owned.lines if line.name == "QM9700")
    assert len([line for line in bill.owned.lines if line.name == "QM9700"]) > 1
    for rows in (
        prices_table(bill.owned, full=True),
        prices_table(bill.owned, full=False, max_lines=6),
    ):
        assert [row[0] for row in rows if row[0].startswith("QM9700")] == [f"QM9700, {switches}"]
