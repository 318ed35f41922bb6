"""Event engine: tasks that wait for one another, and flows that share links max-min fairly.

A task is work of a device for some seconds, or a *call*: phases that follow one another, each a
latency and then flows that run at once. Every flow has the rate at which progressive filling
leaves it: all rates rise together until a link is full or a flow has all that one link gives it;
those flows keep their rate, and the others go on (Bertsekas and Gallager, "Data Networks", section
6.5.2). Rates change when a flow begins or ends. A flow that spreads over several links puts a share
of its rate on each.

Tasks, flows and links stand for classes of equal ones (`nest_core.simulator.classes`): a crossing's
weight counts all flows of a class on one link of a class.

Units: seconds, bytes, bytes/s.
"""

from collections import namedtuple

import numpy as np

from nest_core.documents.compiled import compiled
from nest_core.network import FloatArray, IntArray

__all__ = ["Calls", "Tasks", "fair_rates", "run"]

Tasks = namedtuple("Tasks", "seconds call size times device is_hidden waits first_after after")
"""Tasks, arrays of shape (tasks,) but the last two.

Attributes
----------
seconds : of work
call : which of `Calls`; -1 for work
size, times : bytes of a call's buffer, and how often its latencies pass
device : that works; -1 for calls
is_hidden : whether a call slows its devices' work down
waits : number of tasks that must end before
first_after, after : tasks that wait for each, ``after[first_after[k] : first_after[k + 1]]``
"""

Calls = namedtuple(
    "Calls",
    "first_phase latency_s first_flow volume most_Bps first_crossing link weight first_member "
    "member",
)
"""Calls as phases, phases as flows, flows as crossings of links; ``first_...`` as in `Tasks`.

Attributes
----------
latency_s : (phases,)
volume, most_Bps : (flows,)
    Bytes per byte of the buffer, and the most that one flow has.
link, weight : (crossings,)
    Bytes on the link per byte of one flow of the class.
member : device classes that take part, call by call
"""


