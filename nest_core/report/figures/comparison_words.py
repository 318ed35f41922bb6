"""What keeps scenarios that are compared from being designs for the same thing."""

from __future__ import annotations

from nest_core.studies.comparison import Comparison

__all__ = ["unlike"]


def unlike(comparison: Comparison) -> tuple[str, ...]:
    """Return what keeps candidates from being designs for the same thing, to stand above all."""
    sentences = []
    sizes = {candidate.scenario.fabric.devices for candidate in comparison.candidates}
    if len(sizes) > 1:
        sentences.append(
            f"These designs differ in size, {min(sizes):,} to {max(sizes):,} devices: throughput, "
            "price and power are those of each as a whole."
        )
    if not comparison.one_job:
        sentences.append(
            "They do not train the same job (model, sequence length or batch): a token per second "
            "of one is not one of another."
        )
    return tuple(sentences)
