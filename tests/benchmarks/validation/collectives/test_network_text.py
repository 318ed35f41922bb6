"""The words of a network, form by form, through the table that they stand in."""

from __future__ import annotations

import pytest

from benchmarks.validation.collectives.tables import read_table

COLUMNS = "id,accelerator,collective,gpus,nodes,size_bytes,time_us,nccl_algo,inter_link\n"

STATED = [
    # a rate alone is every device's own port's
    ("CX7 50 GB/s", 50.0),
    ("CX7 400 Gb/s", 50.0),
    ("400Gbps", 50.0),
    ("400 gbps RoCE", 50.0),
    ("0.4 Tb/s", 50.0),
    ("0.4 Tbit/s", 50.0),
    ("50 GByte/s", 50.0),
    ("50 GBps", 50.0),
    ("100GbE InfiniBand", 12.5),
    ("100 GBE", 12.5),
    ("25000 MB/s", 25.0),
    # per node, shared by eight; per device, not
    ("EFA 400 Gb/s per node (6.25 GB/s/GPU)", 6.25),
    ("EFA 400 Gb/s per node", 6.25),
    ("GPUDirect-TCPXO 1600 Gb/s per node class", 25.0),
    ("1600 Gb/s RoCE per host", 25.0),
    ("400 Gb/s per GPU", 50.0),
    ("50 GB/s/device", 50.0),
    # counted ports are the node's
    ("8x ConnectX-7 IB NDR 400Gb/s", 50.0),
    ("4x ConnectX-7 IB NDR 400 Gb/s", 25.0),
    ("Omni-Path 4x100Gb/node", 6.25),
    ("8 x 50 GB/s", 50.0),
    ("8×400 Gb/s", 50.0),
    ("2x 400 Gb/s per GPU", 100.0),
    ("200 Gb/s x 4 per node", 12.5),
    ("200 Gb/s HDR x4", 12.5),
    ("4 NICs of 200 Gb/s", 12.5),
    ("8 ConnectX-7 NICs", 0.0),
    ("200 Gb/s per 2 GPUs", 12.5),
    ("per-GPU 400 Gb/s", 50.0),
    ("1,600 Gb/s per node", 25.0),
    ("400,000 Mb/s", 50.0),
    # generations of InfiniBand are rates, names of adapters are none
    ("InfiniBand NDR", 50.0),
    ("8x HDR", 25.0),
    ("4x HDR100", 6.25),
    ("ConnectX-7", 0.0),
    ("EFA", 0.0),
    ("a3-megagpu-8g", 0.0),
    ("", 0.0),
    # several networks of which one is the devices'
    ("Storage+Management: 1x BlueField 2 DPU 100Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", 50.0),
]  # fmt: skip

UNKNOWN = [
    ("50 gb/s", "bits or bytes"),
    ("400 GB/S", "bits or bytes"),
    ("400 GBPS", "bits or bytes"),
    ("8x ConnectX-7 400Gb/s + 200Gb/s Ethernet", "rates that differ"),
    ("400 Gb/s per node (400 Gb/s per GPU)", "rates that differ"),
    ("200 or 400 Gb/s 100 Gb/s", "several network rates"),
    ("HDR and NDR", "several network rates"),
    ("2x 8x 400 Gb/s", "twice"),
    ("8x 400 Gb/s x 2", "twice"),
    ("8x400G", "unit that is not read"),
    ("800G OSFP", "unit that is not read"),
    ("46.6 GiB/s", "unit that is not read"),
    ("400 Gib/s", "unit that is not read"),
    ("50e9 B/s", "unit that is not read"),
    ("50 gigabytes per second", "unit that is not read"),
    ("100 GB/s bidirectional", "both directions"),
    ("200 Gb/s each, 4 NICs", "apart from their rate"),
]


def read(text):
    row = f'A-1,H100,all_reduce,16,2,1e6,100,,"{text}"\n'
    return read_table(COLUMNS + row, "t")


@pytest.mark.parametrize(("text", "rate"), STATED)
def test_what_is_stated_is_read(text, rate):
    (row,), skipped = read(text)
    assert not skipped
    assert row.network_Bps == pytest.approx(rate * 1e9)


@pytest.mark.parametrize(("text", "reason"), UNKNOWN)
def test_what_no_rule_reads_is_skipped_with_its_reason(text, reason):
    rows, (skipped,) = read(text)
    assert not rows
    assert skipped.id == "A-1"
    assert reason in skipped.reason
