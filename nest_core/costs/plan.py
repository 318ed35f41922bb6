"""Plans: what is decided, and nothing that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.layout import Layout

__all__ = ["Plan", "Point"]


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """An outer point of the search: everything that fixes the layout and the schedule.

    Parameters
    ----------
    tp, sp, dp, pp : degrees; ``sp`` has tensor parallelism's degree
    micro_batch : int
        Sequences.
    zero : int
        ZeRO stage 0-3.
    order : tuple of str
        Axes, innermost first.
    device_order : str
        Which devices carry the ranks, one of `DEVICE_ORDERS`.
    """

    tp: int
    sp: bool
    dp: int
    pp: int
    micro_batch: int
    zero: int
    order: tuple[str, ...]
    device_order: str = "natural"

    @property
    def layout(self) -> Layout:
        """Where every rank sits."""
        return Layout(self.tp, 1, self.dp, self.pp, self.order)

    @property
    def devices_used(self) -> int:
        """Number of devices that work."""
        return self.tp * self.dp * self.pp

    def micro_batches(self, batch: int) -> int:
        """Micro-batches that each replica runs per iteration."""
        return batch // (self.dp * self.micro_batch)


@dataclass(frozen=True, slots=True)
class Plan:
    """A point with its stages.

    Parameters
    ----------
    point : Point
    cuts : tuple of int
        Stage ``s`` holds layers ``cuts[s]`` to ``cuts[s + 1] - 1``; length ``pp + 1``.
    recompute : tuple of str
        Per stage: none, selective or full.
    """

    point: Point
    cuts: tuple[int, ...]
    recompute: tuple[str, ...]

    @property
    def recompute_summary(self) -> str:
        """The common choice, or ``mixed``."""
        return self.recompute[0] if len(set(self.recompute)) == 1 else "mixed"

    def to_json(self) -> dict[str, object]:
        """The fields of the command line's ``plan``."""
        point = self.point
        return {
            "dp": point.dp,
            "tp": point.tp,
            "pp": point.pp,
            "cp": 1,
            "ep": 1,
            "sp": point.sp,
            "zero": point.zero,
            "recompute": self.recompute_summary,
            "micro_batch": point.micro_batch,
            "schedule": "1f1b",
            "interleave": 1,
            "order": list(point.order),
            "device_order": point.device_order,
            "devices_used": point.devices_used,
            "cuts": list(self.cuts),
            "stage_recompute": list(self.recompute),
        }
