"""`nest-studio goodput`: the contract of the command line, field by field."""

from __future__ import annotations

import json

import pytest

from nest_studio.cli import run

SMALL = ("goodput", "llama2-7b-64-h100", "--plan", "dp=64,tp=1")
FIELDS = {
    "mtbf_s",
    "checkpoint_interval_s",
    "checkpoint_write_s",
    "effective_share",
    "effective_share_simulated",
    "days",
    "days_without_failures",
    "losses",
    "spares",
}


def printed(capsys, *arguments):
    assert run([*arguments]) == 0
    return capsys.readouterr().out


def test_fields_of_the_contract(capsys):
    fields = json.loads(printed(capsys, *SMALL, "--tokens", "1e12", "--json"))
    assert fields.keys() >= FIELDS
    assert sum(fields["losses"].values()) == pytest.approx(1 - fields["effective_share"])
    assert fields["tokens"] == 1e12
    assert fields["spares"]["hosts"] == 1


def test_seed_and_rates_are_options(capsys):
    first, again, other, rsc = (
        json.loads(printed(capsys, *SMALL, *more, "--json"))
        for more in ((), (), ("--seed", "1"), ("--failures", "rsc-1"))
    )
    assert first == again
    assert first["effective_share"] == other["effective_share"]
    assert first["effective_share_simulated"] != other["effective_share_simulated"]
    assert rsc["mtbf_s"] < first["mtbf_s"]


def test_text_says_days_in_place_of_days(capsys):
    text = printed(capsys, *SMALL)
    assert " of the time trains: " in text
    assert "faulty GPU" in text


def test_negative_rates_are_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        'schema = 1\nname = "m"\nsource = "us"\nbase = "llama3-405b"\n[[cause]]\nname = "x"\n'
        'strikes = "link"\nevents = -4\nunits = 3\ndays = 2\n'
    )
    assert run([*SMALL, "--failures", "mine.toml"]) == 2
    assert capsys.readouterr().err == (
        "failures.cause[0].events must be at least 0.0, but is -4: change it.\n"
    )
