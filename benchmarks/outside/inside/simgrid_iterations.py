"""When the tasks of an iteration end where SimGrid moves its messages; in its own Python.

Work and latencies are clocks of the one actor here; every flow is a message over the links that it
is given. The model is that of `simgrid_times`: max-min fair shares of every link.
"""

import heapq
import json
import sys
import time
from pathlib import Path

from simgrid import ActivitySet, Comm, Engine, LinkInRoute, TimeoutException, this_actor
from simgrid_times import FLAGS, SLOWER, FAST_Bps, apart

FOREVER = -1.0


def built(root, case):
    """Return a pair of hosts for every route; the first one's way out are its links."""
    made = root.add_netzone_star("zone")
    links = [made.add_link(f"link{n}", rate / SLOWER) for n, rate in enumerate(case["links_Bps"])]
    pairs = []
    for number, route in enumerate(case["routes"]):
        source, target = (made.add_host(f"{way}{number}", 1e9) for way in ("from", "to"))
        made.add_route(source, None, [LinkInRoute(links[n]) for n in route], False)
        own = made.add_link(f"own{number}", FAST_Bps)  # a way in has a link at least
        made.add_route(None, target, [LinkInRoute(own)], False)
        pairs.append((source, target))
    made.seal()
    return pairs


def run(case):
    """Return seconds of the iteration, seconds that SimGrid took, and messages."""
    engine = Engine(["simgrid", *(f"--cfg={flag}" for flag in FLAGS), "--log=root.thres:critical"])
    pairs = built(engine.netzone_root, case)
    tasks, calls = case["tasks"], case["calls"]
    waits = [0] * len(tasks)
    for task in tasks:
        for after in task["after"]:
            waits[after] += 1
    answer = {}

    def play():
        clocks, sending, owner, pending, step = [], ActivitySet(), {}, {}, {}
        ready = [n for n, count in enumerate(waits) if not count]
        over = messages = 0
        while True:
            while ready:
                n = ready.pop()
                task = tasks[n]
                phases = calls[task["call"]] if task["call"] >= 0 else []
                at = step[n] = step.get(n, -1) + 1
                if at == 0 and not phases:
                    heapq.heappush(clocks, (Engine.clock + task["seconds"] * SLOWER, n))
                elif at < 2 * len(phases) and at % 2 == 0:
                    latency_s = phases[at // 2]["latency_s"] * task["times"]
                    heapq.heappush(clocks, (Engine.clock + latency_s * SLOWER, n))
                elif at < 2 * len(phases):
                    for route, volume in phases[at // 2]["flows"]:
                        size = round(volume * task["size"])
                        if size > 0:
                            comm = Comm.sendto_async(*pairs[route], size)
                            sending.push(comm)
                            owner[comm] = n
                            pending[n] = pending.get(n, 0) + 1
                            messages += 1
                    if not pending.get(n):
                        ready.append(n)
                else:
                    over += 1
                    for after in task["after"]:
                        waits[after] -= 1
                        if not waits[after]:
                            ready.append(after)
            if not clocks and not owner:
                break
            left = max(0.0, clocks[0][0] - Engine.clock) if clocks else FOREVER
            if left == 0.0:
                ready.append(heapq.heappop(clocks)[1])
                continue
            if not owner:
                this_actor.sleep_for(left)
                continue
            try:
                comm = sending.wait_any_for(left)
            except TimeoutException:
                continue
            n = owner.pop(comm)
            pending[n] -= 1
            if not pending[n]:
                ready.append(n)
        answer.update(seconds=Engine.clock / SLOWER, over=over, messages=messages)

    engine.add_actor("player", pairs[0][0], play)
    began = time.process_time()
    engine.run()
    if answer["over"] != len(tasks):
        raise ValueError("tasks wait for one another")
    return [answer["seconds"], time.process_time() - began, answer["messages"]]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    cases = json.loads((folder / "iterations.json").read_text())
    (folder / "iterations_answers.json").write_text(
        json.dumps([apart(case, run) for case in cases])
    )
