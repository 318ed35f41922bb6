"""Own costs, uncalibrated, against measured Megatron-LM iterations on A100 clusters.

Nothing here is fitted: presets and formulae as they ship. The bounds guard what the README says
about absolute accuracy; a row-by-row target belongs to calibrated costs.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from nest_core.costs import Plan, Point, Problem, price
from nest_core.costs.parse import even_cuts
from nest_core.costs.tables import layer_table, model_flops, state_bytes
from nest_core.network import collapse
from nest_core.scenario import load_scenario
from nest_core.topology import Hierarchical, Tier
from nest_core.workload import Model, Strategy

SUBSET = Path(__file__).parents[1] / "data" / "fidelity" / "megatron_a100_multinode_subset.csv"


def predicted_and_measured(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Seconds per iteration, predicted and measured, row by row."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    predicted = np.array([predict({key: float(row[key]) for key in row}) for row in rows])
    return predicted, np.array([float(row["iteration_time_ms"]) / 1e3 for row in rows])


def predict(row: dict[str, float]) -> float:
    """Price the configuration that was run; the cluster is as its source describes it."""
    hidden, heads, tokens = int(row["hidden"]), int(row["heads"]), int(row["seq_len"])
    model = Model(
        "GPT", int(row["layers"]), hidden, heads, heads, hidden // heads, 4 * hidden, 51200,
        positions=tokens, mlp="gelu", norm="layernorm", bias=True, dropout=True, tied=True,
    )  # fmt: skip
    accelerator = load_scenario("gpt3-175b-512-a100").accelerator
    node = Tier("node", 8, 150e9, 5e-6)
    fabric = Hierarchical("A100", (node, Tier("net", int(row["gpus"]) // 8, 100e9, 1e-5, "child")))
    problem = Problem(
        network=collapse(fabric),
        table=lambda tp, sp, micro: layer_table(
            model, Strategy(tp, sp, micro, tokens, 2.0, "unfused"), accelerator, "fp16"
        ),
        batch=int(row["global_batch"]),
        tokens=tokens,
        memory_bytes=accelerator.memory_bytes,
        reserved_bytes=accelerator.reserved_bytes,
        state=state_bytes("fp16", "adam"),
        update_Bps=accelerator.memory_bandwidth_Bps * accelerator.memory_efficiency,
        model_flops=model_flops(model, tokens),
        peak_flops=accelerator.peak("fp16"),
    )
    pp = int(row["pp"])
    point = Point(
        int(row["tp"]), False, int(row["dp"]), pp, int(row["micro_batch"]), 0,
        ("tp", "cp", "dp", "pp"),
    )  # fmt: skip
    plan = Plan(point, even_cuts(problem.layers, pp), ("full",) * pp)
    return price(problem, plan).iteration_s


def check(predicted: np.ndarray, measured: np.ndarray) -> None:
    """Rank right, never far too slow, and optimistic by about an eighth."""
    error = predicted / measured - 1
    assert spearmanr(predicted, measured).statistic > 0.95
    assert abs(error).mean() < 0.15
    assert -0.15 < error.mean() < 0.0
    assert error.max() < 0.05


def test_megatron_subset_in_the_repository() -> None:
    """The rows that every clone has."""
    check(*predicted_and_measured(SUBSET))


def test_megatron_all_rows(shared_data: Path) -> None:
    """All rows of the source; the README quotes these figures."""
    predicted, measured = predicted_and_measured(shared_data / "megatron_a100_multinode.csv")
    check(predicted, measured)
    assert abs(predicted / measured - 1).mean() == pytest.approx(0.130, abs=0.001)
