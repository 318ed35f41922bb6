"""Lesson 9, NEST's level-wise program on eight devices, state by state.

Two nodes of four devices, four layers, stages two devices wide. The table is the paper's
``dp[l][i][k][e]``: the least slowest stage of ``e`` stages that hold layers ``i`` to the end on
``k`` devices counted from the far end, the producer at level ``l``. What a unit of data takes at a
level is read from the matrices of `nest_core.planner.levelwise`; which levels are real follows
from its slots: the producer of a stage that ends a node is in the other one, and a nearer stage
can be that far only by leaving devices idle.

References
----------
NEST, MLSys 2026, section 4 and algorithm 1.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from nest_core.costs import Point, Problem
from nest_core.documents.schema.lesson import FormulaTable
from nest_core.documents.units import plural
from nest_core.planner.levelwise import PAPER_ORDER, Slots, level_links, slots
from nest_core.report.tables import Table
from nest_core.teaching.lessons.figure import (
    LEVEL_NAMES,
    Given,
    LessonFigure,
    StageCut,
    bare_chain,
    stage_load,
)
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings
from nest_core.teaching.lessons.levels import network

__all__ = [
    "LAYERS",
    "PROGRAM",
    "SECONDS",
    "UNITS",
    "WIDTH",
    "Fill",
    "State",
    "chain",
    "chosen",
    "hop_seconds",
    "iteration",
    "path",
    "places",
    "states",
]

SECONDS = (6.0, 4.0, 8.0, 8.0)
"""Of a micro-batch on two devices, forward and backward, their own traffic included."""
UNITS = (0.0, 3.0, 2.0, 1.0, 0.0)
"""Data that enters layer ``i``; none at either end."""
LAYERS = len(SECONDS)
WIDTH = 2
PER_NODE = 4
MICRO_BATCHES = 4


@dataclass(frozen=True, slots=True)
class State:
    """A cell of the table.

    Parameters
    ----------
    stages : int
        That hold layers ``first`` to the end.
    level : int or None
        Of the link to their producer; None where they hold all layers.
    first : int
    slot, producer : int
        Where their first stage sits, and where its producer would: slots from the far end.
    ways : tuple of StageCut
    """

    stages: int
    level: int | None
    first: int
    slot: int
    producer: int
    ways: tuple[StageCut, ...]

    @property
    def best(self) -> StageCut:
        """The least; the earliest cut among equals."""
        return min(self.ways, key=lambda way: way.total)

    @property
    def devices(self) -> int:
        """Devices used and passed over before the producer's, or in all without one."""
        return WIDTH * (self.slot + 1 if self.level is None else self.producer)


@cache
def chain() -> Problem:
    """Return the layers on these devices."""
    return bare_chain(network(PER_NODE), SECONDS, (0.0,) * LAYERS, UNITS, MICRO_BATCHES)


@cache
def places() -> Slots:
    """Where stages may sit, from the far end."""
    result = slots(network(PER_NODE), PAPER_ORDER, 1, WIDTH)
    if result is None:
        raise ValueError("two devices fit into a node of four")
    return result


@cache
def hop_seconds() -> tuple[float, ...]:
    """Seconds of a unit of data over a link of each level, as the program reads them."""
    point = Point(WIDTH, True, 1, len(places()), 1, 0, PAPER_ORDER)
    return tuple(level_links(chain(), point, places()).forward.seconds(1.0)[1:].tolist())


@cache
def states() -> tuple[State, ...]:
    """Return the table in the order in which it is filled: fewest stages first, last layers first.

    Of states that differ in their devices alone, the one with the fewest is kept.
    """
    table: list[State] = []
    for stages in range(1, min(len(places()), LAYERS) + 1):
        # Where the first of so many stages may sit, and what it goes on with there.
        before = {state.level: state.producer for state in table if state.stages == stages - 1}
        before.pop(None, None)
        sits: dict[int, list[int | None]] = {0: [None]} if stages == 1 else {}
        for level, slot in before.items():
            sits.setdefault(slot, []).append(level)
        for level in range(len(hop_seconds())):
            fewest = [
                (producer, slot)
                for slot in sits
                for producer in range(slot + 1, len(places()))
                if places().level[slot + 1 : producer + 1].max() == level
            ]
            if fewest:
                producer, slot = min(fewest)
                for first in reversed(range(1, LAYERS - stages + 1)):
                    ways = tuple(_ways(table, stages, first, level, sits[slot]))
                    table.append(State(stages, level, first, slot, producer, ways))
        every = [(slot, level) for slot in sits for level in sits[slot]]
        ways = tuple(_ways(table, stages, 0, None, [level for _, level in every]))
        best = min(ways, key=lambda way: way.total)
        slot = next(slot for slot, level in every if _after(stages, level) == best.after)
        table.append(State(stages, None, 0, slot, slot, ways))
    return tuple(table)


