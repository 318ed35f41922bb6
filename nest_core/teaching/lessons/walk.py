"""What is stepped through: a collective on a fabric, and a pipeline on its nodes.

Devices in nodes under one leaf. The steps of a collective, their bytes and their seconds are those
of the phases that plans are priced by (`nest_core.network.steps`). Every stage of the pipeline is a
node of eight devices; a micro-batch takes it two units forward and four backward. Activations go on
to the next node and their gradients come back, and nothing of that hides behind compute, so that
the class sees it. The schedule is priced like any plan and simulated (`nest_core.simulator`); steps
are cut at the moments at which passes end.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from nest_core.costs import MEGATRON_ORDER, Plan, Point, Report, price
from nest_core.documents.schema.lesson import FormulaTable
from nest_core.documents.units import GB, humanise_rate, humanise_seconds, percent
from nest_core.network import FloatArray, IntArray
from nest_core.network.steps import Steps, steps
from nest_core.simulator import Iteration, simulate, stages_of
from nest_core.simulator.activity import entry_times
from nest_core.teaching.lessons.contents import Contents, contents
from nest_core.teaching.lessons.figure import (
    NODE_GBPS,
    Given,
    LessonFigure,
    bare_chain,
    noded,
)
from nest_core.teaching.lessons.files import fill
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings

__all__ = [
    "ALGORITHMS",
    "FABRICS",
    "LINKS",
    "PASSES",
    "PER_NODE",
    "STEPS",
    "PassStep",
    "PassSteps",
    "PassWalk",
    "Walk",
    "bytes_in_words",
    "passed",
    "walked",
]

LINKS = ("NVLink", "NIC")
"""Names of the links that belong to each level."""

ALGORITHMS = {
    "ring": ("all_reduce", "ring"),
    "tree": ("all_reduce", "double_binary_tree"),
    "hierarchical": ("all_reduce", "hierarchical_ring"),
    "all-to-all": ("all_to_all", "pairwise"),
}
"""Names on screen; the operation and its algorithm."""

FABRICS = ("2 × 4", "2 × 8", "4 × 8", "8 × 8")
NICS = (25, 50, 100, 200)
ASKED = ("ring", "2 × 4", 50)


def bytes_in_words(size: float) -> str:
    """Bytes as a class reads them, decimal.

    Examples
    --------
    >>> bytes_in_words(1e9), bytes_in_words(625e6), bytes_in_words(15.6e6)
    ('1 GB', '0.625 GB', '15.6 MB')
    """
    return f"{size / 1e9:.3g} GB" if size >= 2.5e8 else f"{size / 1e6:.3g} MB"


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A collective at one of its steps.

    Parameters
    ----------
    steps : Steps
    contents : Contents
    step : int
        How many steps are over.
    nodes, per_node : int
    """

    steps: Steps
    contents: Contents
    step: int
    nodes: int
    per_node: int


@cache
def walked(algorithm: str, fabric: str, nic_GBps: float) -> tuple[Steps, Contents]:
    """All steps of a collective of 1 GB among all devices, and what these hold meanwhile.

    Parameters
    ----------
    algorithm : str
        Of `ALGORITHMS`.
    fabric : str
        Nodes × devices of each.
    nic_GBps : float
        One NIC for each device, one direction.
    """
    nodes, per_node = _sizes(fabric)
    op, algorithm_name = ALGORITHMS[algorithm]
    network = noded(nodes, per_node, nic_GBps)
    result = steps(network, op, algorithm_name, GB, network.devices)
    return result, contents(result)


def _sizes(fabric: str) -> tuple[int, int]:
    nodes, per_node = fabric.split(" × ")
    return int(nodes), int(per_node)


def _chosen(settings: Settings) -> tuple[Steps, Contents]:
    return walked(str(settings["algorithm"]), str(settings["fabric"]), float(settings["nic"]))


MOST = 2 * (64 - 1)
"""Steps of the longest: a ring of 64."""


