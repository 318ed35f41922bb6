"""Measured collectives: one row of a table or of a log.

A message is counted as nccl-tests counts it: for all-reduce and reduce-scatter the bytes of a
rank's input, for all-gather those of a rank's output, for all-to-all all bytes that a rank holds
for everybody. Seconds and bytes.
"""

from dataclasses import dataclass

__all__ = ["MAX_ROWS", "OPS", "Measurement", "op_name"]

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
"""The collectives of the model, in the order of every table here."""

MAX_ROWS = 10_000
_SPELLED = {"alltoall": "all_to_all", "allreduce": "all_reduce", "allgather": "all_gather"}
_SPELLED |= {"reducescatter": "reduce_scatter"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured collective.

    Parameters
    ----------
    id : str
    op : str
        One of `OPS`.
    accelerator : str
        As the source writes it: ``NVIDIA H100 80GB HBM3``.
    devices, nodes : int
        All devices, and the nodes that they are spread over evenly.
    bytes, seconds : float
    in_network : bool
        False where the run had in-network reduction (NVLS) switched off.
    network : str
        The link between nodes, as the source writes it; empty on one node.
    network_Bps : float
        Its rate per device and direction; 0 where the source does not say.
    system : str
        Machine and software that were measured: rows of one system form a sweep.
    """

    id: str
    op: str
    accelerator: str
    devices: int
    nodes: int
    bytes: float
    seconds: float
    in_network: bool = True
    network: str = ""
    network_Bps: float = 0.0
    system: str = ""


def op_name(text: str) -> str | None:
    """Return a collective as this project spells it; None for anything else.

    Examples
    --------
    >>> op_name("AllReduce"), op_name("alltoall"), op_name("moe_dispatch")
    ('all_reduce', 'all_to_all', None)
    """
    name = text.strip().lower().replace("-", "_")
    name = _SPELLED.get(name.replace("_", ""), name)
    return name if name in OPS else None
