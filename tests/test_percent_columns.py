"""Percentages of one column have equal decimals, zeros kept: 35.1 and 35.0, not 35."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from percent_columns import printed_rows, uneven

from nest_core.api.calibrate import OwnStack
from nest_core.documents import percent_column
from nest_studio.commands.models import _profile_text
from nest_studio.commands.studies import _design_text

SHARES = [(0.351, 0.35), (0.5, 0.0044, 0.0), (1.2, 0.1), (0.0999, 0.01), (12.5, 0.06)]


@pytest.mark.parametrize("shares", SHARES)
def test_a_share_is_read_back_within_its_last_decimal(shares):
    words = percent_column((*shares, None))
    assert words(None) == "–"
    for share in shares:
        figure, sign = words(share).split()
        decimals = len(figure.partition(".")[2])
        assert sign == "%"
        assert abs(float(figure.replace(",", "")) - 100 * share) <= 0.501 * 10.0**-decimals
        assert (float(figure.replace(",", "")) == 0) == (share == 0)


def test_a_loss_that_rounds_to_nothing_has_no_sign():
    assert percent_column((-1e-7, 0.5))(-1e-7) == "0.0 %"


@pytest.mark.parametrize("shares", SHARES)
def test_the_profile_command(shares):
    operators = [
        {
            "operators": ["qkv"],
            "direction": "forward",
            "shape": [8, 8],
            "seconds": 1e-6,
            "spread": share,
            "how": "linear",
        }
        for share in shares
    ]
    device = {"device": "a device", "torch": "2", "precision": "bf16"}
    file = {"output": "mine.json", "kernels": 2}
    text = _profile_text({"operators": operators, "skipped": [], **device, **file})
    rows = printed_rows(text, "operator")
    assert len(rows) == len(shares)
    assert not uneven(rows)


@pytest.mark.parametrize("shares", SHARES)
def test_the_design_command(shares):
    row = {"name": "a", "price_usd": 1e6, "power_w": 1e4, "days": 3.0, "days_range": [2.0, 4.0]}
    losses = [None, *({"lost": share, "what": "one leaf"} for share in shares)]
    pareto = [
        {**row, "rank": rank, "worst_failure": loss, "no_source": []}
        for rank, loss in enumerate(losses, 1)
    ]
    counts = {"designs": 3, "planned": 3, "bounded": 0, "infeasible": 0, "left": 0}
    text = _design_text(
        {
            "goal": "days",
            "pareto": pareto,
            "certificate": {"proven": True, **counts},
            "not_compared": "",
            "sentences": [],
            "growth": None,
        }
    )
    rows = printed_rows(text, "rank")
    assert len(rows) == len(losses)
    assert not uneven(rows)


@pytest.mark.parametrize("shares", SHARES)
def test_the_calibrate_command(shares):
    curves = [
        {"link": "leaf", "prior": "ib", "rate": [0.9, share], "error": [share, 0.1]}
        for share in shares
    ]
    means = {"before": {"mape": 0.1}, "after": {"mape": 0.05}, "left_one_out": None}
    stack = SimpleNamespace(
        to_json=lambda: {"rows": [], "skipped": [], "curves": curves, **means},
        calibration=SimpleNamespace(parameters=()),
    )
    rows = printed_rows(OwnStack.__str__(stack), "measured on")
    assert len(rows) == len(shares)
    assert not uneven(rows)