def _show(settings: Settings) -> Reveal:
    steps_taken, contents_held = _chosen(settings)
    nodes, per_node = _sizes(str(settings["fabric"]))
    walk = Walk(steps_taken, contents_held, int(settings["step"]), nodes, per_node)
    algorithm = str(settings["algorithm"])
    numbers = {"sent": bytes_in_words(_most(steps_taken, 1)), "size": bytes_in_words(GB)}
    return Reveal(
        walk, (fill(_TEXTS[algorithm], numbers.__getitem__),), _formulas(steps_taken, algorithm)
    )


_TEXTS = {
    "ring": "Every link of the ring carries {sent} for a gradient of {size}: a part while sums "
    "travel, as much while results travel. Length hardly matters; the slowest link sets the pace.",
    "tree": "Chunks follow one another up and down two trees that join nodes, one pair of trees "
    "for each device of a node: few hops, so little latency, and all NICs work at once.",
    "hierarchical": "Inside nodes first: each device then has only its share of the gradient to "
    "exchange with other nodes, and all NICs work at once. Rings go level by level.",
    "all-to-all": "Everyone has another block for everyone: nothing is added up, so nothing gets "
    "smaller on the way, and most blocks leave their node.",
}


def _formulas(steps_taken: Steps, algorithm: str) -> tuple[FormulaTable, ...]:
    n, last = steps_taken.groups.shape[1], steps_taken.states[-1]
    busy = steps_taken.busy(last.number)
    slow = int(busy.argmax())
    size = bytes_in_words(steps_taken.size_bytes)
    most = bytes_in_words(_most(steps_taken, slow))
    links = steps_taken.network.link_map
    rate = float(links.capacity_Bps[links.tier == slow].max())
    return (
        FormulaTable(
            name=f"Over the busiest {LINKS[slow]}",
            symbols=_SENT[algorithm],
            numbers=f"n = {n}, x = {size}: {most}",
            source="Thakur, Rabenseifner and Gropp 2005"
            if algorithm != "tree"
            else "Sanders, Speck and Träff 2009; NCCL's trees",
        ),
        FormulaTable(
            name="Time",
            symbols="sum over steps of latency + bytes / rate of the slowest link",
            numbers=f"{humanise_seconds(last.seconds)}; in {percent(float(busy[slow]))} of it "
            f"{'an NVLink' if slow == 0 else 'a NIC'} sends at {humanise_rate(rate)}, the rest is "
            "latency and other links",
            source="the phases that plans are priced by (method.md, Network)",
        ),
    )


_SENT = {
    "ring": "2 (n - 1) / n · x",
    "tree": "up and down two trees, half of a rail's share on each",
    "hierarchical": "2 (N - 1) / N · x / devices of a node, N nodes",
    "all-to-all": "(n - devices of a node) / n · x",
}


def _most(steps_taken: Steps, level: int) -> float:
    """Return bytes of the busiest link of a level, one way."""
    return float(
        steps_taken.states[-1].sent_bytes[steps_taken.network.link_map.tier == level].max()
    )


def _asked(given: Settings) -> tuple[Steps, Contents]:
    return walked(
        str(given["algorithm"]), f"{given['nodes']} × {given['per_node']}", float(given["nic_GBps"])
    )


STEPS = LessonFigure(
    "steps",
    (
        Control("algorithm", "Algorithm", tuple(ALGORITHMS), ASKED[0], "What is stepped through."),
        Control("fabric", "Nodes × devices", FABRICS, ASKED[1], "8 to 64 devices under one leaf."),
        Control("nic", "NIC, GB/s", NICS, ASKED[2], "One for each device: 25 to 200 GB/s."),
        Control(
            "step",
            "Step",
            tuple(range(MOST + 1)),
            0,
            "Steps that are over, from none to all.",
            stepped=True,
            last=lambda settings: len(_chosen(settings)[0].states) + 1,
        ),
    ),
    _show,
    {
        "algorithm": Given(ASKED[0], values=tuple(ALGORITHMS)),
        "nodes": Given(2, 2, 8),
        "per_node": Given(4, 2, 8),
        "nic_GBps": Given(float(ASKED[2]), 1, 1000),
    },
    {
        "nvlink_GBps": lambda given: NODE_GBPS,
        "devices": lambda given: int(given["nodes"]) * int(given["per_node"]),
        "before": lambda given: int(given["nodes"]) * int(given["per_node"]) - 1,
        "gradient": lambda given: bytes_in_words(GB),
        "share": lambda given: bytes_in_words(GB / int(given["per_node"])),
        "every": lambda given: bytes_in_words(GB * int(given["nodes"]) * int(given["per_node"])),
        "leaves": lambda given: bytes_in_words(_most(_asked(given)[0], 1)),
        "total": lambda given: _asked(given)[0].seconds,
        "sums": lambda given: _asked(given)[0].seconds / 2,
        "by_nvlink": lambda given: _asked(given)[0].seconds * float(given["nic_GBps"]) / NODE_GBPS,
        "halved": lambda given: (
            _asked({**given, "nic_GBps": float(given["nic_GBps"]) / 2})[0].seconds
        ),
    },
)


