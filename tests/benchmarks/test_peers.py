"""The page of other planners: what is written from the rows."""

import json
from dataclasses import replace
from pathlib import Path

from benchmarks import peers
from benchmarks.peers import PeerRow, growth, in_words, priced, ratios

DATA = Path(__file__).parent.parent / "data" / "galvatron"


def row(tool: str, what: str, cpu_s: float) -> PeerRow:
    return PeerRow(tool, what, 64, cpu_s, cpu_s, None, "", None, "")


def test_a_ratio_is_met_or_missed_and_absent_without_both():
    rows = [
        row("hetu-galvatron", "uniform", 60.0),
        row("ours", "search, uniform stages", 1.0),
        row("ours", "whole command, uniform stages", 10.0),
        row("ours", "search, mixed stages", 1.0),
    ]
    met, missed = ratios(rows)
    assert "1/60 of its processor time; wanted 1/60, met" in met
    assert "1/6 of its processor time; wanted 1/12, missed" in missed


def test_growth_is_told_of_what_ran_on_both():
    small = row("ours", "search, uniform stages", 2.0)
    alone = row("ours", "search, mixed stages", 1.0)
    (line,) = growth([small, alone, replace(small, devices=512, cpu_s=5.0)])
    assert line.endswith("times: ours search, uniform stages 2.5.")


def test_a_strategy_file_in_few_words():
    words = in_words(json.loads((DATA / "layerwise_8_gpus.json").read_text()))
    assert words == (
        "pp 4, 32 micro-batches, tp of 8 layers 2, 24 layers 1, "
        "ZeRO-3 10 of 32 layers, recomputed 0 of 32 layers"
    )


def test_a_plan_without_a_price_has_a_sentence():
    assert priced(8, DATA / "layerwise_8_gpus.json").startswith("galvatron.tp_sizes_enc must be")


def test_the_page_has_every_row(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "PAGE", tmp_path / "peers.md")
    peers.write([row("hetu-galvatron", "uniform", 60.0)])
    text = peers.PAGE.read_text()
    assert "| hetu-galvatron | uniform | 64 | 60 | 60 | – | as above | – | – |" in text
    assert "](limits.md)" in text
