"""Published counts, and what they give back of what their sources say."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.failures import load_failures
from nest_core.documents.presets import preset_names
from nest_core.reliability.goodput import cause_rates, rate_span

HOUR = 3600.0


def parts(devices: float) -> dict[str, float]:
    return {
        "device": devices,
        "host": devices / 8,
        "nic": devices,
        "link": devices * 35109 / 16384,
        "switch": devices / 20,
        "job": 1.0,
    }


def hours(name: str, devices: float) -> float:
    rates = cause_rates(load_failures(name), parts(devices))
    return 1 / sum(rate.per_s for rate in rates) / HOUR


@pytest.mark.parametrize("name", preset_names("failures"))
def test_every_file_counts_and_names_its_source(name):
    file = load_failures(name)
    assert file.source
    assert all(cause.units * cause.days > 0 for cause in file.cause)
    assert hours(name, 1024) > 1


def test_llama_3_gives_its_interruptions_back():
    """419 unexpected interruptions in 54 days at 16,384 devices: one in 3.09 h."""
    assert sum(cause.events for cause in load_failures("llama3-405b").cause) == 419
    assert hours("llama3-405b", 16384) == pytest.approx(54 * 24 / 419)
    assert hours("llama3-405b", 8192) == pytest.approx(2 * 54 * 24 / 419)


def test_jobs_fail_of_more_than_their_nodes():
    """RSC-1: 28.8 h by its node rate at 1,024 devices, where 7.9 h were measured of jobs.

    That is what the job's own cause is made of; 47.7 days at 8 devices (recalled) it is not.
    """
    nodes = [cause for cause in load_failures("rsc-1").cause if cause.strikes == "host"]
    per_day = sum(cause.events / cause.units / cause.days for cause in nodes)
    assert 24 / (128 * per_day) == pytest.approx(28.8, abs=0.1)
    assert 24 / (2048 * per_day) == pytest.approx(1.8, abs=0.05)
    assert hours("rsc-1", 1024) == pytest.approx(7.9, abs=0.01)
    assert hours("rsc-1", 8) / 24 == pytest.approx(47.7, rel=0.15)
    assert hours("rsc-2", 8) / 24 == pytest.approx(1000 / 2.34, rel=0.01)


def test_other_sources_give_their_words_back():
    assert hours("bloom-176b", 384) / 24 == pytest.approx(7, rel=0.02)
    assert 24 / hours("opt-175b", 1024) == pytest.approx(2.0)
    months = 30.44 * 24 * HOUR
    for rate in cause_rates(load_failures("hpn-network"), dict.fromkeys(parts(1), 1.0)):
        share = {"link": 0.00057, "switch": 0.00051}.get(rate.cause.strikes)
        assert share is None or rate.per_s * months == pytest.approx(share)
    gpus = [c for c in load_failures("b200-504").cause if c.strikes == "device"]
    assert [(c.events, c.units, c.days) for c in gpus] == [(10, 504, 55)]


def test_span_is_that_of_the_counts():
    """Ends beside draws of every cause's gamma variate; rates without counts are exact."""
    rates = cause_rates(load_failures("b200-504"), parts(504))
    low, high = rate_span(rates)
    rng = np.random.default_rng(3)
    drawn = sum(
        rng.gamma(rate.cause.events + 0.5, rate.per_event, 300_000)
        if rate.cause.counted
        else rate.per_s
        for rate in rates
    )
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, [0.1, 0.9])), rel=0.02)
    assert high / low > 1.5
    exact = cause_rates(load_failures("opt-175b"), parts(1024))
    assert rate_span(exact) == (exact[0].per_s, exact[0].per_s)


CAUSE = {"name": "x", "strikes": "device", "events": 3, "units": 10.0, "days": 5.0}
BAD = {
    "failures.cause[0].events must be at least 0.0, but is -1: change it.": {
        "base": "llama3-405b", "cause": [CAUSE | {"events": -1}],
    },
    "failures.cause[0].units must be at least 0.001, but is 0.0: change it.": {
        "base": "llama3-405b", "cause": [CAUSE | {"units": 0.0}],
    },
    "failures.cause[0].strikes must be 'device', 'host', 'nic', 'link', 'switch' or 'job', but is "
    "'cable': change it.": {"base": "llama3-405b", "cause": [CAUSE | {"strikes": "cable"}]},
    "failures.cause[0] must be without job_devices unless it strikes a job, but is ": {
        "base": "llama3-405b", "cause": [CAUSE | {"job_devices": 8}],
    },
    "failures.recovery.repair_hours.value must be at least 0.001, but is -2: change it.": {
        "base": "llama3-405b", "recovery": {"repair_hours": {"value": -2, "source": "us"}},
    },
    "failures.recovery.restart_s.source is required, but is 'missing': add it.": {
        "base": "llama3-405b", "recovery": {"restart_s": {"value": 2}},
    },
    "failures.cause must be a list, but is 3: change it.": {"base": "llama3-405b", "cause": 3},
    "failures.base must be one of the presets, but is 'no': pick ": {"base": "no"},
    "failures.base must be a preset's name, but is 3: name one.": {"base": 3},
    "failures.recovery is required, but is 'missing': add it.": {"cause": [CAUSE]},
}  # fmt: skip


@pytest.mark.parametrize("sentence", BAD)
def test_what_breaks_a_rule_is_refused_in_one_sentence(sentence):
    document = {"name": "mine", "source": "our logs", "schema": 1} | BAD[sentence]
    with pytest.raises(InputError) as caught:
        load_failures(document)
    assert str(caught.value).startswith(sentence)


def test_a_file_of_ones_own_states_what_differs(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'schema = 1\nname = "mine"\nsource = "our logs"\nbase = "llama3-405b"\n'
        '[recovery]\nrestart_s = { value = 120, source = "our launcher" }\n'
        '[[cause]]\nname = "GPU"\nstrikes = "device"\nevents = 2\nunits = 64\ndays = 30\n'
    )
    mine, base = load_failures("mine.toml", tmp_path), load_failures("llama3-405b")
    assert mine.recovery.restart_s.value == 120
    assert mine.recovery.repair_hours == base.recovery.repair_hours
    assert [cause.name for cause in mine.cause if cause.strikes == "device"] == ["GPU"]
    others = [cause for cause in base.cause if cause.strikes != "device"]
    assert [cause for cause in mine.cause if cause.strikes != "device"] == others


def test_a_base_may_have_one_of_its_own_but_none_leads_back(tmp_path):
    assert load_failures({"base": "b200-504"}) == load_failures("b200-504")
    (tmp_path / "a.toml").write_text('base = "b.toml"\n')
    (tmp_path / "b.toml").write_text('base = "a.toml"\n')
    with pytest.raises(InputError) as caught:
        load_failures("a.toml", tmp_path)
    assert str(caught.value) == (
        "failures.base must not lead back to itself, but is 'a.toml': name another."
    )