@compiled
def fair_rates(
    flows: IntArray, calls: Calls, capacity_Bps: FloatArray, used: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the max-min fair rate of flows that run at once, shape of ``flows``.

    Parameters
    ----------
    used, weight : (links,)
        Room for sums; zeros before and after.
    """
    rates = np.zeros(len(flows))
    is_open = np.ones(len(flows), dtype=np.bool_)
    for flow in flows:
        for k in range(calls.first_crossing[flow], calls.first_crossing[flow + 1]):
            weight[calls.link[k]] += calls.weight[k]
    remaining = len(flows)
    while remaining:
        level = np.inf
        for n in range(len(flows)):
            if is_open[n]:
                level = min(level, calls.most_Bps[flows[n]])
                for k in range(calls.first_crossing[flows[n]], calls.first_crossing[flows[n] + 1]):
                    at = calls.link[k]
                    level = min(level, max(0.0, capacity_Bps[at] - used[at]) / weight[at])
        # Decide before any weight changes: all flows of this level are full at once.
        is_full = np.zeros(len(flows), dtype=np.bool_)
        for n in range(len(flows)):
            if is_open[n]:
                is_full[n] = calls.most_Bps[flows[n]] <= level
                for k in range(calls.first_crossing[flows[n]], calls.first_crossing[flows[n] + 1]):
                    at = calls.link[k]
                    room = max(0.0, capacity_Bps[at] - used[at]) / weight[at]
                    is_full[n] = is_full[n] or room <= level * (1 + 1e-9)
        for n in range(len(flows)):
            if is_full[n]:
                rates[n], is_open[n] = level, False
                remaining -= 1
                for k in range(calls.first_crossing[flows[n]], calls.first_crossing[flows[n] + 1]):
                    used[calls.link[k]] += level * calls.weight[k]
                    weight[calls.link[k]] -= calls.weight[k]
    for flow in flows:
        for k in range(calls.first_crossing[flow], calls.first_crossing[flow + 1]):
            used[calls.link[k]] = weight[calls.link[k]] = 0.0
    return rates


@compiled
def run(
    tasks: Tasks, calls: Calls, capacity_Bps: FloatArray, slowdown: float
) -> tuple[FloatArray, FloatArray]:
    """Return when every task begins and ends, shape (tasks,) each; infinite: never.

    Parameters
    ----------
    slowdown : float
        Seconds of work that a device loses per second of a hidden call.
    """
    count = len(tasks.seconds)
    begins, ends = np.full(count, np.inf), np.full(count, np.inf)
    waits, step, pending = tasks.waits.copy(), np.zeros(count, np.int64), np.zeros(count, np.int64)
    hiding = np.zeros(tasks.device.max() + 1, np.int64)
    used, weight = np.zeros(len(capacity_Bps)), np.zeros(len(capacity_Bps))
    # What goes on: its task, its flow (-1: none), what remains and how fast that shrinks.
    task = np.empty(count + 2 * len(calls.volume), np.int64)
    flow = np.empty_like(task)
    remains, rate = np.empty(len(task)), np.empty(len(task))
    ready = np.empty(count, np.int64)
    top = active = 0
    for k in range(count):
        if waits[k] == 0:
            ready[top], begins[k] = k, 0.0
            top += 1
    now, is_changed = 0.0, False
    while True:
        while top:
            top -= 1
            k = ready[top]
            call = tasks.call[k]
            is_over = False
            if call < 0:
                if step[k] == 0 and tasks.seconds[k] > 0:
                    task[active], flow[active] = k, -1
                    remains[active], rate[active] = tasks.seconds[k], 1.0
                    if slowdown > 0 and hiding[tasks.device[k]] > 0:
                        rate[active] = 1.0 - slowdown
                    active += 1
                else:
                    is_over = True
                step[k] += 1
            else:
                if step[k] == 0 and tasks.is_hidden[k]:
                    for at in range(calls.first_member[call], calls.first_member[call + 1]):
                        hiding[calls.member[at]] += 1
                    is_changed = True
                before = active
                while active == before:
                    phase = calls.first_phase[call] + step[k] // 2
                    if phase == calls.first_phase[call + 1]:
                        is_over = True
                        break
                    if step[k] % 2 == 0:
                        latency = calls.latency_s[phase] * tasks.times[k]
                        if latency > 0:
                            task[active], flow[active] = k, -1
                            remains[active], rate[active] = latency, 1.0
                            active += 1
                    else:
                        for n in range(calls.first_flow[phase], calls.first_flow[phase + 1]):
                            if calls.volume[n] * tasks.size[k] > 0:
                                task[active], flow[active] = k, n
                                remains[active] = calls.volume[n] * tasks.size[k]
                                rate[active] = 0.0
                                active += 1
                                pending[k] += 1
                                is_changed = True
                    step[k] += 1
                if is_over and tasks.is_hidden[k]:
                    for at in range(calls.first_member[call], calls.first_member[call + 1]):
                        hiding[calls.member[at]] -= 1
                    is_changed = True
            if is_over:
                ends[k] = now
                for at in range(tasks.first_after[k], tasks.first_after[k + 1]):
                    waits[tasks.after[at]] -= 1
                    if waits[tasks.after[at]] == 0:
                        ready[top], begins[tasks.after[at]] = tasks.after[at], now
                        top += 1
        if active == 0:
            return begins, ends
        if is_changed:
            sending = np.flatnonzero(flow[:active] >= 0)
            rates = fair_rates(flow[sending], calls, capacity_Bps, used, weight)
            for n in range(len(sending)):
                rate[sending[n]] = rates[n]
            for n in range(active):
                if slowdown > 0 and flow[n] < 0 and tasks.call[task[n]] < 0:
                    rate[n] = 1.0 - slowdown * (hiding[tasks.device[task[n]]] > 0)
            is_changed = False
        taken = np.inf
        for n in range(active):
            if rate[n] > 0:
                taken = min(taken, remains[n] / rate[n])
        if taken == np.inf:  # nothing moves: no link leads there
            return begins, ends
        now += taken
        n = 0
        while n < active:
            remains[n] -= rate[n] * taken
            # What ends at once but for rounding ends together.
            if remains[n] <= rate[n] * (1e-9 * taken + 1e-13 * now):
                k = task[n]
                if flow[n] >= 0:
                    pending[k] -= 1
                    is_changed = True
                if pending[k] == 0:
                    ready[top] = k
                    top += 1
                active -= 1
                task[n], flow[n] = task[active], flow[active]
                remains[n], rate[n] = remains[active], rate[active]
            else:
                n += 1
