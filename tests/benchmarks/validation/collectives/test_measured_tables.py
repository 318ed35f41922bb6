"""Tables of measured collectives: what is read, what is skipped, what is refused."""

from __future__ import annotations

import pytest

from benchmarks.validation.collectives.tables import half, read_table
from nest_core.documents.errors import InputError
from nest_core.hardware.collectives.measurements import MAX_ROWS

RUNS = "id,accelerator,collective,gpus,nodes,size_bytes,time_us,nccl_algo,inter_link\n"
NCCL = "device,op,num_gpus,total_bytes,time_us\n"


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
