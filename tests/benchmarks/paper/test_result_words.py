"""Paragraphs of what is stored of the paper quote the numbers of its rows."""

from __future__ import annotations

import copy
from typing import Any

from benchmarks.paper.iterations import figure2, figure2_paragraph, figure10, figure10_paragraph
from benchmarks.paper.layer_memory import table6, table6_paragraph
from benchmarks.paper.planners import (
    table1,
    table1_paragraph,
    table2,
    table2_paragraph,
    table4,
    table4_paragraph,
)
from benchmarks.paper.scaled_models import cluster_words, scaled_words, table3, table5
from benchmarks.paper.zero_ablation import table7, table7_paragraph

Rows = list[dict[str, Any]]


def test_table_7_published() -> None:
    rows = copy.deepcopy(list(table7("published").rows))
    text = " ".join(table7_paragraph("published", rows))
    assert "agree on ZeRO of the embedding, ZeRO of the other layers, plan and devices" in text
    assert f"takes {rows[0]['fewest_devices_per_replica']} devices instead of 641" in text
    rows[0]["ours"]["blocks"] = {"zero": 1, "degree": 2}
    rows[0]["needed_without_zero_bytes"] = 1.0
    text = " ".join(table7_paragraph("published", rows))
    assert "agree on ZeRO of the embedding, plan and devices used" in text
    assert "Does not hold: a pipeline without ZeRO needs" in text


def test_table_7_own() -> None:
    rows = copy.deepcopy(list(table7("own").rows))
    before = table7_paragraph("own", rows)
    for row in rows:
        if row["model"] == "llama3":
            row |= {"feasible": False, "needed_bytes": 5e10, "samples_per_s": None}
    after = table7_paragraph("own", rows)
    assert "Not even together do they fit: the leanest plan needs 46.6 GiB" in " ".join(after)
    assert [s for s in before if "BERT" in s] == [s for s in after if "BERT" in s]


def test_table_2() -> None:
    rows = copy.deepcopy(list(table2("published").rows))
    assert (
        "for Llama 2 7B, Llama 3 70B, BERT-large and GPT-3 175B of 5"
        in table2_paragraph("published", rows)[0]
    )
    rows[0]["ours"]["p"] = 9
    text = table2_paragraph("published", rows)
    assert "for Llama 3 70B, BERT-large and GPT-3 175B of 5" in text[0]
    assert "Differs for Llama 2 7B: printed p 8, d 64, t 1, ours p 9, d 64, t 1." in text
    assert "Recomputation: ours is as printed for 5 of 5 models." in text
    rows[0]["recomputation"]["ours"] = False
    text = table2_paragraph("published", rows)
    assert "Recomputation: ours is as printed for 4 of 5 models; not for Llama 2 7B." in text


def test_table_4() -> None:
    rows = copy.deepcopy(list(table4("published").rows))
    assert "Their mean is 49.1 %" in table4_paragraph("published", rows)[0]
    for row in rows:
        row["computed_reduction"] = 0.1
    assert "is 10 %, below the text's 30 %" in table4_paragraph("published", rows)[0]


def test_table_6() -> None:
    rows = copy.deepcopy(list(table6("published").rows))
    assert "farthest is Llama 2 7B, 17.3 % below Alpa's" in table6_paragraph("published", rows)[0]
    rows[0]["nest_difference"] = 0.4
    assert "farthest is GPT-3 175B, 40 % above Alpa's" in table6_paragraph("published", rows)[0]


def test_figure_2() -> None:
    found = figure2("own")
    rows, uniform = copy.deepcopy(list(found.rows)), copy.deepcopy(list(found.tables[1].rows))
    next(row for row in rows if row["plan"])["communication_share"] = 0.75
    assert "to 75 % of an iteration" in figure2_paragraph("own", rows, uniform)[0]
    text = " ".join(figure2_paragraph("own", rows, uniform))
    assert "Only with recomputation fits GPT-3 175B at tp 2 and Llama 3 70B at tp 1." in text
    pair = [row for row in rows if (row["model"], row["tp"]) == ("mixtral", 8)]
    pair[1]["iteration_time_s"] = 3 * pair[0]["iteration_time_s"]
    for entry in uniform:
        entry["slower"] = 1.0
    text = " ".join(figure2_paragraph("own", rows, uniform))
    assert "to 3.00 times the iteration without, in the 9 pairs" in text
    assert "is the best one here too" in text


def test_figure_10() -> None:
    rows = copy.deepcopy(list(figure10("own").rows))
    assert figure10_paragraph("own", rows)[0].startswith("Agrees: 8 of 8 iterations are within")
    rows[3]["difference"] = -0.2
    text = figure10_paragraph("own", rows)[0]
    assert text.startswith("Differs: 7 of 8")
    assert "is −20 %, at batch 4 on 4 devices" in text


def test_table_1() -> None:
    rows = copy.deepcopy(list(table1("own").rows))
    assert "printed for NEST 7 are axes" in table1_paragraph(rows)[0]
    rows[0]["ours"] = "data, pipeline; schedules 1f1b"
    assert "printed for NEST 2 are axes" in table1_paragraph(rows)[0]


def test_tables_3_and_5() -> None:
    rows = copy.deepcopy(list(table3("own").rows))
    assert scaled_words(rows)[0].startswith("5 of 5 sizes")
    rows[0]["ours"] += 1
    rows[-1]["ours"] = 2 * rows[-1]["published"]
    assert scaled_words(rows)[0].startswith("4 of 5 sizes")
    assert "100 % above the printed" in scaled_words(rows)[0]
    clusters = copy.deepcopy(list(table5("own").tables[1].rows))
    for row, ratio in zip(clusters, (0.9, 2.0), strict=True):
        row["ours_over_alpa_e"] = ratio
    text = " ".join(cluster_words("own", clusters))
    assert "reaches 0.90 on 8 and 2.00 on 16 times" in text
    assert "Agrees on 8 devices: ours is behind Alpa-E" in text
    assert "Differs on 16 devices" not in text
