"""Where every rank of a plan sits.

Ranks are numbered along the axes in ``order``, innermost first, and placed on consecutive
devices 0, 1, 2, …; the devices left over stay idle. ``("tp", "pp", "dp")`` is the paper's
placement (the stages of a replica side by side, replicas one after another), ``("tp", "dp",
"pp")`` Megatron-LM's (the replicas of a stage side by side).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.network import IntArray

__all__ = ["AXES", "Layout"]

AXES = ("tp", "cp", "dp", "pp")


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates of the devices in use.

    Parameters
    ----------
    tp, cp, dp, pp : int
        Degrees.
    order : tuple of str
        A permutation of `AXES`, innermost first.

    Examples
    --------
    >>> Layout(tp=2, cp=1, dp=2, pp=2, order=("tp", "pp", "cp", "dp")).devices
    array([[[0, 1],
            [4, 5]],
    <BLANKLINE>
           [[2, 3],
            [6, 7]]])
    """

    tp: int
    cp: int
    dp: int
    pp: int
    order: tuple[str, ...]

    @property
    def devices_used(self) -> int:
        """Number of devices that work."""
        return self.tp * self.cp * self.dp * self.pp

    def stride(self, axis: str) -> int:
        """Devices between neighbours on an axis."""
        step = 1
        for name in self.order:
            if name == axis:
                return step
            step *= int(getattr(self, name))
        raise KeyError(axis)

    @property
    def devices(self) -> IntArray:
        """Device of every rank, shape (pp, dp * cp, tp); dp * cp counts dp slowest."""
        tp = np.arange(self.tp) * self.stride("tp")
        cp = np.arange(self.cp) * self.stride("cp")
        dp = np.arange(self.dp) * self.stride("dp")
        pp = np.arange(self.pp) * self.stride("pp")
        replicas = (dp[:, None] + cp[None, :]).reshape(-1)
        return pp[:, None, None] + replicas[None, :, None] + tp[None, None, :]

    @property
    def nearest(self) -> IntArray:
        """Columns of the middle axis of `devices` in the order of their ranks, shape (dp * cp,).

        Examples
        --------
        >>> Layout(tp=1, cp=2, dp=2, pp=1, order=("tp", "dp", "cp", "pp")).nearest
        array([0, 2, 1, 3])
        """
        return np.argsort(self.devices[0, :, 0], kind="stable")

    def stage_of(self, devices: int) -> IntArray:
        """Stage of each of the fabric's devices; −1 where idle. Shape (devices,)."""
        result = np.full(devices, -1, dtype=np.int64)
        result[self.devices] = np.arange(self.pp)[:, None, None]
        return result
