"""The model that a row describes, against published sizes."""

from __future__ import annotations

import csv
import re

import pytest
from run_tables import SUBSET, TABLES

from nest_core.calibration.training import read_runs
from nest_core.calibration.training.machines import model_of
from nest_core.documents.errors import InputError


def rows_of(path):
    """Runs of a table, and their raw cells."""
    text = path.read_text()
    cells = {row["id"]: row for row in csv.DictReader(text.splitlines())}
    return [(row.run, cells[row.run.id]) for row in read_runs(text, "t.csv")[0]]


def test_parameters_are_those_that_sources_count():
    """MPT's rows state them; its counts include position embeddings that ALiBi does without."""
    checked = 0
    for run, cells in rows_of(SUBSET / TABLES[0]):
        if stated := re.search(r"params (\d+)", cells["notes"]):
            expected = int(stated[1]) - run.sequence * run.hidden
            assert model_of(run).parameters == pytest.approx(expected, rel=1e-3), run.id
            checked += 1
    assert checked >= 10


def test_names_give_sizes_in_billions():
    """Names such as GPT-18.4B or Qwen3-30B-A3B; cut models (-L4) do not count."""
    checked = set()
    for run, _ in rows_of(SUBSET / TABLES[0]):
        stated = re.search(r"-(\d+(?:\.\d+)?)[Bb](?:-A\d+B)?$", run.model)
        if stated is None or run.accelerator.startswith("TPU") or "BLOOM" in run.model:
            continue  # MaxText names round to powers of two
        billions = float(stated[1])
        if run.fact("attention kind") != "parallel" and billions >= 5:
            found = model_of(run).parameters / 1e9
            assert found == pytest.approx(billions, rel=0.11), run.model
            checked.add(run.model)
    assert len(checked) >= 12


@pytest.mark.parametrize(
    ("cells", "family"),
    [
        ({}, "gpt"),
        ({"model": "unheard-of", "gated_mlp": "1.0"}, "llama"),
        ({"model": "unheard-of", "experts": "8", "topk": "2"}, "mixtral"),
        ({"model": "GPT-BLOOM-182B"}, "bloom"),
        ({"model": "MPT-7b"}, "mpt"),
        ({"model": "X", "notes": "flash attn, ALiBi"}, "mpt"),
        ({"model": "X", "notes": "squared-ReLU"}, "nemotron"),
        ({"model": "Llama3-70B-L12", "gated_mlp": "1"}, "llama"),
    ],
)
def test_families(one, cells, family):
    assert model_of(one(**cells).run).family == family


def test_sizes_come_from_the_row(one):
    model = model_of(one(model="Llama3-70B-L12", layers="12", kv_heads="8", vocab="128256").run)
    assert (model.blocks, model.kv_heads, model.vocabulary, model.hidden) == (12, 8, 128256, 4096)


def test_latent_attention_takes_its_ranks_from_the_preset(one):
    cells = {
        "model": "DeepSeek-V3",
        "layers": "61",
        "hidden": "7168",
        "heads": "128",
        "kv_heads": "128",
        "ffn_hidden": "2048",
        "experts": "256",
        "topk": "8",
        "ep": "2",
        "gated_mlp": "1",
        "vocab": "129280",
        "notes": "MLA; shared experts as published",
    }
    model = model_of(one(**cells).run)
    assert (model.kv_rank, model.q_rank, model.head_dim) == (512, 1536, 128)
    assert model.parameters == pytest.approx(671e9, rel=0.001)
    cut = model_of(one(**{**cells, "layers": "4", "notes": "1 dense + 3 MoE layers, MLA"}).run)
    assert (cut.blocks, cut.dense_blocks) == (4, 1)


def test_a_block_without_a_trace_is_refused(one):
    with pytest.raises(InputError, match="must have attention before the MLP"):
        model_of(one(model="PaLM-540B", notes="parallel layers, MQA, SwiGLU").run)
    with pytest.raises(InputError, match="heads must divide hidden = 4096"):
        model_of(one(heads="30", kv_heads="30").run)
