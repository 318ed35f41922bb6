"""Orders of passes that PyTorch's own schedules give, without a process group.

``PYTHON pipeline_orders.py FILE`` reads a list of cases (``schedule``, ``pp``, ``virtual`` stages
of a rank, ``m`` micro-batches) and prints what each is like, as JSON: ``refused`` (why, or empty),
``live`` (forward passes of each rank that wait for their input's gradient, at the most), ``idle``
(slots of each rank before its last pass is over), ``slots`` until the last rank is done, and
``order``, a checksum of all passes, where a forward pass takes one slot, a backward pass two, and
half of it one. Schedules of one stage a rank are run with a stage that computes nothing; of others
the order is read that the schedule keeps. Passes of one action (a forward pass that overlaps a
backward pass) begin when all may, and what they make is there when all are over: the runtime puts
their sends behind the action.
"""

import json
import sys
import zlib
from collections import deque
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torch.distributed.pipelining import schedules

Pass = tuple[str, int, int]
"""F, B (whole), I (input) or W (weight), with virtual stage and micro-batch."""

Action = tuple[Pass, ...]
"""One pass, or several that run together."""

V_SHAPED = ("ZBVZeroBubble", "DualPipeV")
TOOK = {"F": 1, "B": 2, "I": 1, "W": 1}


def order_of_one(kind: Any, stage: int, pp: int, m: int) -> list[Action]:
    """Return the passes that a schedule of one stage a rank runs on a rank."""
    passes: list[Action] = []
    fake = SimpleNamespace(
        num_stages=pp,
        stage_index=stage,
        is_last=stage == pp - 1,
        has_backward=True,
        forward_one_chunk=lambda i, *_, **__: passes.append((("F", stage, i),)),
        backward_one_chunk=lambda i, **_: passes.append((("B", stage, i),)),
        perform_reduce_grad=lambda _: None,
    )
    for name in ("fwd_recv", "fwd_send", "bwd_recv", "bwd_send"):
        setattr(fake, f"get_{name}_ops", lambda _: [])
    schedule = kind(fake, m)
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches()
    return passes


def orders(case: dict[str, Any]) -> list[list[Action]]:
    """Return the passes of all ranks."""
    kind, pp, m = schedules.get_schedule_class(case["schedule"]), case["pp"], case["m"]
    if issubclass(kind, schedules.PipelineScheduleSingle):
        return [order_of_one(kind, stage, pp, m) for stage in range(pp)]
    count = pp * case["virtual"]
    style = "v" if case["schedule"] in V_SHAPED else "loop"
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
        for stage in schedules.generate_rank_to_stage_mapping(pp, count, style=style)[0]
    ]
    schedule = kind(stages, m)
    return [
        [
            tuple(
                (part.computation_type.value, part.stage_index, part.microbatch_index)
                for part in action.sub_actions or (action,)
            )
            for action in schedule.pipeline_order[rank]
            if action is not None
        ]
        for rank in range(pp)
    ]


def live(actions: list[Action]) -> int:
    """Return how many forward passes wait for the gradient of their input at the most."""
    now = most = 0
    for kind, _, _ in chain.from_iterable(actions):
        now += (kind == "F") - (kind in "BI")
        most = max(most, now)
    return most


def clocks(ranks: list[list[Action]], count: int) -> list[int]:
    """Return when each rank is done: each action as soon as its rank and what it needs are ready.

    An action needs what all its passes need.
    """
    waiting = [deque(actions) for actions in ranks]
    clock, done = [0] * len(ranks), dict[Pass, int]()
    while any(waiting):
        moved = False
        for rank, actions in enumerate(waiting):
            while actions:
                needs = [need for part in actions[0] if (need := awaited(*part, count))]
                ready = [[done[entry] for entry in need if entry in done] for need in needs]
                if not all(ready):
                    break
                clock[rank] = max([clock[rank], *chain.from_iterable(ready)])
                clock[rank] += sum(TOOK[kind] for kind, _, _ in actions[0])
                done |= dict.fromkeys(actions.popleft(), clock[rank])
                moved = True
        if not moved:
            raise ValueError("the order cannot run")
    return clock


def awaited(kind: str, stage: int, micro: int, count: int) -> list[Pass]:
    """Return passes of which one must be over before another begins; none: it only waits its turn.

    The first virtual stage awaits nobody, the last turns back what it made itself.
    """
    if kind == "F" and stage:
        return [("F", stage - 1, micro)]
    if kind in "BI":
        after = [(back, stage + 1, micro) for back in "BI"]
        return after if stage < count - 1 else [("F", stage, micro)]
    return []


def described(case: dict[str, Any]) -> dict[str, Any]:
    """Return what a case is like."""
    try:
        ranks = orders(case)
    except ValueError as error:
        return {"refused": " ".join(str(error).split())}
    done = clocks(ranks, case["pp"] * case["virtual"])
    text = "; ".join(
        " ".join("+".join("{}{}.{}".format(*part) for part in action) for action in actions)
        for actions in ranks
    )
    took = [sum(TOOK[kind] for kind, _, _ in chain.from_iterable(actions)) for actions in ranks]
    return {
        "refused": "",
        "live": [live(actions) for actions in ranks],
        "idle": [end - busy for end, busy in zip(done, took, strict=True)],
        "slots": max(done),
        "order": zlib.crc32(text.encode()),
    }


if __name__ == "__main__":
    cases = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([described(case) for case in cases]))
