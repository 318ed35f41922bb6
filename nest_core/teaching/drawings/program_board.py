"""Boards of the two lessons on programs that place stages: on levels, and NEST's own."""

from collections.abc import Iterator

from nest_core.teaching.drawings.drawing import Board, BoardCell, BoardDevice, DeviceLook, Hop
from nest_core.teaching.lessons import levels, program
from nest_core.teaching.lessons.figure import LEVEL_NAMES
from nest_core.teaching.lessons.levels import DynamicTable, LevelCell
from nest_core.teaching.lessons.program import Fill, State

__all__ = ["levels_board", "program_board"]

_STEP = "Step forward: the right arrow, or the button."


def program_board(fill: Fill) -> Board:
    """Return where the stages of NEST's program stand, and the states filled so far."""
    inside, across = program.hop_seconds()
    last = None if fill.done or not fill.filled else fill.filled[-1]
    read = _read_states(fill, last)
    names = {
        (state.stages, state.level): f"e = {state.stages}, k = {state.devices}, "
        f"{_before(state.level)}"
        for state in program.states()
    }
    rows = list(names)
    cells = {
        (rows.index((state.stages, state.level)), state.first): BoardCell(
            f"{state.best.total:g}" if state in fill.filled else "",
            "new" if state is last else "read" if state in read else "",
        )
        for state in program.states()
    }
    slots = program.places().devices[:, 0].tolist()
    return Board(
        _program_finding(fill),
        f"A unit of data: {inside:g} s within a node, {across:g} s between nodes; "
        "below, seconds of the slowest stage",
        _STEP,
        tuple(
            _program_device(fill, slot, device)
            for slot, devices in enumerate(slots)
            for device in devices
        ),
        tuple(
            Hop(
                slots[state.producer][-1],
                slots[state.slot][0],
                program.UNITS[state.first],
                state.first + 1,
                program.UNITS[state.first] * program.hop_seconds()[state.level],
            )
            for state in fill.shown
            if state.level is not None
        ),
        _columns(program.SECONDS),
        tuple(names.values()),
        cells,
    )


def _before(level: int | None) -> str:
    return "no stage before" if level is None else f"before: {LEVEL_NAMES[level]}"


