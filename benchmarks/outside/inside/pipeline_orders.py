"""Orders of passes that PyTorch's own schedules give, without a process group.

``PYTHON pipeline_orders.py FILE`` reads a list of cases (``schedule``, ``pp``, ``virtual`` stages
of a rank, ``m`` micro-batches) and prints what each is like, as JSON: ``refused`` (why, or empty),
``live`` (forward passes of each rank that wait for their input's gradient, at the most) and
``slots`` until the last rank is done, where a forward pass takes one slot and a backward pass two.
Schedules of one stage a rank are run with a stage that computes nothing; of others the order is
read that the schedule keeps.
"""

import json
import sys
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torch.distributed.pipelining import schedules

Pass = tuple[str, int, int]
"""F, B (whole), I (input) or W (weight), with virtual stage and micro-batch."""


def order_of_one(kind: Any, stage: int, pp: int, m: int) -> list[Pass]:
    """Return the passes that a schedule of one stage a rank runs on a rank."""
    passes: list[Pass] = []
    fake = SimpleNamespace(
        num_stages=pp,
        stage_index=stage,
        is_last=stage == pp - 1,
        has_backward=True,
        forward_one_chunk=lambda i, *_, **__: passes.append(("F", stage, i)),
        backward_one_chunk=lambda i, **_: passes.append(("B", stage, i)),
        perform_reduce_grad=lambda _: None,
    )
    for name in ("fwd_recv", "fwd_send", "bwd_recv", "bwd_send"):
        setattr(fake, f"get_{name}_ops", lambda _: [])
    schedule = kind(fake, m)
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches()
    return passes


def orders(case: dict[str, Any]) -> list[list[Pass]]:
    """Return the passes of all ranks."""
    kind, pp, m = schedules.get_schedule_class(case["schedule"]), case["pp"], case["m"]
    if issubclass(kind, schedules.PipelineScheduleSingle):
        return [order_of_one(kind, stage, pp, m) for stage in range(pp)]
    count = pp * case["virtual"]
    stages = [
        SimpleNamespace(
            num_stages=count,
            group_size=pp,
            group_rank=0,
            stage_index=stage,
            is_first=stage == 0,
            is_last=False,
            submod=None,
            has_backward=True,
        )
        for stage in range(0, count, pp)
    ]
    schedule = kind(stages, m)
    return [
        [
            (action.computation_type.value, action.stage_index, action.microbatch_index)
            for action in schedule.pipeline_order[rank]
            if action is not None
        ]
        for rank in range(pp)
    ]


def live(passes: list[Pass]) -> int:
    """Return how many forward passes wait for the gradient of their input at the most."""
    now = most = 0
    for kind, _, _ in passes:
        now += (kind == "F") - (kind in "BI")
        most = max(most, now)
    return most


def slots(ranks: list[list[Pass]], count: int) -> int:
    """Return when the last pass ends: each as soon as its rank and what it needs are ready."""
    took = {"F": 1, "B": 2, "I": 1, "W": 1}
    waiting = [deque(passes) for passes in ranks]
    clock, done = [0] * len(ranks), dict[Pass, int]()
    while any(waiting):
        moved = False
        for rank, passes in enumerate(waiting):
            while passes:
                kind, stage, micro = passes[0]
                needed = [("F", stage - 1, micro)] if kind == "F" and stage else []
                if kind in "BI" and stage < count - 1:
                    needed = [(back, stage + 1, micro) for back in "BI"]
                ready = [done[entry] for entry in needed if entry in done]
                if needed and not ready:
                    break
                clock[rank] = max([clock[rank], *ready]) + took[kind]
                done[passes.popleft()] = clock[rank]
                moved = True
        if not moved:
            raise ValueError("the order cannot run")
    return max(clock)


def described(case: dict[str, Any]) -> dict[str, Any]:
    """Return what a case is like."""
    try:
        ranks = orders(case)
    except ValueError as error:
        return {"refused": " ".join(str(error).split())}
    return {
        "refused": "",
        "live": [live(passes) for passes in ranks],
        "slots": slots(ranks, case["pp"] * case["virtual"]),
    }


if __name__ == "__main__":
    cases = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([described(case) for case in cases]))
