"""What one device does in a program as XLA prints it, loops counted as often as they run.

On processors XLA sums 16 bits in 32 and has no reduce-scatter: such a sum counts half, and one of
which every member keeps a part counts as a reduce-scatter.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

COLLECTIVES = (
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all",
    "collective-permute",
)  # fmt: skip
BYTES = {"f32": 4, "bf16": 2, "f16": 2}
"""By type; of integers and keys no tensor of the model is."""
LEAST = 64
"""Elements; what has fewer counts or measures."""
_LINE = re.compile(r"\s+(?:ROOT )?%([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)")
_SHAPE = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
_NAME = re.compile(r"%([\w.\-]+(?:#\d+)?)")
_CALLED = re.compile(r"(?:calls|body)=%([\w.\-]+)")
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
_SUMMED = re.compile(r"lhs_contracting_dims=\{([\d,]+)\}")
_MESH = re.compile(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_ROW = re.compile(r"\{([\d,]+)\}")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{(\{.*?\})\}")


@dataclass(frozen=True, slots=True)
class Operation:
    """A line of a computation: shapes are type and sizes of all results."""

    name: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    kind: str
    rest: str

    @property
    def operands(self) -> list[str]:
        """Return names of operands and of what is called."""
        return _NAME.findall(self.rest)

    @property
    def trips(self) -> int:
        """Return how often a loop runs; anything else runs once."""
        match = _TRIPS.search(self.rest) if self.kind == "while" else None
        return int(match[1]) if match else 1


class Program:
    """A program's computations by name."""

    def __init__(self, text: str) -> None:
        self.bodies: dict[str, list[Operation]] = {}
        self.entry = name = ""
        for line in text.splitlines():
            if line[:1] in "%E" and line.endswith("{"):
                name = line.removeprefix("ENTRY ").split()[0].lstrip("%")
                self.bodies[name] = []
                self.entry = name if line.startswith("ENTRY") else self.entry
            elif match := _LINE.match(line):
                shapes = tuple(
                    (kind, tuple(int(n) for n in sizes.split(",") if n))
                    for kind, sizes in _SHAPE.findall(match[2])
                )
                self.bodies[name].append(Operation(match[1], shapes, match[3], match[4]))

    def operations(self, name: str = "", times: int = 1) -> Iterator[tuple[str, Operation, int]]:
        """Give computation, operation and how often it runs, of all that run."""
        name = name or self.entry
        for operation in self.bodies[name]:
            yield name, operation, times
            for called in _CALLED.findall(operation.rest):
                yield from self.operations(called, times * operation.trips)

    def operand(self, body: str, operation: Operation) -> Operation:
        """Return what makes the first operand."""
        return next(other for other in self.bodies[body] if other.name == operation.operands[0])

    def flops(self) -> int:
        """Return the operations of all matrix products."""
        total = 0
        for body, operation, times in self.operations():
            if operation.kind == "dot":
                sizes = self.operand(body, operation).shapes[0][1]
                summed = _SUMMED.search(operation.rest)
                inner = math.prod(sizes[int(n)] for n in summed[1].split(",")) if summed else 1
                total += 2 * math.prod(operation.shapes[0][1]) * inner * times
        return total

    def collectives(self) -> list[tuple[str, list[list[int]], int]]:
        """Return kind, groups and bytes of whole tensors of all collectives."""
        sizes: Counter[tuple[str, tuple[tuple[int, ...], ...]]] = Counter()
        for body, operation, times in self.operations():
            if operation.kind not in COLLECTIVES:
                continue
            groups = tuple(map(tuple, groups_of(operation.rest)))
            for place, (type_, dimensions) in enumerate(operation.shapes):
                elements = math.prod(dimensions)
                if type_ not in BYTES or elements < LEAST:
                    continue
                kind = operation.kind
                if kind == "ragged-all-to-all":  # one of its buffers has room for the worst
                    given = self.operand(body, operation).shapes[0][1]
                    elements, kind = min(elements, math.prod(given)), "all-to-all"
                if len(groups[0]) == 1:
                    continue
                size = BYTES[type_] // (1 + ("_promoted" in operation.rest)) * elements * times
                if kind == "reduce-scatter":
                    size *= len(groups[0])
                elif kind == "all-reduce" and self._cut(body, operation, place, len(groups[0])):
                    kind = "reduce-scatter"
                sizes[kind, groups] += size
        return [(kind, list(map(list, groups)), size) for (kind, groups), size in sizes.items()]

    def _cut(self, body: str, operation: Operation, place: int, parts: int) -> bool:
        """Return whether a part alone of a result is used."""
        name = operation.name
        if len(operation.shapes) > 1:
            users = (
                user.name
                for user in self.bodies[body]
                if user.kind == "get-tuple-element"
                and name in user.operands
                and f"index={place}," in f"{user.rest},"
            )
            name = next(users, f"{name}#{place}")
        return self._sliced(body, name, math.prod(operation.shapes[place][1]), parts)

    def _sliced(self, body: str, name: str, elements: int, parts: int) -> bool:
        users = [user for user in self.bodies[body] if name in user.operands]
        answers = []
        for user in users:
            called = [self.bodies[inner] for inner in _CALLED.findall(user.rest)]
            if any(
                inner.kind == "dynamic-slice" and math.prod(inner.shapes[0][1]) == elements // parts
                for inner in [user, *(operation for body in called for operation in body)]
            ):
                answers.append(True)
            elif user.shapes and math.prod(user.shapes[0][1]) == elements:
                answers.append(self._sliced(body, user.name, elements, parts))
            else:
                answers.append(False)
        return bool(answers) and all(answers)