def _columns(seconds: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(f"layer {layer}: {time:g} s" for layer, time in enumerate(seconds, start=1))


def _program_finding(fill: Fill) -> str:
    count = len(program.states())
    if fill.done:
        best = fill.shown[0]
        return (
            f"Read back: {best.stages} stages on {program.WIDTH * best.stages} of 8 devices, "
            f"{program.iteration(best):g} s an iteration"
        )
    if not fill.filled:
        return f"{count} states to fill, the last stage first"
    last = fill.filled[-1]
    ways = len(last.ways)
    how = "the only way" if ways == 1 else f"the least of {ways} ways"
    iteration = "" if last.level is not None else f"; an iteration {program.iteration(last):g} s"
    return (
        f"State {len(fill.filled)} of {count}: the slowest stage takes "
        f"{last.best.total:g} s, {how}{iteration}"
    )


def _program_device(fill: Fill, slot: int, device: int) -> BoardDevice:
    for order, state in enumerate(fill.shown):
        if state.slot == slot:
            look: DeviceLook = "new" if order == 0 or fill.done else "placed"
            return BoardDevice(f"e = {state.stages}", look, str(device))
    first = fill.shown[0] if fill.shown else None
    if first is not None and first.level is not None and first.producer == slot:
        return BoardDevice("before?", "producer", str(device))
    if first is not None and (fill.done or slot < first.producer):
        return BoardDevice("idle", "idle", str(device))
    return BoardDevice("", "", str(device))


def _read_states(fill: Fill, last: State | None) -> list[State]:
    """Return the states that the last one compared; of the answer its whole path."""
    if last is None:
        return list(fill.shown)
    keys = {(*way.after, way.end) for way in last.ways if way.after}
    return [state for state in program.states() if (state.stages, state.level, state.first) in keys]


def levels_board(table: DynamicTable) -> Board:
    """Return where the stages of the blackboard example stand, and the cells filled so far."""
    last = table.filled[-1] if table.filled else None
    rows = list(dict.fromkeys((cell.stage, cell.level) for cell in table.whole))
    cells = {
        (rows.index((cell.stage, cell.level)), cell.first): BoardCell(
            f"{cell.best.total:g}" if cell in table.filled else "",
            "new" if cell is last else "read" if _is_read(table, cell, last) else "",
        )
        for cell in table.whole
    }
    inside, across = levels.hop_seconds()
    what = "sum of the stages" if table.objective == "sum" else "slowest stage"
    chain = _chain(table, last)
    return Board(
        _levels_finding(table, last),
        f"A unit of data: {inside:g} s within a node, {across:g} s between nodes; below, least "
        f"seconds from a stage on: {what}",
        _assumption(table, last),
        tuple(_levels_device(table, chain, device) for device in range(levels.network().devices)),
        tuple(_levels_hops(table, chain)),
        _columns(levels.SECONDS),
        tuple(f"stage {stage + 1}, {_before(level)}" for stage, level in rows),
        cells,
    )


def _chain(table: DynamicTable, cell: LevelCell | None) -> list[LevelCell]:
    """Return the cell just filled and those that it goes on with, down to the last stage."""
    by_key = {(other.stage, other.first, other.level): other for other in table.filled}
    chain = [cell] if cell is not None else []
    while chain and chain[-1].stage < levels.STAGES - 1:
        stage = chain[-1].stage
        chain.append(by_key[stage + 1, chain[-1].best.end, table.between[stage]])
    return chain


def _levels_device(table: DynamicTable, chain: list[LevelCell], device: int) -> BoardDevice:
    for order, cell in enumerate(chain):
        if table.devices[cell.stage] == device:
            first, end = cell.first + 1, cell.best.end
            layers = f"layer {end}" if first == end else f"layers {first} to {end}"
            look: DeviceLook = "new" if order == 0 or table.cuts else "placed"
            return BoardDevice(f"stage {cell.stage + 1}", look, layers)
    if chain and device == assumed_device(table, chain[0]):
        return BoardDevice(f"stage {chain[0].stage}?", "producer", f"device {device}")
    return BoardDevice("", "", f"device {device}")


def _levels_hops(table: DynamicTable, chain: list[LevelCell]) -> Iterator[Hop]:
    """Yield what goes into every stage placed so far; into the first one from where it may be."""
    for cell in chain:
        source = assumed_device(table, cell) if cell is chain[0] else table.devices[cell.stage - 1]
        if source is not None and cell.level is not None:
            units = levels.UNITS[cell.first]
            seconds = units * levels.hop_seconds()[cell.level]
            yield Hop(source, table.devices[cell.stage], units, cell.first + 1, seconds)


def assumed_device(table: DynamicTable, cell: LevelCell) -> int | None:
    """Return a device at the level that a cell assumes, the real one where it fits.

    None where all of them are taken, and of the first stage.
    """
    if cell.level is None:
        return None
    network = levels.network()
    fitting = [
        device
        for device in range(network.devices)
        if device not in table.devices[cell.stage :]
        and int(network.level(table.devices[cell.stage], device)) == cell.level
    ]
    real = table.devices[cell.stage - 1]
    return real if real in fitting else next(iter(fitting), None)


def _assumption(table: DynamicTable, cell: LevelCell | None) -> str:
    """Return what the row of a cell takes for granted."""
    if cell is None:
        return _STEP
    if cell.level is None:
        return "The first stage has no producer: one row is enough."
    hops = levels.hop_seconds()
    full = " (full)" if assumed_device(table, cell) is None else ""
    text = (
        f"This row: producer in the {LEVEL_NAMES[cell.level]}{full}, {hops[cell.level]:g} s per "
        "unit"
    )
    if cell.stage < levels.STAGES - 1:
        after = table.between[cell.stage]
        text += f"; known: consumer in the {LEVEL_NAMES[after]}, {hops[after]:g} s per unit"
    return f"{text}."


def _is_read(table: DynamicTable, cell: LevelCell, last: LevelCell | None) -> bool:
    """Return whether the cell just filled was computed from this one."""
    if last is None or last.stage == levels.STAGES - 1:
        return False
    ends = [candidate.end for candidate in last.candidates]
    return (
        cell.stage == last.stage + 1
        and cell.level == table.between[last.stage]
        and cell.first in ends
    )


def _levels_finding(table: DynamicTable, last: LevelCell | None) -> str:
    if last is None:
        return f"{len(table.whole)} cells to fill"
    ways = len(last.candidates)
    how = "the only way" if ways == 1 else f"the least of {ways}"
    count = f"{len(table.filled)} of {len(table.whole)} cells"
    return f"{count}: {last.best.total:g} s, {how}"
