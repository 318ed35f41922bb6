"""The part of ``docs/validation.md`` on two networks: every row, what is off and why, and what
experiment would settle what oversubscription costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.validation.fabric.ratios import DRAWS, NetworkRatio
from benchmarks.validation.markdown import markdown_table
from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.calibration.training.runs import Unread

__all__ = ["fabric_part"]

INTRODUCTION = f"""\
## Two networks

Published experiments in which one workload, or one collective, ran on two networks: the time on \
network b over the time on a, measured and predicted. What ran stands in \
`presets/validation/fabric_ratios.toml`, with what had to be assumed. Nothing is fitted to any \
row, of whatever confidence.

"Interval" holds the 10 and 90 % quantiles over {DRAWS} draws of the network's parameters \
(`presets/network/spread.toml`: share of the line rate by transport, incast, hashing, overlap, \
switches that reduce), the same for both networks where they are alike. It says nothing of the \
device's compute, which cancels only where a step is all compute or all traffic. "From a" is the \
ratio where the time on network a is as measured, the device being as slow as that takes: it \
reads one of the two measured times, never their ratio, and asks the network alone.
"""

OFF = (
    "*ZeRO 3 on V100.* Without the time on a the ratios are far too high: the step on network a "
    "is predicted 1.6 to 2.2 times too fast, as DeepSpeed's stage 3 levels off at 50 TFLOP/s in "
    "that source however wide the network is, so that traffic shows which in truth hid. Where the "
    "network bounds the step (100 Gb/s per node) its absolute time is within a quarter. From a, "
    "the rest is how much of the traffic hides: 18B hides more, and 138B less, than one share of "
    "0.75 allows.",
    "*GPT-2 on two nodes.* minGPT in PyTorch Lightning is twice as slow as the kernels that the "
    "A100's figures are of. From a the large model lies in its interval and the small one just "
    "outside: all of its gradients hid, and a share of 0.75 is priced. Four devices on two nodes "
    "are a placement pathology, which nothing here has.",
    "*BERT-Large over TCP.* Both steps are predicted a third too fast, alike, so that the ratio "
    "holds; from a the missing third is taken for slow compute, and it is traffic.",
    "*Hashing (H3C).* One hash per pair of devices is priced. Libraries open several flows per "
    "pair, which even out: that is the slow end, and the spread of the catalogue does not reach "
    "the measured 1.1 to 1.23.",
    "*Transports (DeepEP on MI300X).* At the centre RoCE reaches what InfiniBand does; the kernels "
    "of one library on one maker's ports did not, once outside the interval.",
    "*TCP on 25 Gb/s Ethernet.* The port of the InfiniBand side carried 11 of 25 GB/s, which no "
    "catalogue entry foresees.",
    "*SHARP.* Both times are predicted about half of what was measured: device and NIC share one "
    "PCIe link in that server, where a fabric here has two.",
)

EXPERIMENT = f"""\
### What would settle oversubscription

{UNMEASURED_RATIO} The rows nearest to it are simulated. A lower NIC speed is no substitute: it \
slows all traffic, oversubscription only what crosses the leaves. What bounds the loss that is \
said here: it is at most the ratio itself, on the share of the step that is exposed traffic \
between leaves, and only where hashing and transport leave the remaining uplinks evenly used.

On a cluster of one's own it takes an afternoon and no purchase:

1. Take a job on at least four leaves whose plan sends across them (ZeRO 1 or 3 over all devices, \
then one with expert parallelism over two leaves), and a second one that does not, as a control.
2. Switch off uplinks of every leaf one by one, the same number at each and spread over the \
spines: all, half, a third, a quarter. Record which links are up on every switch.
3. Hold fixed: nodes and ranks' order (a rank file, not the scheduler's choice), the container, \
NCCL's version and its environment (`NCCL_ALGO`, `NCCL_PROTO`, `NCCL_IB_QPS_PER_CONNECTION`, \
`NCCL_IB_ADAPTIVE_ROUTING`), clocks and power cap, data from memory, no other job on those leaves.
4. At each ratio, three times in shuffled order: all-reduce and all-to-all of nccl-tests over all \
devices at 1 MB to 8 GB, then 60 steps of each job, the first 20 dropped.
5. Log: time of every step and rank, bytes and discards of every uplink and NIC port once a second \
(`port_xmit_data`, `port_xmit_wait`, ECN and PFC counters), NCCL's topology and channels \
(`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=INIT,GRAPH`).
6. Then change the routing (adaptive, hashed with one and with several queue pairs) at 1:1 and 4:1.

`nest-studio next SCENARIO --experiment uplinks --to slurm` writes the runs of step 2 for a \
scenario's plan: one held task for every number of uplinks that a leaf may have left, with the \
links to keep and the time, the ratio and both intervals that are predicted. A ratio's interval \
holds only what differs between two steps.

Rows of the results, with columns `fabric_a`, `fabric_b`, `scenario`, `plan` and `seconds_a`, go \
to `python -m benchmarks.validation fabric FILE.csv` ([files](files.md)).
"""


def fabric_part(found: Sequence[NetworkRatio], left: Sequence[Unread]) -> str:
    """The part's text.

    Parameters
    ----------
    found : sequence of NetworkRatio
    left : sequence of Unread
        Rows that were not predicted.
    """
    complete = [row for row in found if row.complete]
    others = [row for row in found if not row.complete]
    parts = [
        ("Complete rows", "workload, plan and networks are known", complete),
        (
            "Others that were measured",
            "with an assumption more, or a collective alone",
            [row for row in others if row.kind != "simulated"],
        ),
        (
            "Simulated rows",
            "another simulator's answers, not measurements",
            [row for row in others if row.kind == "simulated"],
        ),
    ]
    lines = [INTRODUCTION]
    for name, what, rows in parts:
        if rows:
            lines += [f"### {name}", "", f"{what[0].upper()}{what[1:]}. {_said(rows)}", ""]
            lines += [*_table(rows), ""]
    lines += ["### What is off, and why", "", *(f"- {sentence}" for sentence in OFF), ""]
    lines += [EXPERIMENT, "### Experiments without a prediction", ""]
    lines += [f"- {row.id}: {row.reason}" for row in left] or ["None."]
    return "\n".join(lines) + "\n"


def _said(rows: Sequence[NetworkRatio]) -> str:
    error = median(abs(row.error) for row in rows)
    words = f"Median error of {len(rows)}: {error:.1%}"
    words += f"; {sum(row.inside for row in rows)} inside their intervals"
    anchored = [abs(row.anchored / row.measured - 1) for row in rows if row.anchored is not None]
    if anchored:
        words += f". From a, of {len(anchored)}: {median(anchored):.1%}"
        words += f"; {sum(row.anchored_inside for row in rows)} inside"
    return words + "."


def _table(rows: Sequence[NetworkRatio]) -> list[str]:
    head = ["row", "sure", "measured", "predicted", "interval", "error", "from a", "interval"]
    return markdown_table(
        head,
        (
            [
                row.id,
                row.confidence,
                f"{row.measured:.3f}",
                f"{row.predicted:.3f}",
                _span(row.interval),
                f"{row.error:+z.1%}",
                "–" if row.anchored is None else f"{row.anchored:.3f}",
                _span(row.anchored_interval),
            ]
            for row in rows
        ),
    )


def _span(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