def _after(stages: int, level: int | None) -> tuple[int, int] | None:
    return None if level is None else (stages - 1, level)


def _ways(
    table: list[State], stages: int, first: int, level: int | None, afters: list[int | None]
) -> Iterator[StageCut]:
    for after in afters:
        rest = {
            state.first: state.best.total
            for state in table
            if after is not None and (state.stages, state.level) == (stages - 1, after)
        }
        ends = [LAYERS] if stages == 1 else [end for end in sorted(rest) if end > first]
        for end in ends:
            load = stage_load((SECONDS, UNITS), hop_seconds(), (first, end), level, after)
            slowest = max(load, rest.get(end, 0.0))
            yield StageCut(end, load, rest.get(end, 0.0), slowest, _after(stages, after))


def path(state: State) -> tuple[State, ...]:
    """Return a state and those that it goes on with, down to the last stage."""
    states_on_path = [state]
    while (best := states_on_path[-1].best).after is not None:
        stages, level = best.after
        states_on_path.append(
            next(
                candidate
                for candidate in states()
                if (candidate.stages, candidate.level, candidate.first) == (stages, level, best.end)
            )
        )
    return tuple(states_on_path)


def iteration(state: State) -> float:
    """Seconds of an iteration of a state that holds all layers: the paper's objective."""
    return (MICRO_BATCHES + state.stages - 1) * state.best.total


def chosen() -> State:
    """Return the state with the shortest iteration, the fewest stages among equals."""
    return min((state for state in states() if state.level is None), key=iteration)


_STEPS = tuple(range(len(states()) + 2))


@dataclass(frozen=True, slots=True)
class Fill:
    """The table so far.

    Parameters
    ----------
    filled : tuple of State
        In order; the last is the one just filled.
    shown : tuple of State
        What devices and layers show: the path of the state just filled, or of the answer.
    done : bool
        Whether the answer is traced back.
    """

    filled: tuple[State, ...]
    shown: tuple[State, ...]
    done: bool


def _show(settings: Settings) -> Reveal:
    step, every = int(settings["step"]), states()
    filled, done = every[:step], step > len(every)
    last = chosen() if done else filled[-1] if filled else None
    fill = Fill(filled, path(last) if last else (), done)
    formulas = [_recurrence(last)] if last else []
    tables = (_objective(),) if done else (_compared(last),) if last else ()
    return Reveal(fill, _told(fill, last), (*formulas, _matrices()), tables)


def _told(fill: Fill, last: State | None) -> tuple[str, ...]:
    if last is None:
        return (
            "The table is filled from the last stage to the first. Layers and devices are counted "
            "from the far end, so that what is known never moves.",
            "Step forward to fill the first state.",
        )
    if fill.done:
        best = fill.shown[0]
        idle = WIDTH * (best.slot + 1 - best.stages)
        return (
            f"The shortest iteration has {best.stages} stages on {WIDTH * best.stages} devices"
            + (f" and leaves {idle} idle between them" if idle else "")
            + f": {iteration(best):g} s. It is read back along the outlined states.",
            "The plan is exact for what the program counts: the slowest stage. The exact search "
            "weighs the sum of the stages too, and links in place of levels.",
        )
    many = plural(last.stages, "stage")
    if last.level is None:
        return (
            f"All layers on {many}: there is no producer, and this row can be an answer.",
            f"The slowest stage takes {last.best.total:g} s: an iteration of {MICRO_BATCHES} "
            f"micro-batches {iteration(last):g} s.",
        )
    skipped = WIDTH * (last.producer - last.slot - 1)
    return (
        f"{many} from layer {last.first + 1} on; the stage before sits in the "
        f"{LEVEL_NAMES[last.level]}, {last.devices} devices from the far end.",
        f"To have it that far, {skipped} devices stay idle."
        if skipped
        else "That is the next free place, so no device is passed over.",
    )


