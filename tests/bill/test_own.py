"""Prices that a person types: read as written, refused in one sentence, listed with a source."""

from __future__ import annotations

import pytest

from nest_core.bill.own import OWN_PRICES, SOLD, typed_number
from nest_core.bill.prices import load_prices, prices_of
from nest_core.documents.errors import InputError

FIELDS = {one.name: one for one in (*OWN_PRICES, SOLD)}


@pytest.mark.parametrize(
    ("text", "value"),
    [("$30,000", 30_000), ("30 k", 30_000), ("15e12", 15e12), (" 95 % ", 95), ("1.4M", 1.4e6)],
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert typed_number("It", text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("device_usd", "-1", "Accelerator with server share must be at least 0, but is '-1'"),
        ("device_usd", "much", "must be a number, but is 'much'"),
        ("device_usd", "k", "must be a number, but is 'k'"),
        ("device_usd", "nan", "must be a finite number"),
        ("years", "0", "Kept for must be at least 0.1"),
        ("sold_share", "101", "Hours sold must be from 0 to 100 %, but is '101'"),
    ],
)
def test_what_cannot_be_is_one_sentence_that_names_its_field(name, text, told):
    with pytest.raises(InputError, match=told.replace("(", "\\(")) as caught:
        FIELDS[name].read(text)
    assert "ownership" not in str(caught.value)


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
