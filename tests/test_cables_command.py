"""`nest-studio cables`: the contract's fields, files for an order and for NetBox, refusals."""

from __future__ import annotations

import json

import pytest

from nest_studio.cli import run


def test_one_json_object_with_every_cable(capsys):
    assert run(["cables", "h100-spine-leaf-64", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    fields = json.loads(out)
    assert fields["count"] == len(fields["cables"]) == sum(fields["tiers"].values()) == 128
    assert set(fields["cables"][0]) >= {"a", "a_port", "b", "b_port", "type", "length_m"}


def test_racks_of_ones_own_change_lengths_and_kinds(capsys):
    texts = []
    for more in ((), ("--set", "floor.slack_m.typical=20", "--set", 'cabling.media="cheapest"')):
        assert run(["cables", "h100-spine-leaf-64", "--format", "netbox", *more]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0].startswith("side_a_device,side_a_type,side_a_name,side_b_device")
    assert ",mmf-om4," in texts[0]
    assert texts[0] != texts[1]
    assert len(texts[0].splitlines()) == len(texts[1].splitlines()) == 129


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["meta-3tier-7to1"], "which switches join its devices"),
        (["no-such-fabric"], "no-such-fabric"),
        (["drawn-8", "--format", "visio"], "'csv', 'netbox'"),
    ],
)
def test_what_has_no_cables_is_one_sentence(arguments, sentence, capsys):
    assert run(["cables", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
