"""Prices that a person types: read as written, refused in one sentence, listed with a source."""

from __future__ import annotations

import pytest

from nest_core.bill.own import OWN_PRICES, SOLD, typed_number
from nest_core.bill.ownership import devices_of_node, owned
from nest_core.bill.prices import load_prices, prices_of
from nest_core.documents.errors import InputError
from nest_core.fabric import as_graph
from nest_core.scenario import load_fabric

FIELDS = {one.name: one for one in (*OWN_PRICES, SOLD)}


@pytest.mark.parametrize(
    ("text", "value"),
    [("$30,000", 30_000), ("30 k", 30_000), ("15e12", 15e12), (" 95 % ", 95), ("1.4M", 1.4e6)],
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert typed_number("It", text) == pytest.approx(value)


def test_a_share_is_not_taken_for_percent():
    """0.3 hours on this model were billed as 0.3 %; with its sign a figure says what it is."""
    assert FIELDS["sold_share"].read("0.3 %") == {"ownership.sold_share.typical": 0.003}
    assert FIELDS["sold_share"].read("30") == {"ownership.sold_share.typical": 0.3}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("device_usd", "-1", "Accelerator with server share must be at least 0, but is '-1'"),
        ("device_usd", "much", "must be a number, but is 'much'"),
        ("device_usd", "k", "must be a number, but is 'k'"),
        ("device_usd", "nan", "must be a finite number"),
        ("years", "0", "Kept for must be at least 0.1"),
        ("device_usd", "0", "Accelerator with server share must be above 0, but is '0'"),
        ("price_usd_per_kWh", "0.00", "Electricity must be above 0, but is '0.00'"),
        ("draw_share", "0", "Mean draw must be at least 0.1, but is '0'"),
        ("sold_share", "101", "Hours sold must be from 0 to 100 %, but is '101'"),
        ("sold_share", "0.3", "Hours sold must be in percent, but is '0.3': write 30 %"),
        ("draw_share", "0.9", "or 0.9 %"),
    ],
)
def test_what_cannot_be_is_one_sentence_that_names_its_field(name, text, told):
    with pytest.raises(InputError, match=told.replace("(", "\\(")) as caught:
        FIELDS[name].read(text)
    assert "ownership" not in str(caught.value)


def test_a_drawings_accelerator_has_the_price_that_its_bill_has():
    """A field said "no source" of a drawn fabric whose bill had the list's price."""
    drawn = as_graph(load_fabric("h100-spine-leaf-64"))
    assert devices_of_node(drawn, load_prices()) == 8
    shown, source = FIELDS["device_usd"].listed("H100 SXM 80 GB", 8)
    found = owned(drawn, load_prices(), "H100 SXM 80 GB")
    assert f"{found.device_usd.typical:,.0f}" == shown
    assert source.endswith(found.lines[0].source.rpartition(": ")[2])


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_listed_reads_back_as_the_lists_own_figure(name):
    field = FIELDS[name]
    shown, source = field.listed("H100 SXM 80 GB", 8)
    figure = getattr(load_prices().ownership, name)
    assert bool(shown) == bool(source)
    if figure is not None:
        assert source.endswith(figure.source)
        changed = prices_of(None, field.read(shown)).ownership
        assert getattr(changed, name).typical == pytest.approx(figure.typical, rel=1e-3)
    assert field.read("  ") == {}
