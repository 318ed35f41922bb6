"""The one price of a message on NCCL's measured rows: as good as the curves that were fitted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.validation.collectives.training import UNSEEN
from benchmarks.validation.collectives.validation import held_out, predicted_seconds
from nest_core.costs.software import Software
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware.collectives.library import Library
from nest_core.hardware.collectives.measurements import Measurement
from nest_core.network import MessageTime, collapse, message_time
from nest_core.network.collective import KINDS


def errors(rows: Sequence[Measurement], library: Library) -> dict[int, list[float]]:
    """Of held-out rows, by nodes: nodes of a switch, joined by a port per device."""

    @cache
    def time(op: str, devices: int, nodes: int, device: str, link: str, Bps: float) -> MessageTime:
        inside, rate = library.local(device)
        tiers = [Tier("node", devices // nodes, rate, inside.latency_s)]
        between = None
        if nodes > 1:
            between, port = library.network(link, Bps)
            tiers.append(Tier("network", nodes, port, between.latency_s))
        network, groups = collapse(Hierarchical("measured", tuple(tiers))), np.arange(devices)[None]
        kind = KINDS[op][0]
        sending = Software(inside, between).of_groups(network, kind, groups)
        return message_time(network, kind, groups, sending)

    found: dict[int, list[float]] = {}
    for row in held_out(rows):
        unknown = isinstance(predicted_seconds(row, library), str)
        if row.accelerator in UNSEEN or not row.in_network or unknown:
            continue
        sent = time(
            row.op, row.devices, row.nodes, row.accelerator, row.network, row.network_Bps
        ).seconds(row.bytes)
        error = KINDS[row.op][1] * float(sent[0]) / row.seconds - 1.0
        found.setdefault(row.nodes, []).append(abs(error))
    return found


def test_a_clones_rows_are_priced_within_four_per_cent(subset, library):
    found = errors(subset, library)
    assert np.median(found[1]) < 0.04


def test_held_out_rows_are_priced_within_four_per_cent(whole, library):
    """Over two nodes, where rings alone are 9.9 % off and up to 78 % slow, within 5 %."""
    found = errors(whole, library)
    assert (len(found[1]), len(found[2])) == (618, 29)
    assert np.median(found[1]) < 0.04
    assert np.median(found[2]) < 0.05
    assert max(found[2]) < 0.25
