"""Against SimGrid's flow model, on its own fat-trees, tori and dragonflies and on routes of ours.

``tests/data/simgrid_subset.csv`` has what it took for rings, all-to-alls, transfers between stages
and single bytes (`benchmarks.outside.simgrid` asks for all of it).
"""

import csv
from pathlib import Path

import pytest

from benchmarks.outside.simgrid import Setup, cases, setups

SUBSET = Path(__file__).parent.parent / "data" / "simgrid_subset.csv"
ROWS = 131


def rows_of() -> dict[tuple[str, str], dict[str, float]]:
    """Seconds by pattern, by family and fabric."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    with SUBSET.open(newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            fabric = row["family"], row["fabric"]
            rows.setdefault(fabric, {})[row["pattern"]] = float(row["seconds"])
    return rows


SIMULATED = rows_of()
SETUPS = [setup for setup in setups() if (setup.family, setup.name) in SIMULATED]


def test_the_subset_is_complete():
    assert len(SETUPS) == len(SIMULATED)
    assert sum(map(len, SIMULATED.values())) == ROWS


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: f"{setup.family} {setup.name}")
def test_times_are_those_of_simgrid(setup: Setup):
    """A failure: a flow is counted on another link than the one it takes."""
    simulated = SIMULATED[setup.family, setup.name]
    for case in cases(setup):
        ratio = case.ours_s / simulated[case.pattern]
        assert ratio == pytest.approx(1.0, abs=0.002), case.pattern