def groups_of(rest: str) -> list[list[int]]:
    """Return the devices of every group of a collective, or the pairs of a permute.

    Examples
    --------
    >>> groups_of("replica_groups=[2,2]<=[2,2]T(1,0), x")
    [[0, 2], [1, 3]]
    >>> groups_of("replica_groups=mesh['a'=2,'b'=2] {'b'}, x")
    [[0, 1], [2, 3]]
    """
    if match := _MESH.search(rest):
        axes = dict(re.findall(r"'(\w+)'=(\d+)", match[1]))
        return _along({axis: int(size) for axis, size in axes.items()}, match[2])
    if match := _IOTA.search(rest):
        shape, sizes = ([int(n) for n in match[k].split(",")] for k in (1, 2))
        order = [int(n) for n in match[3].split(",")] if match[3] else list(range(len(sizes)))
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        flat = [
            sum(place * strides[axis] for place, axis in zip(places, order, strict=True))
            for places in product(*(range(sizes[axis]) for axis in order))
        ]
        return [flat[start : start + shape[1]] for start in range(0, len(flat), shape[1])]
    if match := _LISTED.search(rest):
        return joined([list(map(int, row.split(","))) for row in _ROW.findall(match[1])])
    raise ValueError(f"groups of another form: {rest[:300]}")


def joined(rows: list[list[int]]) -> list[list[int]]:
    """Return rows with those joined that share a member, as a ring's pairs do.

    Examples
    --------
    >>> joined([[0, 2], [1, 3], [2, 0], [3, 1]])
    [[0, 2], [1, 3]]
    """
    groups: list[set[int]] = []
    for row in rows:
        group = set(row).union(*(other for other in groups if other & set(row)))
        groups = [*(other for other in groups if not other & group), group]
    return sorted(map(sorted, groups))


def _along(axes: dict[str, int], form: str) -> list[list[int]]:
    """Return groups of devices that lie along some axes of a mesh, of which a part may be."""
    inside = re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", form)
    names = {axis for axis, *_ in inside}
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, places in enumerate(product(*(range(size) for size in axes.values()))):
        at = dict(zip(axes, places, strict=True))
        key = [place for axis, place in at.items() if axis not in names]
        for axis, before, size in inside:
            if size:  # of an axis of `before` x size x the rest, the middle
                rest = axes[axis] // (int(before) * int(size))
                key += [at[axis] // (int(size) * rest), at[axis] % rest]
        groups.setdefault(tuple(key), []).append(number)
    return list(groups.values())
