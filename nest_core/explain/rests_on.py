"""What an answer rests on, in two short sentences."""

from __future__ import annotations

from nest_core.documents.units import percent, signed_percent
from nest_core.explain.validity import Validity
from nest_core.planner import SearchResult

__all__ = ["rests_on"]


def rests_on(validity: Validity | None, result: SearchResult) -> str:
    """Measured runs like the plan, and the proof.

    Parameters
    ----------
    validity : Validity or None
        Of the best plan; None without one.
    result : SearchResult
    """
    parts = [] if validity is None else [_runs(validity)]
    certificate = result.certificate
    if not certificate.proven:
        parts.append(f"Stopped early: within {percent(certificate.gap)} of the optimum.")
    elif result.best is None:
        parts.append(f"None of {certificate.points:,} plans fits.")
    else:
        parts.append(f"Optimal within the model: none of {certificate.points:,} plans is faster.")
    return " ".join(parts)


def _runs(validity: Validity) -> str:
    band = validity.band
    if band is not None:
        runs = f"{band.n} measured runs like this one ({band.region})"
        words = (
            f"{runs}: {signed_percent(band.p10).removesuffix(' %')} to {signed_percent(band.p90)}."
        )
        return f"{words} {validity.caveat}".strip()
    if validity.nearest is None:
        return "No measured run here: none is known."
    return f"No measured run here: unlike the nearest, {'; '.join(validity.differs)}."
