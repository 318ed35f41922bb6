"""A link has two directions, and a message takes those that lead to its receiver."""

from __future__ import annotations

from small_fabric import job, small

from nest_core.network import collapse, link_group_name
from nest_core.simulator import simulate


def test_messages_go_up_from_the_sender_and_down_to_the_receiver():
    """Stage 1 on device 0, stage 2 on device 4 below another leaf; gradients come back."""
    values = small()
    network = collapse(values.fabric)
    problem, plan = job(values, network, "dp=1,tp=1,pp=2,micro_batch=4", [0, 4])
    traffic = simulate(problem, plan).traffic
    crossed = {
        call.axis: {link_group_name(network, link) for link in traffic.ways[way].link}
        for (_, call, _), way in traffic.chosen.items()
    }
    ahead = {
        "device 0 up to leaf",
        "devices 0 to 3 up to spine",
        "spine down to devices 4 to 7",
        "leaf down to device 4",
    }
    back = {
        "device 4 up to leaf",
        "devices 4 to 7 up to spine",
        "spine down to devices 0 to 3",
        "leaf down to device 0",
    }
    assert crossed == {"receive": ahead, "return": back, "tied": ahead | back}