PER_NODE = 8
FORWARD_S, BACKWARD_S = 2e-3, 4e-3
"""Of one micro-batch through one stage."""
MESSAGE = 64e6
"""Bytes that every device hands on at the end of a virtual stage."""

SCHEDULES = {"1F1B": ("1f1b", 1), "interleaved": ("interleaved", 2)}
"""Names on screen; the schedule and its virtual stages per stage."""
STAGES, MICRO_BATCHES = (2, 4, 8), (8, 16)
PLAYED = ("1F1B", 4, 8, 50)


_SAME = 1e-9  # of an iteration: ends that rounding sets apart


@dataclass(frozen=True, slots=True, eq=False)
class PassStep:
    """From one end of a pass to the next.

    Parameters
    ----------
    number : int
        From 1.
    running : int array (pp,)
        Which of its passes each stage runs, in its own order; -1 where it waits.
    sent : tuple of (int, int)
        Stages between which a message starts in the step: who sends, and who receives.
    taken_s, seconds : float
        Of this step, and since the start.
    """

    number: int
    running: IntArray
    sent: tuple[tuple[int, int], ...]
    taken_s: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class PassSteps:
    """An iteration from its start to its end.

    Parameters
    ----------
    report : Report
        The plan as it was priced.
    iteration : Iteration
    begins_s, received_s, ends_s : float array (pp, passes)
        When a pass begins, has what it begins with, and ends.
    states : tuple of PassStep
        After each step.
    """

    report: Report
    iteration: Iteration
    begins_s: FloatArray
    received_s: FloatArray
    ends_s: FloatArray
    states: tuple[PassStep, ...]

    @property
    def seconds(self) -> float:
        """What the iteration takes."""
        return self.states[-1].seconds

    @property
    def stages(self) -> int:
        """Pipeline stages."""
        return len(self.begins_s)

    @classmethod
    def of(cls, report: Report, iteration: Iteration) -> "PassSteps":
        """Cut an iteration into steps."""
        begins, received, ends = _pass_times(iteration)
        moments, seconds = [0.0], iteration.seconds
        for moment in sorted({*ends.reshape(-1).tolist(), seconds}):
            if moment - moments[-1] > _SAME * seconds:
                moments.append(moment)
        states = []
        for number, (before, now) in enumerate(pairwise(moments), 1):
            middle, least = (before + now) / 2, before - _SAME * seconds
            runs = (begins <= middle) & (ends > middle)
            starts = (begins > least) & (begins <= now - _SAME * seconds) & (received > begins)
            places = np.argwhere(starts).tolist()
            sent = tuple((_sender(iteration, stage, at), stage) for stage, at in places)
            running = np.where(runs.any(axis=1), runs.argmax(axis=1), -1)
            states.append(PassStep(number, running, sent, now - before, now))
        return cls(report, iteration, begins, received, ends, tuple(states))


