"""What is printed: the presets hold the shared data's cells and the text's numbers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nest_core.paper.cases import FIGURES
from nest_core.paper.reproduction import printed, printed_rows

COLUMNS = {
    "nest": "nest",
    "manual": "manual",
    "mcmc": "mcmc",
    "alpa_e": "alpa_e",
    "phaze": "phaze",
    "nest_runtime_s": "search_seconds",
}


def cells_of(path: Path) -> dict[tuple[str, tuple[str, int, int]], dict[str, float]]:
    with path.open(newline="") as stream:
        return {
            (row["figure"], (row["model"], int(row["devices"]), int(row["micro_batch"]))): {
                name: float(row[column]) for column, name in COLUMNS.items() if row[column]
            }
            for row in csv.DictReader(stream)
        }


def test_presets_carry_all_printed_cells(shared_data: Path) -> None:
    shared = cells_of(shared_data / "nest_published_relative_throughput.csv")
    held = {
        (figure, key): cell
        for figure in ("figure5", "figure6")
        for key, cell in printed_rows(figure).items()
    }
    assert held == shared


def test_presets_carry_the_cited_cells(root: Path) -> None:
    cited = cells_of(root / "tests" / "data" / "paper" / "printed_cells.csv")
    assert len(cited) == 7
    for (figure, key), cell in cited.items():
        assert printed_rows(figure)[key] == cell


def test_every_printed_cell_is_a_cell_of_its_figure() -> None:
    for name, figure in FIGURES.items():
        assert set(printed_rows(name)) <= {cell.key for cell in figure.cells}


@pytest.mark.parametrize(
    ("figure", "planner", "words"),
    [
        ("figure5", "manual", "{} higher throughput than manual placements, 1.71"),
        ("figure5", "mcmc", "{} higher than MCMC-based search, 2.43"),
        ("figure5", "alpa_e", "{} higher than Alpa-E"),
        ("figure5", "phaze", "{} higher than Phaze. Importantly"),
        ("figure7", "manual", "{} higher throughput than manual placements, 1.40"),
        ("figure7", "mcmc", "{} higher than MCMC-based search, 1.49"),
        ("figure7", "mist", "{} higher than Mist"),
        ("figure7", "phaze", "{} higher than Phaze. These gains"),
    ],
)
def test_averages_are_the_text_s(shared_data: Path, figure: str, planner: str, words: str) -> None:
    text = (shared_data.parent / "paper" / "nest-paper.txt").read_text()
    gain = printed()["average_gains"][figure][planner]
    assert words.format(f"{gain:.2f}") in text


def test_tables_are_the_text_s(shared_data: Path) -> None:
    text = (shared_data.parent / "paper" / "nest-paper.txt").read_text()
    names = {
        "gpt3-35b": "GPT-3 35B",
        "llama3": "Llama3 70B",
        "llama2": "Llama2 7B",
        "bertlarge": "BertLarge",
        "bert": "BertLarge",
        "gpt3": "GPT-3 175B",
    }
    for row in printed()["table4"]:
        line = f"| {names[row['model']]} | {row['mist']:g} | {row['nest']:g} | "
        assert f"{line}{100 * row['reduction']:.1f}% |" in text
    for row in printed()["table6"]["row"]:
        assert f"| {names[row['model']]} | {row['alpa']:g} | {row['nest']:g} |" in text
    devices = " | ".join(str(row["devices"]) for row in printed()["table7"])
    assert f"| Number of Device Used | {devices} | |" in text
    for row in printed()["table2"]:
        for planner in ("manual", "mcmc", "phaze", "nest"):
            plan = ", ".join(str(degree) for degree in row[planner].values())
            assert f"{{{plan}}}" in text
        assert f"{{{row['alpa_e']['p']}, -, -, -}}" in text
    labels = {
        "blocks": "Number of Layers",
        "hidden": "Hidden Dimension",
        "heads": "Number of Heads",
        "ffn": "Intermediate Dimension",
        "sequence": "Sequence Length",
        "experts": "Number of Experts",
    }
    for name in ("table3", "table5"):
        for key, value in printed()[name]["sizes"].items():
            assert f"| {labels[key]} | {value} |" in text


def test_table_7_s_devices_follow_from_its_sharding() -> None:
    for row in printed()["table7"]:
        blocks = row["plan"]["p"] - 1
        replica = row["embedding"]["degree"] + blocks * row["blocks"]["degree"]
        assert replica * row["plan"]["d"] == row["devices"]
