#!/usr/bin/env bash
# PyTorch 2.13.0: under Interleaved1F1B a rank keeps up to three of its stages gathered, and gathers
# them the more often the more micro-batches there are.
#
# The schedule writes when a stage's fully sharded weights are gathered (UNSHARD) and let go. With
# two stages a rank both are gathered once and stay, so FSDP saves no weights between the passes.
# With four stages a rank (pp 4) rank 0 gathers 11, 15 and 23 times a step for 8, 16 and 32
# micro-batches, and holds three of its four stages at once.
#
# Guessed before it was run: 8 gathers for any number of micro-batches (every stage once forward,
# once backward), and two stages at once.
# A planner that prices ZeRO 3 in such a pipeline as one gather a pass, or with the memory of one
# stage's shard, is off in both: count three whole stages of weights and these gathers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from types import SimpleNamespace

from torch.distributed.pipelining import schedules


def counted(pp, virtual, micro_batches):
    """Gathers of rank 0, and how many of its stages are gathered at once."""
    stages = [
        SimpleNamespace(
            num_stages=pp * virtual, group_size=pp, group_rank=0, stage_index=stage,
            is_first=stage == 0, is_last=False, submod=None, has_backward=True,
        )
        for stage in range(0, pp * virtual, pp)
    ]
    schedule = schedules.get_schedule_class("Interleaved1F1B")(stages, micro_batches)
    kinds = [action.computation_type.value for action in schedule.pipeline_order_with_comms[0]]
    live = most = 0
    for kind in kinds:
        live += (kind == "UNSHARD") - (kind == "RESHARD")
        most = max(most, live)
    return kinds.count("UNSHARD"), most


cases = [(4, 2, 8), (4, 4, 8), (4, 4, 16), (4, 4, 32)]
results = [counted(*case) for case in cases]
for case, (gathers, most) in zip(cases, results):
    print("pp, stages a rank, micro-batches", case, "gathers", gathers, "at once", most)
assert results == [(2, 2), (11, 3), (15, 3), (23, 3)], results
print("as described")
PYTHON
