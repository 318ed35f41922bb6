"""Where devices, nodes, NICs and the leaf stand in a drawing of a lesson.

Nodes stand side by side under one leaf; devices of a node in rows of equal length. A link is as
wide as its capacity: one scale serves the links within nodes and the NICs.
"""

from dataclasses import dataclass

__all__ = ["Racks"]

_LEAF, _TOP, _GAP = 40.0, 128.0, 12.0
_LEAST_PITCH = 28.0
_WIDEST = 27.0


@dataclass(frozen=True, slots=True)
class Racks:
    """Places in pixels.

    Parameters
    ----------
    width : float
    nodes, per_node : int
    capacities : (float, float)
        Of a device within its node and of its NIC, bytes/s; 0 where there is none.
    short : bool
        Whether devices are low, and words stand at the foot of their node.
    """

    width: float
    nodes: int
    per_node: int
    capacities: tuple[float, float]
    short: bool = False

    @property
    def node_width(self) -> float:
        """Of a node's frame."""
        return (self.width - 4 - _GAP * (self.nodes - 1)) / self.nodes

    @property
    def _inner(self) -> float:
        return self.node_width - (24 if self.node_width > 120 else 8)

    @property
    def columns(self) -> int:
        """Devices in a row: as many as have room, in equal rows."""
        return max(
            (
                n
                for n in range(1, self.per_node + 1)
                if self.per_node % n == 0 and self._inner / n >= _LEAST_PITCH
            ),
            default=1,
        )

    @property
    def rows(self) -> int:
        """Of devices in a node."""
        return self.per_node // self.columns

    @property
    def pitch(self) -> float:
        """From a device to the next."""
        return self._inner / self.columns

    @property
    def box(self) -> tuple[float, float]:
        """Width and height of a device."""
        if self.short:
            wide = self.pitch - max(4.0, 0.14 * self.pitch)
            return wide, {1: 56.0, 2: 32.0}.get(self.rows, 22.0)
        return (
            (self.pitch * 0.79, 96.0)
            if self.rows == 1
            else (self.pitch - max(8.0, 0.2 * self.pitch), 76.0 if self.rows == 2 else 44.0)
        )

    @property
    def row_height(self) -> float:
        """From a row of devices to the next; their numbers stand below one row, else inside."""
        return self.box[1] + (4 if self.short else 24 if self.rows == 1 else 10)

    @property
    def leaf(self) -> tuple[float, float, float, float]:
        """The leaf's x, y, width and height."""
        return 20, 8, self.width - 40, _LEAF

    @property
    def top(self) -> float:
        """Where nodes begin."""
        return 8.0 if self.nodes == 1 else _TOP - 32 if self.short or self.rows > 1 else _TOP

    @property
    def first_row(self) -> float:
        """Where the first devices begin."""
        return self.top + (48 if self.rows == 1 and not self.short else 36)

    @property
    def bottom(self) -> float:
        """Where nodes end."""
        foot = 28 if self.rows == 1 or self.short else 0
        return self.first_row + self.rows * self.row_height + foot

    def node_x(self, node: int) -> float:
        """Left edge of a node."""
        return 2 + node * (self.node_width + _GAP)

    def cell(self, device: int) -> tuple[int, int]:
        """Row and column of a device in its node; every second row runs back."""
        row, column = divmod(device % self.per_node, self.columns)
        return row, self.columns - 1 - column if row % 2 else column

    def place(self, device: int) -> tuple[float, float]:
        """Upper left corner of a device."""
        row, column = self.cell(device)
        width, _ = self.box
        x = self.node_x(device // self.per_node) + (self.node_width - self._inner) / 2
        return x + column * self.pitch + (self.pitch - width) / 2, (
            self.first_row + row * self.row_height
        )

    def nic(self, device: int, *, out: bool) -> tuple[float, float]:
        """Where a device's NIC line stands, and where it ends below."""
        x, y = self.place(device)
        width, _ = self.box
        if self.rows == 1 and not self.short:
            return x + width * (0.7 if out else 0.3), y
        node, inside = divmod(device, self.per_node)
        spacing = self.node_width / (2 * self.per_node + 1)
        return self.node_x(node) + (2 * inside + (1 if out else 0) + 1) * spacing, self.top

    def thick(self, capacity: float) -> float:
        """Width of a link of a capacity."""
        return max(1.0, min(_WIDEST, 0.36 * self.pitch) * capacity / max(self.capacities))
