"""Tables of training runs, written and found."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nest_core.calibration.training import MeasuredRow, read_runs

SUBSET = Path(__file__).resolve().parent / "data" / "fidelity"
TABLES = ("train_measurements.csv", "megatron_a100_multinode.csv", "megatron_a100_singlenode.csv")

MEASURED_COLUMNS = (
    "iter_time_s",
    "tokens_per_s_per_gpu",
    "tflops_per_gpu",
    "mfu_pct",
    "mem_GB_per_gpu",
    "iter_time_basis",
    "iteration_time_ms",
)
"""What came of a run; no prediction reads any of them."""

PLAIN: Mapping[str, str] = {
    "id": "A",
    "source": "here",
    "model": "GPT-7.5B",
    "layers": "36",
    "hidden": "4096",
    "heads": "32.0",
    "kv_heads": "32",
    "ffn_hidden": "16384",
    "gated_mlp": "0.0",
    "vocab": "51200.0",
    "seq_len": "2048",
    "experts": "",
    "topk": "",
    "accelerator": "A100-80GB",
    "gpus": "16",
    "gpus_per_node": "8.0",
    "intra_bw_GBps": "300",
    "inter_bw_GBps_per_gpu": "25",
    "tp": "4",
    "pp": "2",
    "vp_interleave": "1.0",
    "cp": "1.0",
    "ep": "1.0",
    "dp": "2",
    "micro_batch": "4.0",
    "global_batch_seqs": "64.0",
    "precision": "fp16-mixed",
    "recompute": "full",
    "seq_parallel": "0.0",
    "dist_opt_or_zero": "none",
    "iter_time_s": "1.5",
    "tokens_per_s_per_gpu": "",
    "tflops_per_gpu": "",
    "mfu_pct": "",
    "mem_GB_per_gpu": "40.0",
    "notes": "",
    "quality": "A",
    "iter_time_basis": "reported",
    "set": "",
}
"""A row without surprises."""


def as_csv(*rows: Mapping[str, str]) -> str:
    """A table of rows, with the columns of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.fixture(scope="session")
def one() -> Callable[..., MeasuredRow]:
    """``one(cell=text, ...)``: the plain row with other cells, as read."""

    def read(**cells: str) -> MeasuredRow:
        rows, unread = read_runs(as_csv({**PLAIN, **cells}), "t.csv")
        assert not unread, unread
        return rows[0]

    return read


@pytest.fixture(scope="session")
def why() -> Callable[..., str]:
    """``why(cell=text, ...)``: why such a row is not read."""

    def read(**cells: str) -> str:
        rows, unread = read_runs(as_csv({**PLAIN, **cells}), "t.csv")
        assert not rows
        assert unread[0].id == cells.get("id", "A")
        return unread[0].reason

    return read
