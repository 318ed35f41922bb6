"""Tables and logs: what is read, what is skipped, what is refused and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest_core.calibration.collectives.nccl_log import LogFacts, is_log, read_log
from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.hardware.collectives.measurements import MAX_ROWS, half, read_table

LOG = Path(__file__).resolve().parents[2] / "data" / "calibration" / "a100_all_reduce.txt"
RUNS = "id,accelerator,collective,gpus,nodes,size_bytes,time_us,nccl_algo,inter_link\n"
NCCL = "device,op,num_gpus,total_bytes,time_us\n"
ROW = "1024 256 float sum -1 {} 0.1 0.1 0 9.9 0.1 0.1 0\n"
FACTS = LogFacts(op="all_reduce", accelerator="A100", devices=8)


def test_both_tables_are_read_in_si():
    (row,), skipped = read_table(NCCL + "NVIDIA H100,alltoall,8,1024,7.5\n", "t")
    assert (row.op, row.devices, row.nodes, row.bytes) == ("all_to_all", 8, 1, 1024.0)
    assert row.seconds == pytest.approx(7.5e-6)
    assert not skipped
    text = RUNS + "A-1,A100,all_reduce,16,2,1e6,100,Ring (NVLS off),EFA 400 Gb/s per node\n"
    (row,), _ = read_table(text, "t")
    assert (row.nodes, row.in_network) == (2, False)
    assert row.network_Bps == pytest.approx(6.25e9)
    (row,), _ = read_table(text.replace("400 Gb/s per node", "400 Gb/s"), "t")
    assert row.network_Bps == pytest.approx(50e9)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("D-1,H800,moe_dispatch,8,1,,,,", "moe_dispatch is not one of"),
        ("D-1,H800,all_reduce,8,1,,,,", "states no message size"),
        ("D-1,H800,all_reduce,1,1,8,8,,", "has one device"),
        ("D-1,H800,all_reduce,9,2,8,8,,", "spreads 9 devices unevenly over 2 nodes"),
    ],
)
def test_rows_of_another_kind_are_skipped(line, reason):
    rows, (skipped,) = read_table(RUNS + line + "\n", "t")
    assert not rows
    assert skipped.id == "D-1"
    assert reason in skipped.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the columns"),
        ("a,b\n1,2\n", "must have the columns"),
        ("a,a\n", "must name every column once"),
        ("id,model,iter_time_s\n", "must hold measured collectives"),
        ("gpus,iteration_time_ms\n", "must hold measured collectives"),
        (NCCL + "H100,all_reduce,8,many,1\n", "t row 1 bytes must be a positive number"),
        (NCCL + "H100,all_reduce,8,8,-1\n", "t row 1 time_us must be a positive number"),
        (NCCL + "H100,all_reduce,8,8,nan\n", "time_us must be a positive number"),
        (NCCL + "H100,all_reduce,2.5,8,1\n", "devices must be a whole number"),
        (NCCL + "H100,all_reduce,1e99,8,1\n", "devices must be a whole number"),
        (NCCL + "H100,all_reduce,8,8,1\n" * (MAX_ROWS + 1), "must have at most 10,000 rows"),
        (NCCL + '"' + "x" * 200_000 + '"\n', "must be a CSV file"),
    ],
)
def test_broken_tables_are_refused_in_one_sentence(text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_table(text, "t")
    assert "\n" not in str(caught.value)


def test_halves_do_not_depend_on_the_file():
    text = NCCL + "".join(f"H100,all_reduce,8,{2**k},1\n" for k in range(10, 30))
    rows, _ = read_table(text, "a")
    again, _ = read_table(NCCL + text[len(NCCL) :] * 2, "b")
    assert [half(row, 0) for row in rows] * 2 == [half(row, 0) for row in again]
    assert {half(row, 0) for row in rows} == {0, 1}
    assert [half(row, 1) for row in rows] != [half(row, 0) for row in rows]


def test_a_log_is_read():
    rows = read_log(LOG.read_text(), "log", LogFacts(op="all_reduce"))
    assert len(rows) == 21
    assert {(row.accelerator, row.devices, row.nodes) for row in rows} == {
        ("NVIDIA A100-SXM4-80GB", 8, 1)
    }
    assert rows[-1].bytes == 2.0**29
    assert rows[-1].seconds == pytest.approx(4225.9e-6, rel=1e-4)


def test_hosts_programs_and_prefixes():
    """Two hosts are two nodes; mpirun's and srun's prefixes are taken off."""
    text = LOG.read_text().replace("node-0 device  7", "node-1 device  7")
    text = "# Collective test starting: alltoall_perf\n" + text
    lines = text.splitlines()
    for prefix in ("", "[1,0]<stdout>:", "3: "):
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


def test_logs_and_tables_are_told_apart():
    assert is_log(read_text(LOG))
    assert not is_log(NCCL)