def _pass_times(iteration: Iteration) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return when passes begin, have received and end; (pp, passes) each."""
    stages, rows = stages_of(iteration.problem, iteration.plan), []
    for stage, program in enumerate(iteration.programs):
        begins, ends = entry_times(iteration, stage, int((stages == stage).argmax()))
        received = begins[program.begins]
        first = received.copy()
        first[program.receives[:, 1]] = begins[program.receives[:, 0]]
        rows.append((first, received, ends[program.ends]))
    first, received, ended = (np.stack(columns) for columns in zip(*rows, strict=True))
    return first, received, ended


def _sender(iteration: Iteration, stage: int, place: int) -> int:
    """Return the stage that a pass receives from."""
    back = iteration.order.way[stage, place] > 0
    return (stage + (1 if back else -1)) % len(iteration.programs)


@dataclass(frozen=True, slots=True, eq=False)
class PassWalk:
    """An iteration at one of its steps.

    Parameters
    ----------
    steps : PassSteps
    step : int
        How many steps are over; the passes of the last of them are shown.
    nic_Bps : float
    """

    steps: PassSteps
    step: int
    nic_Bps: float

    @property
    def waited(self) -> float:
        """Share of all stages' time so far in which they waited."""
        done = self.steps.states[: max(self.step, 1)]
        idle = sum(state.taken_s * float((state.running < 0).mean()) for state in done)
        return idle / done[-1].seconds


@cache
def passed(schedule: str, stages: int, micro_batches: int, nic_GBps: float) -> PassSteps:
    """All steps of an iteration.

    Parameters
    ----------
    schedule : str
        Of `SCHEDULES`.
    stages, micro_batches : int
    nic_GBps : float
        One NIC for each device, one direction.
    """
    order, virtual = SCHEDULES[schedule]
    layers = stages * virtual
    point = Point(
        PER_NODE, True, 1, stages, 1, 0, MEGATRON_ORDER, schedule=order, interleave=virtual
    )
    chain = bare_chain(
        noded(stages, PER_NODE, nic_GBps),
        ((FORWARD_S + BACKWARD_S) / virtual,) * layers,
        (FORWARD_S / virtual,) * layers,
        (0.0, *(MESSAGE,) * (layers - 1), 0.0),
        micro_batches,
    )
    plan = Plan(point, tuple(range(layers + 1)), ("none",) * stages)
    return PassSteps.of(price(chain, plan), simulate(chain, plan))


def _chosen_passes(settings: Settings) -> PassSteps:
    return passed(
        str(settings["schedule"]),
        int(settings["pp"]),
        int(settings["m"]),
        float(settings["nic"]),
    )


MAX_PASS_STEPS = 512
"""Steps of the longest."""


def _show_passes(settings: Settings) -> Reveal:
    steps = _chosen_passes(settings)
    walk = PassWalk(steps, int(settings["step"]), 1e9 * float(settings["nic"]))
    schedule, stages, count = str(settings["schedule"]), int(settings["pp"]), int(settings["m"])
    end = PassWalk(steps, len(steps.states), walk.nic_Bps)
    _, virtual = SCHEDULES[schedule]
    return Reveal(
        walk,
        (
            fill(
                _PASS_TEXTS[schedule], lambda name: PASSES.number(name, {"pp": stages, "m": count})
            ),
            _drawn(settings),
        ),
        (
            FormulaTable(
                name="Bubble without communication",
                symbols="(pp - 1) / (v m + pp - 1)",
                numbers=f"({stages} - 1) / ({virtual} · {count} + {stages} - 1) = "
                f"{percent((stages - 1) / (virtual * count + stages - 1))}; with it stages wait "
                f"{percent(end.waited)}",
                source="Narayanan et al. 2021 (SC), section 2.2",
            ),
            FormulaTable(
                name="Messages of a rank's peers over NICs",
                symbols="2 (v pp - 1) m",
                numbers=f"2 ({virtual} · {stages} - 1) {count} = "
                f"{2 * (virtual * stages - 1) * count} of "
                f"{bytes_in_words(MESSAGE)}",
                source="forward and backward over every boundary",
            ),
            FormulaTable(
                name="Iteration",
                symbols="sum(t) + (m - 1) max(t)",
                numbers=f"event by event {humanise_seconds(steps.seconds)}; the price, in which "
                f"every micro-batch waits for the slowest stage, "
                f"{humanise_seconds(steps.report.iteration_s)}",
                source="method.md, Time; pp - 1 is divided by v where stages are interleaved",
            ),
        ),
    )


