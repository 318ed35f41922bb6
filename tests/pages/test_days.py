"""Days to train are one figure: on Plan, on Compare, on the sheet, and in every command."""

from __future__ import annotations

import html
import json
import re

import pytest
from plan_cards import big_figures

from nest_core.documents import preset_path
from nest_core.documents.units import format_days
from nest_studio.cli import run

SMALL = "llama2-7b-64-h100"
TOKENS = 2.5e13


def printed(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def options(failures):
    return [f"--failures={failures}"] if failures else []


@pytest.fixture(params=[None, "opt-175b"])
def failures(request):
    """Whose failures are asked for; None: the scenario's."""
    return request.param


@pytest.fixture
def expected(failures, capsys):
    """What `goodput` says of the best plan."""
    return printed(capsys, "goodput", SMALL, *options(failures), f"--tokens={TOKENS}")


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def test_days_are_their_parts(expected):
    parts = expected["days_by_part"]
    assert parts["training"] == expected["days_without_failures"] < expected["days"]
    assert sum(parts.values()) == pytest.approx(expected["days"])
    for cause, share in expected["losses"].items():
        assert parts[cause] == pytest.approx(share * expected["days"])


def test_a_bill_has_them(expected, failures, capsys):
    bill = printed(capsys, "bill", SMALL, *options(failures), f"--tokens={TOKENS}")
    run, interval = bill["training"], expected["days_interval"]
    assert (run["days"], run["days_by_part"]) == (expected["days"], expected["days_by_part"])
    assert run["days_range"] == [interval["low"], interval["high"]]
    hours = 24 * expected["days"] * bill["devices"]
    assert run["usd"] == pytest.approx(hours * bill["usd_per_gpu_hour"])
    assert bill["usd_per_million_tokens"] == pytest.approx(1e6 * run["usd"] / TOKENS)


def test_spare_nodes_show_their_worth_beside_their_price(expected, failures, capsys):
    """As many as are billed give the days of the run; none those of a run without any."""
    bill = printed(capsys, "bill", SMALL, *options(failures), f"--tokens={TOKENS}")
    worth = bill["training"]["spares"]
    days = [row["days"] for row in worth]
    assert days[-1] == expected["days"]
    assert days == sorted(days, reverse=True)
    (line,) = (entry for entry in bill["lines"] if entry["part"] == "spares")
    assert (worth[0]["hosts"], worth[0]["usd"]) == (0, 0)
    assert (worth[-1]["hosts"], worth[-1]["usd"]) == (line["count"], pytest.approx(line["usd"]))
    if not failures:
        bare = printed(
            capsys,
            "goodput",
            SMALL,
            f"--tokens={TOKENS}",
            "--set=failures.recovery.spare_hosts.value=0",
        )
        assert days[0] == pytest.approx(bare["days"])


def test_a_decision_and_its_sheet_have_them(expected, failures, capsys, tmp_path):
    sheet, other = tmp_path / "sheet.html", tmp_path / "other.toml"
    text = preset_path("scenarios", f"{SMALL}.toml").read_text()
    other.write_text(f'{text}\n[override]\n"accelerator.memory_GiB" = 60.0\n')
    arguments = (SMALL, str(other), *options(failures), "--no-lost-switch", f"--sheet={sheet}")
    compared = printed(capsys, "compare", *arguments)
    own_tokens = printed(capsys, "goodput", SMALL, *options(failures))
    mine = next(row for row in compared["designs"] if row["name"] == SMALL)
    ordered = next(row for row in compared["decision"]["order"] if row["name"] == SMALL)
    for row in (mine, ordered):
        assert row["days"] == own_tokens["days"]
        assert row["effective_share"] == expected["effective_share"]
    days = [name for name, *_ in compared["decision"]["table"] if name.startswith("Days for ")]
    assert len(days) == 1
    text = " ".join(re.sub("<[^>]*>", " ", html.unescape(sheet.read_text())).split())
    assert f" {mine['days']:.3g} " in text.partition(days[0])[2][:200]


def test_plan_shows_them(expected, failures, plan_page):
    chosen = {"run.failures": failures} if failures else {}
    page = plan_page(scenario=SMALL, tab="Why", **{"run.tokens_T": f"{TOKENS / 1e12}"}, **chosen)
    days = format_days(expected["days"])
    card = text_of(page)
    assert big_figures(card)[2] == days.partition(" ")[0]
    assert f"{format_days(expected['days_without_failures'])} without failures" in card
    assert days in [metric.value for metric in page.metric]


def test_compare_shows_them(expected, failures, page_at):
    chosen = {"bill.failures": failures} if failures else {}
    entries = [["One", SMALL, {}], ["Two", SMALL, {"accelerator.memory_GiB": 60.0}]]
    chosen |= {"bill.tokens": f"{TOKENS:g}", "compare.failures": "false"}
    page = page_at("compare", compare=json.dumps(entries), **chosen)
    rows = {
        re.sub("<[^>]*>", "", row.partition("</th>")[0]): row
        for row in text_of(page).split("<tr>")
        if "</th>" in row
    }
    assert f">{expected['days']:.3g}</td>" in rows["Days for 25.0 T tokens"]
