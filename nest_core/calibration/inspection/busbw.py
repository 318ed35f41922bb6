"""The bus bandwidth that nccl-tests measured, beside what a fabric predicts."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.calibration.collectives.nccl_log import LogFacts, log_op, read_log
from nest_core.calibration.inspection.logs import NcclLog
from nest_core.costs.software import software_of
from nest_core.documents.units import humanise, humanise_bytes, plural
from nest_core.fabric import Fabric
from nest_core.hardware import Accelerator
from nest_core.hardware.collectives import OPS
from nest_core.network import collapse
from nest_core.network.collective import KINDS, bus_factor, collective, member_groups

__all__ = ["MOST_DEVICES", "Compared", "compare"]

MOST_DEVICES = 2048
"""Of a drawn fabric, up to which its links are counted to predict a collective: seconds."""


@dataclass(frozen=True, slots=True)
class Compared:
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


def compare(log: NcclLog, fabric: Fabric, per_node: int, device: Accelerator) -> Compared:
    """A log's largest message on as many of the fabric's first nodes.

    Parameters
    ----------
    per_node : int
        Devices of one of the fabric's nodes.
    """
    op, devices, nodes = log_op(log.text, log.name), log.hosts.total(), len(log.hosts)
    ran = devices // nodes
    if op not in OPS:
        return _silent(log, f"it is of {op}" if op else "it does not say of which collective it is")
    if devices < 2 or set(log.hosts.values()) != {ran}:
        return _silent(log, "its ranks are not spread evenly over two devices or more")
    if nodes > 1 and ran not in (1, per_node):
        return _silent(log, f"it ran on {ran} of the {per_node} devices of its nodes")
    if fabric.kind == "graph" and fabric.devices > MOST_DEVICES:
        return _silent(log, f"the fabric is a drawing of over {MOST_DEVICES:,} devices")
    row = max(read_log(log.text, log.name, LogFacts(op)), key=lambda row: row.bytes)
    stride = per_node if nodes > 1 and ran == 1 else 1
    network = collapse(fabric)
    software = software_of(device)
    groups = member_groups(network.devices, devices, stride=stride)
    protocols = software.of_groups(network, KINDS[op][0], groups)
    found = collective(network, op, row.bytes, devices, stride=stride, protocols=protocols)
    measured = bus_factor(op, devices) * row.bytes / row.seconds
    off = found.bus_bandwidth_Bps / measured - 1
    sentence = (
        f"{op.replace('_', '-')} of {humanise_bytes(row.bytes)} over {plural(devices, 'device')} of"
        f" {plural(nodes, 'node')} ran at {humanise(measured, 'B/s')} of bus bandwidth in"
        f" {log.name}, the scenario's fabric predicts {humanise(found.bus_bandwidth_Bps, 'B/s')}"
        f" ({off:+z.0%})."
    )
    return Compared(log.name, sentence, measured, found.bus_bandwidth_Bps)


def _silent(log: NcclLog, why: str) -> Compared:
    return Compared(log.name, f"{log.name} is compared with no prediction: {why}.")