_PASS_TEXTS = {
    "1F1B": "After its first micro-batches every stage runs one forward and one backward pass in "
    "turn. It waits while the first micro-batch climbs and while the last one comes back.",
    "interleaved": "Every stage holds {virtual} pieces of the model, so work reaches the last "
    "stage sooner; the bubble shrinks from {bubble:percent} to {half:percent}; every micro-batch "
    "goes over the NICs {more:2} times as often.",
}


_VIRTUAL = SCHEDULES["interleaved"][1]
_QUICK = 8


def _hop_s(nic_GBps: float) -> float:
    """Return what a message takes."""
    steps = passed("1F1B", 4, 4, nic_GBps)
    return float(steps.received_s[1, 0] - steps.begins_s[1, 0])


def _rounded_words(seconds: float) -> str:
    """Return a time in words, where sums in another order differ in their last digits."""
    return humanise_seconds(float(f"{seconds:.6g}"))


def _drawn(settings: Settings) -> str:
    """Say what the drawing's passes hold of a message."""
    hop = _rounded_words(_hop_s(float(settings["nic"])))
    return (
        f"A message that meets no other takes {hop}; a pass that receives one begins with it, and "
        "two that leave a node at once share its NICs."
    )


def _asked_passes(given: Settings, schedule: str, times: int = 1) -> PassSteps:
    """Return an iteration on NICs so many times as fast."""
    return passed(schedule, int(given["pp"]), int(given["m"]), times * float(given["nic_GBps"]))


def _bubble(given: Settings, virtual: int) -> float:
    pp, m = int(given["pp"]), int(given["m"])
    return (pp - 1) / (virtual * m + pp - 1)


PASSES = LessonFigure(
    "passes",
    (
        Control("schedule", "Schedule", tuple(SCHEDULES), PLAYED[0], "In which order passes run."),
        Control("pp", "Stages (pp)", STAGES, PLAYED[1], "A node of eight devices each: 2 to 8."),
        Control("m", "Micro-batches (m)", MICRO_BATCHES, PLAYED[2], "Per iteration: 8 or 16."),
        Control("nic", "NIC, GB/s", NICS, PLAYED[3], "One for each device: 25 to 200 GB/s."),
        Control(
            "step",
            "Step",
            tuple(range(MAX_PASS_STEPS + 1)),
            0,
            "From one end of a pass to the next.",
            stepped=True,
            last=lambda settings: len(_chosen_passes(settings).states) + 1,
        ),
    ),
    _show_passes,
    {
        "pp": Given(PLAYED[1], 2, 8),
        "m": Given(PLAYED[2], 2, 512),
        "nic_GBps": Given(float(PLAYED[3]), 1, 1000),
    },
    {
        "message": lambda given: bytes_in_words(MESSAGE),
        "per_node": lambda given: PER_NODE,
        "plain": lambda given: _asked_passes(given, "1F1B").seconds,
        "interleaved": lambda given: _asked_passes(given, "interleaved").seconds,
        "bubble": lambda given: _bubble(given, 1),
        "half": lambda given: _bubble(given, _VIRTUAL),
        "half_over": lambda given: (int(given["pp"]) - 1) / (_VIRTUAL * int(given["m"])),
        "ratio": lambda given: _bubble(given, _VIRTUAL) / _bubble(given, 1),
        "virtual": lambda given: _VIRTUAL,
        "more": lambda given: (_VIRTUAL * int(given["pp"]) - 1) / (int(given["pp"]) - 1),
        "hop": lambda given: _rounded_words(_hop_s(float(given["nic_GBps"]))),
        "pass": lambda given: FORWARD_S,
        "back": lambda given: BACKWARD_S,
        "quick_times": lambda given: _QUICK,
        "quick": lambda given: _asked_passes(given, "interleaved", _QUICK).seconds,
        "quick_plain": lambda given: _asked_passes(given, "1F1B", _QUICK).seconds,
    },
)