def _recurrence(last: State) -> FormulaTable:
    best = last.best
    producer = "–" if last.level is None else str(last.level)
    rest = f", {best.rest:g}" if best.after else ""
    return FormulaTable(
        name="The state just filled, seconds" if last.level is not None else "All layers, seconds",
        symbols="dp[l][i][k][e] = min over j, l' of max(load(i..j-1; l, l'), "
        "dp[l'][j][k - a][e - 1])",
        numbers=f"dp[{producer}][{last.first}][{last.devices}][{last.stages}] = "
        f"max({best.load:g}{rest}) = {best.total:g}, with j = {best.end}",
        source="NEST, MLSys 2026, algorithm 1; a = 2 devices per stage",
    )


def _matrices() -> FormulaTable:
    inside, across = hop_seconds()
    return FormulaTable(
        name="What the program knows of the fabric",
        symbols="seconds of a unit of data, by level",
        numbers=f"{LEVEL_NAMES[0]}: {inside:g}; {LEVEL_NAMES[1]}: {across:g}, as both devices of a "
        "stage share their node's uplink",
        source="method.md, NEST's level-wise cost matrices",
    )


def _compared(last: State) -> Table:
    return Table(
        "What the state was the least of",
        "One line per cut and level of the link",
        tuple(
            {
                "stage takes layers": f"{last.first + 1}"
                + (f" to {way.end}" if way.end > last.first + 1 else ""),
                "consumer": LEVEL_NAMES[way.after[1]] if way.after else "none",
                "its load, s": f"{way.load:g}",
                "goes on with, s": f"{way.rest:g}" if way.after else "–",
                "slowest, s": f"{way.total:g}",
                "": "least" if way == last.best else "",
            }
            for way in last.ways
        ),
    )


def _objective() -> Table:
    best = chosen()
    return Table(
        "Which answer is taken",
        f"m = {MICRO_BATCHES} micro-batches",
        tuple(
            {
                "stages": str(state.stages),
                "slowest, s": f"{state.best.total:g}",
                "(m + S - 1) max t, s": f"{iteration(state):g}",
                "": "chosen" if state == best else "",
            }
            for state in states()
            if state.level is None
        ),
    )


def _packed() -> float:
    """Return the best of as many stages as chosen, with no device idle between them."""
    count, between = chosen().stages, places().level.tolist()
    every = [
        max(
            stage_load(
                (SECONDS, UNITS),
                hop_seconds(),
                (first, end),
                between[count - place] if place else None,
                between[count - 1 - place] if place < count - 1 else None,
            )
            for place, (first, end) in enumerate(itertools.pairwise((0, *inner, LAYERS)))
        )
        for inner in itertools.combinations(range(1, LAYERS), count - 1)
    ]
    return (MICRO_BATCHES + count - 1) * min(every)


def _times(given: Settings) -> list[float]:
    """Return seconds of the stages of the exercise."""
    return [float(given[name]) for name in ("t1", "t2", "t3")]


PROGRAM = LessonFigure(
    "program",
    (
        Control(
            "step",
            "Step",
            _STEPS,
            0,
            f"States filled: 0 to {_STEPS[-2]}, last stage first; then the answer is read back.",
            stepped=True,
        ),
    ),
    _show,
    {
        "t1": Given(8.0, 0, 1e6),
        "t2": Given(8.0, 0, 1e6),
        "t3": Given(8.0, 0, 1e6),
        "micro_batches": Given(MICRO_BATCHES, 1, 4096),
    },
    {
        "layers": lambda given: LAYERS,
        "times": lambda given: ", ".join(f"{seconds:g}" for seconds in SECONDS),
        "data": lambda given: ", ".join(f"{units:g}" for units in UNITS[1:-1]),
        "width": lambda given: WIDTH,
        "nodes": lambda given: int(network(PER_NODE).node.max()) + 1,
        "per_node": lambda given: int((network(PER_NODE).node == 0).sum()),
        "devices": lambda given: network(PER_NODE).devices,
        "least": lambda given: min(UNITS[1:-1]),
        "stages": lambda given: len(_times(given)),
        "inside": lambda given: hop_seconds()[0],
        "across": lambda given: hop_seconds()[1],
        "m": lambda given: MICRO_BATCHES,
        "working": lambda given: WIDTH * chosen().stages,
        "best_stages": lambda given: chosen().stages,
        "idle": lambda given: network(PER_NODE).devices - WIDTH * chosen().stages,
        "packed": lambda given: _packed(),
        "best": lambda given: iteration(chosen()),
        "objective": lambda given: (
            (int(given["micro_batches"]) + len(_times(given)) - 1) * max(_times(given))
        ),
        "unfilled": lambda given: int(given["micro_batches"]) * max(_times(given)),
        "summed": lambda given: (
            sum(_times(given)) + (int(given["micro_batches"]) - 1) * max(_times(given))
        ),
    },
)
