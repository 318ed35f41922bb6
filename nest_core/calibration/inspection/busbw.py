"""The bus bandwidth that nccl-tests measured, beside what a fabric predicts."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.calibration.collectives.nccl_log import NcclRun
from nest_core.costs.software import software_of
from nest_core.documents.units import humanise, humanise_bytes, plural
from nest_core.fabric import Fabric
from nest_core.hardware import Accelerator
from nest_core.hardware.collectives import OPS
from nest_core.network import collapse
from nest_core.network.collective import KINDS, bus_factor, collective, member_groups

__all__ = ["MAX_DEVICES", "BusComparison", "compare"]

MAX_DEVICES = 2048
"""Of a drawn fabric, up to which its links are counted to predict a collective: seconds."""


@dataclass(frozen=True, slots=True)
class BusComparison:
    """The largest message of a log; figures are None where nothing is predicted.

    Parameters
    ----------
    log, sentence : str
    measured_busbw_Bps, predicted_busbw_Bps : float or None
    """

    log: str
    sentence: str
    measured_busbw_Bps: float | None = None
    predicted_busbw_Bps: float | None = None


def compare(run: NcclRun, fabric: Fabric, per_node: int, device: Accelerator) -> BusComparison:
    """Compare the largest message with what as many of the fabric's first nodes should reach.

    Parameters
    ----------
    per_node : int
        Devices of one of the fabric's nodes.
    """
    op, devices, nodes = run.op, len(run.ranks), len(run.hosts)
    per_host = devices // nodes
    if op not in OPS:
        return _silent(run, f"it is of {op}" if op else "it does not say of which collective it is")
    if devices < 2 or set(run.hosts.values()) != {per_host}:
        return _silent(run, "its ranks are not spread evenly over two devices or more")
    if nodes > 1 and per_host not in (1, per_node):
        return _silent(run, f"it ran on {per_host} of the {per_node} devices of its nodes")
    if fabric.kind == "graph" and fabric.devices > MAX_DEVICES:
        return _silent(run, f"the fabric is a drawing of over {MAX_DEVICES:,} devices")
    size, seconds = max(run.rows)
    stride = per_node if nodes > 1 and per_host == 1 else 1
    network = collapse(fabric)
    software = software_of(device)
    groups = member_groups(network.devices, devices, stride=stride)
    protocols = software.of_groups(network, KINDS[op][0], groups)
    predicted = collective(
        network, op, size, devices, stride=stride, protocols=protocols
    ).bus_bandwidth_Bps
    measured = bus_factor(op, devices) * size / seconds
    sentence = (
        f"{op.replace('_', '-')} of {humanise_bytes(size)} over {plural(devices, 'device')} of"
        f" {plural(nodes, 'node')} ran at {humanise(measured, 'B/s')} of bus bandwidth in"
        f" {run.name}, the scenario's fabric predicts {humanise(predicted, 'B/s')}"
        f" ({predicted / measured - 1:+z.0%})."
    )
    return BusComparison(run.name, sentence, measured, predicted)


def _silent(run: NcclRun, why: str) -> BusComparison:
    return BusComparison(run.name, f"{run.name} is compared with no prediction: {why}.")
