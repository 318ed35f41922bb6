"""What every planner reaches in one case, in sequences per unit of time, under either costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Outcome", "Rival"]


@dataclass(frozen=True, slots=True)
class Rival:
    """Another planner's placement, priced.

    Parameters
    ----------
    as_published : float or None
        Throughput with its stages in reverse order, as the artifact prices them.
    right_order : float or None
        Throughput of the same placement in its right order.
    as_published_reason, right_order_reason : str
        Why there is none; empty otherwise.
    plan : mapping or None
        Degrees.
    search_seconds : float or None
        Of the search here; None where the placement was given.
    """

    as_published: float | None
    right_order: float | None
    as_published_reason: str
    right_order_reason: str
    plan: Mapping[str, Any] | None = None
    search_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Our optimum and its rivals.

    Parameters
    ----------
    ours : float or None
        Throughput of the proven optimum.
    reason : str
        Why there is none; empty otherwise.
    plan : mapping or None
        Degrees of the optimum, with ``devices_used``.
    search_seconds : float or None
    rivals : mapping
        By planner, lower case.
    even_division : float or None
        Throughput if the layers' work, as the optimum does it, were spread over all devices
        with no idle time and no transfers; published costs only.
    widths : tuple of int
        Tensor widths that the search could choose from.
    """

    ours: float | None
    reason: str
    plan: Mapping[str, Any] | None
    search_seconds: float | None
    rivals: Mapping[str, Rival]
    even_division: float | None = None
    widths: tuple[int, ...] = ()
