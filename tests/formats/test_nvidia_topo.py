"""`nvidia-smi topo -m`: its matrix as drivers print it."""

from __future__ import annotations

import pytest

from nest_core.documents.errors import InputError
from nest_core.interop.formats import Assumed
from nest_core.interop.formats.nvidia_topo import CODES, is_nvidia_topo, read_nvidia_topo
from nest_core.interop.formats.values import Source

# The rows of the grammar: two tabs after NUMA Affinity, none of the tail for NICs, underlined head.
TEXT = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\tNODE\tSYS\t0-47,96-143\t0\t\tN/A
GPU1\tNV18\t X \tNODE\tPXB\tSYS\t0\t\tN/A
NIC0\tPIX\tNODE\t X \tNODE\tSYS\t\t\t\t
NIC1\tNODE\tPXB\tNODE\t X \tSYS\t\t\t\t
NIC2\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_3
  NIC2: mlx5_bond_0
"""


def read(text):
    return read_nvidia_topo(Source(text, "topo.txt", Assumed()))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\x1b[4m", "").replace("\x1b[0m", ""),
        TEXT.replace("\t", "    "),
        TEXT.replace("\tGPU NUMA ID", "").replace("\n", "\r\n"),
        "$ nvidia-smi topo -m\n" + TEXT,
    ],
)
def test_the_matrix_is_read_whatever_stands_around_it(text):
    assert is_nvidia_topo(text)
    node = read(text)
    assert (node.gpus, node.nics) == (2, 3)
    assert node.nvlinks == ((0, 18), (18, 0))
    assert node.adapters == ("mlx5_0", "mlx5_3", "mlx5_bond_0")
    named = [[CODES[far] for far in row] for row in node.distances]
    assert named == [["PIX", "NODE", "SYS"], ["NODE", "PXB", "SYS"]]


def test_older_drivers_name_no_adapters():
    node = read(TEXT[: TEXT.index("NIC Legend")])
    assert node.adapters == ("", "", "")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("GPU1\tNV18\t X ", "GPU1\tNV12\t X ", "must say the same of GPU0 and GPU1 in both rows"),
        ("\n  NIC2: mlx5_bond_0", "", "NIC Legend must name every NIC, but is '2 of 3'"),
        ("\tPXB\tSYS\t0\t\tN/A", "", "line 3 must have 5 codes such as NV18, PIX or SYS"),
        ("NODE\tPXB\tSYS", "NODE\tPX\tSYS", "line 3 must have 5 codes"),
        ("GPU0\t X ", "GPU0\tPIX", "GPU0 must have X on its diagonal"),
        ("\nNIC1\t", "\n\t", "must have a row for every GPU and NIC of its header"),
        ("\tGPU1\tNIC0", "\tGPU1\tGPU1", "each once"),
        ("GPU0\tGPU1", "A\tB", "must have a header of GPUs"),
    ],
)
def test_what_is_cut_or_contradicts_itself_is_one_sentence(old, new, sentence):
    assert old in TEXT
    with pytest.raises(InputError) as error:
        read(TEXT.replace(old, new, 1))
    assert sentence in str(error.value)
