"""Logs of nccl-tests: what is read, what is skipped, what is refused and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest_core.calibration.collectives.nccl_log import LogFacts, is_log, read_log
from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.hardware.collectives.measurements import MAX_ROWS

LOG = Path(__file__).resolve().parents[2] / "data" / "calibration" / "a100_all_reduce.txt"
ROW = "1024 256 float sum -1 {} 0.1 0.1 0 9.9 0.1 0.1 0\n"
FACTS = LogFacts(op="all_reduce", accelerator="A100", devices=8)


def test_a_log_is_read():
    rows = read_log(LOG.read_text(), "log", LogFacts(op="all_reduce"))
    assert len(rows) == 21
    assert {(row.accelerator, row.devices, row.nodes) for row in rows} == {
        ("NVIDIA A100-SXM4-80GB", 8, 1)
    }
    assert rows[-1].bytes == 2.0**29
    assert rows[-1].seconds == pytest.approx(4225.9e-6, rel=1e-4)


def test_hosts_programs_and_prefixes():
    """Two hosts are two nodes; prefixes of mpirun, srun -l and pdsh are taken off."""
    text = LOG.read_text().replace("node-0 device  7", "node-1 device  7")
    text = "# Collective test starting: alltoall_perf\n" + text
    lines = text.splitlines()
    for prefix in ("", "[1,0]<stdout>:", "3: ", " 3: ", "gpu-01.cluster: "):
        rows = read_log("\n".join(prefix + line for line in lines), "log")
        assert {(row.op, row.devices, row.nodes) for row in rows} == {("all_to_all", 8, 2)}


@pytest.mark.parametrize(
    "line",
    [
        "1024 256 float sum -1 7.5 0.1 0.1 0 9.9 0.1 0.1 0",
        "1024 256 float sum -1 7.5 0.1 0.1 N/A 9.9 0.1 0.1 N/A",
        "1024 256 float none 7.5 0.1 0.1 0e+00 9.9 0.1 0.1 0e+00",
        "1024 256 float 7.5 0.1 0.1 0 9.9 0.1 0.1 0",
        "1024 256 float sum -1 7.5 0.1 0.1 0",
        "1024 256 float sum 7.5 0.1 0.1 0",
        "1024 256 float sum -1 7.5 0.1 0.1 0 9.9 0.1 0.1 0 2026-10-01 09:00:00",
        "1024 256 float sum -1 7.5 0.1 0.1 0 7 8 8 1.2 9.9 0.1 0.1 0 9 10 10 1.1",
        "1024 256 float sum -1 7.5 0.1 0.1 0 9.9 0.1 0.1 0 Ring Simple 32",
    ],
)
def test_columns_of_older_and_newer_versions(line):
    (row,) = read_log(line, "log", FACTS)
    assert (row.bytes, row.seconds) == (1024.0, pytest.approx(7.5e-6))


def test_a_header_that_leaves_ranks_out_needs_to_be_told_how_many_there_are():
    text = LOG.read_text().replace("#  Rank  3 ", "#  ... ")
    with pytest.raises(InputError, match="must list every rank in its header, but is '7 of 8'"):
        read_log(text, "log", LogFacts(op="all_reduce"))
    assert read_log(text, "log", LogFacts(op="all_reduce", devices=8))[0].devices == 8


@pytest.mark.parametrize(
    ("text", "facts", "message"),
    [
        (ROW.format("1").replace("0.1 0 9", "0.1 3 9"), FACTS, "must have no wrong results"),
        ("node7: Test NCCL failure x.cu:9", FACTS, "must be of a run that ended well"),
        ("", FACTS, "must hold rows of nccl-tests"),
        ("# nThread 1\nhello\n", FACTS, "must hold rows of nccl-tests"),
        (ROW.format("fast"), FACTS, "log line 1 must state a positive time"),
        (ROW.format("0.00"), FACTS, "must state a positive time"),
        (ROW.format("inf"), FACTS, "must state a positive time"),
        ("9" * 400 + ROW.format("1")[4:], FACTS, "must state a positive time"),
        (ROW.format("1") * (MAX_ROWS + 1), FACTS, "must have at most 10,000 rows"),
        ("1024 256 float a b c d e 1 1 1 1 1 1 1 1", FACTS, "must have 7 to 13 columns"),
        (ROW.format("1"), LogFacts(op="all_reduce", devices=8), "give --accelerator"),
        (ROW.format("1"), LogFacts(accelerator="A100", devices=8), "give --op"),
        (ROW.format("1"), LogFacts(accelerator="A100", op="all_reduce"), "give --devices"),
        (ROW.format("1"), LogFacts("reduce", "A100", 8), "op must be one of"),
        ("# broadcast_perf\n" + ROW.format("1"), LogFacts(None, "A100", 8), "op must be one of"),
        (ROW.format("1"), LogFacts("all_reduce", "A100", 8, 3), "spread evenly"),
    ],
)
def test_broken_logs_are_refused_in_one_sentence(text, facts, message):
    with pytest.raises(InputError, match=message) as caught:
        read_log(text, "log", facts)
    assert "\n" not in str(caught.value)


def test_a_table_is_no_log():
    assert is_log(read_text(LOG))
    assert not is_log("device,op,num_gpus,total_bytes,time_us\n")
