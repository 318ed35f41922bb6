"""How long replays of iterations take, beside SimGrid's time for the same messages.

``python -m benchmarks.simulator_speed [--devices 1024 8192] [--simgrid 64 128] [--rounds 3]`` plays
a plan of 64 micro-batches (tp 8, pp 8, ZeRO 1, 1F1B) on nodes of eight devices and prints seconds a
replay takes, the shortest of some rounds. SimGrid is given what our engine is, device by device
(`benchmarks.outside.simgrid_iterations`); reading it does not count. All seconds are of the
processor, so that what else runs on the machine does not.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from benchmarks.outside.simgrid_iterations import answers, played, posed
from nest_core.costs import IDEAL_OVERLAP, Plan, Problem
from nest_core.simulator import simulate

TENSOR, STAGES, MICRO_BATCHES = 8, 8, 64


def case(devices: int) -> tuple[Problem, Plan]:
    """Return a problem and its plan."""
    dp = devices // (TENSOR * STAGES)
    text = f"dp={dp},tp={TENSOR},pp={STAGES},zero=1"
    problem, plan = posed(8, devices // 8, "llama3-70b", dp * MICRO_BATCHES, text)
    return replace(problem, overlap=IDEAL_OVERLAP), plan


def ours_s(devices: int, rounds: int) -> tuple[float, int]:
    """Return the shortest time of some rounds, and how many tasks were played."""
    problem, plan = case(devices)
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        result = simulate(problem, plan)
        taken.append(time.process_time() - began)
    return min(taken), len(result.entry)


def main() -> None:
    """Measure, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--devices", type=int, nargs="*", default=[1024, 8192])
    options.add_argument("--simgrid", type=int, nargs="*", default=[])
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    simulate(*case(64))
    for devices in asked.devices:
        taken, tasks = ours_s(devices, asked.rounds)
        print(f"{devices:,} devices: {taken:.3f} s, {tasks:,} tasks", flush=True)
    for devices in asked.simgrid:
        ours = played("", *case(devices))
        [(seconds, taken, messages)] = answers([ours.case])
        mine, _ = ours_s(devices, asked.rounds)
        print(
            f"{devices:,} devices: SimGrid {taken:.1f} s for {messages:,} messages, ours {mine:.3f}"
            f" s, 1 : {taken / mine:,.0f}; times differ by {ours.ours_s / seconds - 1:+.3%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
