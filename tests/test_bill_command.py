"""`nest-studio bill`: the fields of the contract, designs beside each other, refusals."""

from __future__ import annotations

import html
import importlib.util
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nest_core.report.sheet import decision_sheet
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.comparison import compare
from nest_studio.cli import run

LINE = {"name", "count", "unit_usd", "source", "usd", "power_w"}
RATIO = "fabric.clos.oversubscription"
FEW = {"search.tp": 2, "search.pp": 1, "search.zero": [1]}
PINS = ["--set", "search.tp=2", "--set", "search.pp=1", "--set", "search.zero=[1]"]


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["bill", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert (err, out.count("\n")) == ("", 1)
    fields: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return fields


def holds(fields: dict[str, Any]) -> None:
    assert all(set(line) >= LINE for line in fields["lines"])
    priced = [line for line in fields["lines"] if line["usd"] is not None]
    assert sum(line["usd"] for line in priced) == pytest.approx(fields["total_usd"])
    for line in fields["lines"]:
        assert (
            (line["usd"] is None) == (line["unit_usd"] is None) == (line["source"] == "no source")
        )
    for line in priced:
        assert line["count"] * line["unit_usd"][1] == pytest.approx(line["usd"])
    for one in fields["break_even"]:
        assert set(one) >= {"quantity", "value", "sentence"}
        assert one["sentence"].endswith(".")


def test_a_fabric_is_billed_and_a_scenario_planned(capsys):
    fabric = ask(capsys, "h100-spine-leaf-64")
    holds(fabric)
    assert fabric["usd_per_gpu_hour"] == pytest.approx(fabric["total_usd"] / (64 * 5 * 8766))
    assert fabric["usd_per_million_tokens"] is None
    planned = ask(capsys, "llama2-7b-64-h100", *PINS, "--tokens", "1e12")
    holds(planned)
    assert planned["total_usd"] == pytest.approx(fabric["total_usd"])
    run_ = planned["training"]
    assert run_["usd"] == pytest.approx(64 * 24 * run_["days"] * planned["usd_per_gpu_hour"])
    assert run_["usd"] == pytest.approx(1e6 * planned["usd_per_million_tokens"])
    low, high = run_["days_range"]
    assert low < run_["days"] < high
    years = 5 * 8766 * 3600 * planned["tokens_per_s"] * planned["effective_share"]
    kWh = next(line["count"] for line in planned["lines"] if line["part"] == "energy")
    assert planned["tokens_per_kwh"] == pytest.approx(years / kWh)


def test_ratios_beside_each_other_have_break_evens_against_the_best(capsys):
    found = ask(capsys, "llama2-7b-64-h100", *PINS, "--compare", "1:1,2:1,4:1")
    holds(found)
    assert [one["name"] for one in found["compared"]] == ["1:1", "2:1", "4:1"]
    assert found["lines"] == found["compared"][0]["lines"]
    decision = found["decision"]
    assert set(decision) >= {"best", "rule", "ties", "order", "breaks_if", "break_even"}
    assert set(decision["intervals"]) == {"1:1", "2:1", "4:1"} - {decision["best"]}
    quantities = [one["quantity"] for one in found["break_even"]]
    assert quantities == ["device_usd", "share_of_hours", "years"] * 2
    assert all(decision["best"] in one["sentence"] for one in found["break_even"])
    assert decision["order"][0]["rank"] == 1
    totals = [one["total_usd"] for one in found["compared"]]
    assert totals == sorted(totals, reverse=True)
    assert decision["title"].startswith(f"Build {decision['best']}: ")


def test_compare_decides_between_files_and_writes_the_same_sheet(capsys, tmp_path):
    text = Path("presets/scenarios/llama2-7b-64-h100.toml").read_text()
    names = []
    for ratio in ("1.0", "8.0"):
        names.append(str(tmp_path / f"at-{ratio[0]}.toml"))
        own = f'{text}\n[override]\n"fabric.clos.oversubscription" = [{ratio}]\n'
        Path(names[-1]).write_text(own)
    sheet = tmp_path / "sheet.html"
    asked = ["compare", *names, *PINS, "--max-loss", "0.2"]
    assert run([*asked, "--sheet", str(sheet), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    fields = {"name", "iteration_time_s", "days", "usd", "power_w", "worst_failure", "plan"}
    assert all(set(one) >= fields for one in found["designs"])
    assert [one["name"] for one in found["designs"]] == ["at-1", "at-8"]
    decision = found["decision"]
    assert decision["max_loss"] == 0.2
    assert f"<h1>{html.escape(decision['title'])}</h1>" in sheet.read_text(encoding="utf-8")
    again = "Again: nest-studio compare "
    assert again in sheet.read_text(encoding="utf-8")
    (tmp_path / "other.html").write_text("<p>no sheet</p>")
    assert run(["compare", str(tmp_path / "other.html")]) == 2
    assert capsys.readouterr().err.startswith("sheet must be one that Compare saved")
    assert run(asked) == 0
    assert decision["rule"] in capsys.readouterr().out
    for wrong, sentence in (
        (["--max-loss", "2"], "max-loss must be from 0 to 1"),
        (["--hours", "-1"], "hours must be from 0 to 1"),
    ):
        assert run(["compare", *names, *PINS, "--no-lost-switch", *wrong]) == 2
        assert capsys.readouterr().err.startswith(sentence)


def test_a_sheet_that_holds_its_question_makes_itself_again(capsys, tmp_path):
    document, _ = scenario_document("llama2-7b-64-h100")
    entries = [
        {"name": name, "document": document, "overrides": {**FEW, RATIO: [ratio]}}
        for name, ratio in (("1:1", 1.0), ("8:1", 8.0))
    ]
    prices = {"ownership.device_usd.typical": 30_000.0}
    assumed = {"hours": 0.7, "max_loss": 0.3, "tokens": 1e12}
    question = {"entries": entries, "prices": prices, "assumed": assumed}
    scenarios = [(one["name"], Scenario(document, one["overrides"])) for one in entries]
    decision = compare(scenarios, prices=prices, assumed=assumed).decision()
    first, again = tmp_path / "first.html", tmp_path / "again.html"
    first.write_text(decision_sheet(decision, datetime(2026, 1, 2), question=question), "utf-8")
    assert run(["compare", str(first), "--sheet", str(again), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["decision"]
    assert found["best"] == decision.best.name
    assert (found["hours"], found["max_loss"]) == (0.7, 0.3)
    texts = [file.read_text(encoding="utf-8") for file in (first, again)]
    numbers = [re.search("sheet [0-9a-f]{4}<", text)[0] for text in texts]
    assert numbers[0] == numbers[1]
    assert "Again: nest-studio compare decision-sheet.html" in texts[0]


def test_prices_come_from_the_scenario_a_list_and_single_keys(capsys, tmp_path):
    source = Path("presets/scenarios/llama2-7b-64-h100.toml").read_text()
    own = '{ typical = 1.2, kind = "own", date = "now", source = "me" }'
    (tmp_path / "mine.toml").write_text(f'base = "2026"\n[ownership]\npue = {own}\n')
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(f"{source}\n[prices.ownership]\npue = {own}\n")
    energy = [
        next(line["usd"] for line in ask(capsys, *arguments)["lines"] if line["part"] == "energy")
        for arguments in (
            [str(scenario), *PINS],
            ["h100-spine-leaf-64", "--prices", str(tmp_path / "mine.toml")],
            ["h100-spine-leaf-64", "--set", "prices.ownership.pue.typical=1.2"],
            ["h100-spine-leaf-64"],
        )
    ]
    assert energy[0] == energy[1] == energy[2]
    assert energy[3] / energy[0] == pytest.approx(1.58 / 1.2, rel=1e-6)


def test_the_text_has_every_source_and_says_what_has_none(capsys):
    assert run(["bill", "gb200-nvl72-rails"]) == 0
    out, _ = capsys.readouterr()
    assert "without GB200 NVL72, spare GB200 NVL72, storage, staff: no source" in out
    assert "less than half of the bill while an accelerator with its server share costs over" in out
    assert "third-party, 2024-08: public spreadsheet of August 2024" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "prices.switch.0.price_usd.typical=-1"], "prices.switch[0].price_usd.typical "),
        (["--set", "prices.ownership.pue.typical=nan"], "prices.ownership.pue.typical must be a "),
        (["--set", "prices.nic.0.price_eur=1"], "prices.nic[0].price_eur "),
        (["--set", "search.tp=1"], "--set must name a key of the fabric, the prices or the f"),
        (["--compare", "1:1", "--set", "fabric.clos.devices=-1"], "fabric.clos.devices must"),
        (["--set", 'fabric.optics.spine="DAC"'], "optics.spine must reach the 6 m of the longest"),
        (["--compare", "9:1:1"], "--compare must name designs that can be built (fabric must"),
        (["--compare", "1:1,0:1"], "--compare must name designs that can be built (fabric.clos."),
        (["--compare", "torus,torus"], "--compare must name every design once"),
        (
            ["--compare", "scale-up 5"],
            "--compare must name designs that can be built (scale-up size",
        ),
        (["--tokens", "1e9"], "--tokens must be left out for a fabric"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, capsys):
    assert run(["bill", "h100-spine-leaf-64", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(sentence)


def test_the_sheet_says_what_the_command_prints(capsys, tmp_path):
    sheet = tmp_path / "sheet.html"
    asked = ["llama2-7b-64-h100", *PINS, "--compare", "1:1,4:1"]
    found = ask(capsys, *asked, "--sheet", str(sheet))
    text = sheet.read_text(encoding="utf-8")
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    said_as_printed(text, found)
    assert "--compare 1:1,4:1 --sheet FILE.html" in text
    assert run(["bill", *asked, "--sheet", str(tmp_path / "none" / "sheet.html")]) == 2
    assert "--sheet must be a file that can be written" in capsys.readouterr().err


@pytest.mark.check
@pytest.mark.parametrize(
    "name", ["llama3-70b-2048-h100", "llama3.1-405b-16416-gb200", "gpt3-175b-768-a100"]
)
def test_a_sheet_of_the_docs_says_what_the_command_prints(capsys, monkeypatch, root, name):
    folder = root / "docs" / "sheets"
    monkeypatch.chdir(root)
    spec = importlib.util.spec_from_file_location("sheets", root / "benchmarks" / "sheets.py")
    sheets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sheets)
    text = (folder / f"{name}.html").read_text(encoding="utf-8")
    said_as_printed(text, ask(capsys, *sheets.SHEETS[name]))
    pdf = (folder / f"{name}.pdf").read_bytes()
    # For the committee; prices, and how it is accepted, where that leaves no room on the second.
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) in (2, 3)


def said_as_printed(text: str, found: dict[str, Any]) -> None:
    """Every figure of a sheet's table of designs is that of the command's JSON, rounded."""
    table = re.search('<table class="nest-apart">(.*?)</table>', text, re.S)[1]
    cells = [
        [
            html.unescape(cell)
            for cell in re.findall(r"<t[hd][^>]*>(?:<small>.*?</small>)?(.*?)</t[hd]>", row)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", table)
    ]
    head, *rows = cells
    designs = {one["name"]: one for one in found["compared"]}
    assert sorted(head[1:]) == sorted(designs)
    figures = {name: dict(zip(head[1:], row, strict=True)) for name, *row in rows}
    read = {
        "Throughput": lambda one: one["tokens_per_s"] / 1e6,
        "Days": lambda one: one["training"]["days"],
        "Network": lambda one: (
            sum(line["usd"] or 0.0 for line in one["lines"] if line["part"].startswith("network"))
            / 1e6
        ),
        "Bill over": lambda one: one["total_usd"] / 1e6,
        "$ per M": lambda one: one["usd_per_million_tokens"],
        "$ per GPU": lambda one: one["usd_per_gpu_hour"],
    }
    for start, value in read.items():
        (row,) = (row for name, row in figures.items() if name.startswith(start))
        for name, cell in row.items():
            expected = value(designs[name])
            if expected is None:  # what no source prices
                assert cell == "–"
            else:
                assert float(cell.replace(",", "")) == pytest.approx(expected, rel=6e-3)
    for name, one in designs.items():
        worst = one["worst_failure"]
        if worst is not None:
            lost = figures["Worst single failure"][name].removeprefix(worst["what"]).strip()
            assert lost == "stops" or float(lost[:-2].replace("−", "-")) == pytest.approx(
                -100 * worst["lost"], abs=0.06
            )
