"""What ``nvidia-smi topo -m`` prints of one host: how GPUs and NICs hang together.

A matrix: a header of names, a row for each of them with one code per name and then the affinity
of its processor, a legend, and one that says which adapter a NIC is; older drivers call the
columns as the adapters. ``topo -mp`` prints the same without NVLinks. The program is closed; its
own legend says what the codes mean, from near to far: X itself, NV# so many bonded NVLinks, PIX
one PCIe bridge, PXB several, PHB a host bridge, NODE those of one NUMA node, SYS beyond it.
"""

import re
from dataclasses import dataclass

from networkx.utils import UnionFind

from nest_core.interop.formats.values import Source

__all__ = ["MAX_NVLINKS", "NodeTopology", "is_nvidia_topo", "read_nvidia_topo"]

CODES = ("X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS")
"""From near to far."""

MAX_NAMES = 512
MAX_NVLINKS = 18
"""Of one GPU (NVIDIA's data sheets, V100 to GB300)."""

# The header is underlined even where it is piped into a file.
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_HEADER = re.compile(r"(?m)^[ \t]*GPU0[ \t]+(?:GPU1\b|[^\n]*\bCPU Affinity)")
_GPU = re.compile(r"GPU\d{1,6}")
_CODE = re.compile(r"X|NV\d{1,4}|PIX|PXB|PHB|NODE|SYS")
_ADAPTER = re.compile(r"\s+(NIC\d{1,6}): (\S+)\s*$")


@dataclass(frozen=True, slots=True)
class NodeTopology:
    """One host.

    Parameters
    ----------
    nvlinks : tuple of tuple of int
        NVLinks between each two GPUs, as bonded; 0: none.
    adapters : tuple of str
        Of every NIC; empty where the legend names none.
    distances : tuple of tuple of int, shape (GPUs, NICs)
        Place in `CODES` of what lies between a GPU and a NIC.
    """

    nvlinks: tuple[tuple[int, ...], ...]
    adapters: tuple[str, ...]
    distances: tuple[tuple[int, ...], ...]

    @property
    def gpus(self) -> int:
        """Return GPUs of the host."""
        return len(self.nvlinks)

    @property
    def nics(self) -> int:
        """Return NICs that the host's driver knows, on any network."""
        return len(self.adapters)

    @property
    def is_direct(self) -> bool:
        """Return whether NVLinks lead to other GPUs and not to a switch: all fit on one GPU."""
        return max(map(sum, self.nvlinks)) <= MAX_NVLINKS

    @property
    def links(self) -> tuple[int, ...]:
        """Return NVLinks of every GPU."""
        return tuple(map(sum if self.is_direct else max, self.nvlinks))

    @property
    def islands(self) -> list[list[int]]:
        """Return GPUs that NVLinks join, those of the first GPU first."""
        groups = UnionFind(range(self.gpus))
        for gpu, row in enumerate(self.nvlinks):
            groups.union(gpu, *(other for other, links in enumerate(row) if links))
        return sorted(map(sorted, groups.to_sets()))


def is_nvidia_topo(text: str) -> bool:
    """Return whether a text holds the header of the matrix.

    Examples
    --------
    >>> is_nvidia_topo("\\tGPU0\\tGPU1\\tCPU Affinity\\tNUMA Affinity\\n"), is_nvidia_topo("GPU0")
    (True, False)
    """
    return bool(_HEADER.search(_STYLE.sub("", text)))


def read_nvidia_topo(source: Source) -> NodeTopology:
    """Return the host of the first matrix in a text.

    Raises
    ------
    InputError
        If rows are missing, too short or contradict one another.
    """
    names: list[str] = []
    rows: dict[str, list[str]] = {}
    adapters: dict[str, str] = {}
    listed = False
    for number, line in enumerate(_STYLE.sub("", source.text).splitlines(), start=1):
        words = line.split()
        listed |= line.strip() == "NIC Legend:"
        if not names and _HEADER.match(line):
            names = line.partition("CPU Affinity")[0].split()
            source.require(
                len(set(names)) == len(names) <= MAX_NAMES,
                number,
                f"must name at most {MAX_NAMES} GPUs and NICs, each once",
                f"{len(names)}",
                "save its output unchanged",
            )
        elif words and words[0] in names and words[0] not in rows:
            rows[words[0]] = codes = words[1 : len(names) + 1]
            source.require(
                len(codes) >= len(names) and all(map(_CODE.fullmatch, codes)),
                number,
                f"must have {len(names)} codes such as NV18, PIX or SYS",
                " ".join(words),
                "save the whole output of nvidia-smi topo -m",
            )
        elif match := _ADAPTER.fullmatch(line):
            adapters.setdefault(match[1], match[2])
    _check(source, names, rows)
    nics = [name for name in names if not _GPU.fullmatch(name)]
    source.require(
        not listed or adapters.keys() >= set(nics),
        "NIC Legend",
        "must name every NIC",
        f"{len(adapters)} of {len(nics)}",
        "save the whole output of nvidia-smi topo -m",
    )
    gpus = [place for place, name in enumerate(names) if _GPU.fullmatch(name)]
    ports = [place for place, name in enumerate(names) if not _GPU.fullmatch(name)]
    cells = [rows[names[gpu]] for gpu in gpus]
    return NodeTopology(
        tuple(
            tuple(int(row[gpu][2:]) if row[gpu].startswith("NV") else 0 for gpu in gpus)
            for row in cells
        ),
        tuple(adapters.get(name, "" if name.startswith("NIC") else name) for name in nics),
        tuple(
            tuple(CODES.index(row[port].rstrip("0123456789")) for port in ports) for row in cells
        ),
    )


def _check(source: Source, names: list[str], rows: dict[str, list[str]]) -> None:
    """Refuse a matrix that lacks rows, or is not the same from both sides."""
    source.require(
        names, "", "must have a header of GPUs", "none", "save the output of nvidia-smi topo -m"
    )
    for number, name in enumerate(names):
        source.require(
            name in rows,
            "",
            "must have a row for every GPU and NIC of its header",
            f"none for {name}",
            "save the whole output of nvidia-smi topo -m",
        )
        for place, other in enumerate(names[:number]):
            source.require(
                rows[name][place] == rows[other][number],
                "",
                f"must say the same of {other} and {name} in both rows",
                f"{rows[other][number]} and {rows[name][place]}",
                "save its output unchanged",
            )
        source.require(
            rows[name][number] == "X",
            name,
            "must have X on its diagonal",
            rows[name][number],
            "save its output unchanged",
        )
