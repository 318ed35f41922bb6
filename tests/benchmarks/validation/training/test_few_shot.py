"""Few runs of a source tell its others, where the source has something in common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.validation.training.few_shot import COUNTS, evenly, few_shot, few_shot_section
from benchmarks.validation.training.posterior import Evidence, grouped_without, left_out
from nest_core.hardware.posterior import PARAMETERS


@pytest.fixture(scope="module")
def found(one):
    """Four sources of 14 runs, each as slow as it is, with an error of 2 % on every run."""
    rng = np.random.default_rng(3)
    run = one(quality="A").run
    return [
        Evidence(
            replace(run, id=f"{source} {number}", source=f"owner/{source}"),
            common + rng.normal(0, 0.02),
            0.0,
            np.append(rng.dirichlet(np.ones(len(PARAMETERS) - 1)), 0.1),
            np.zeros(len(PARAMETERS)),
        )
        for source, common in zip("abcd", (-0.15, 0.0, 0.1, 0.3), strict=True)
        for number in range(14)
    ]


def test_some_known_runs_tell_the_others(found):
    medians = {
        count: np.mean([each.median for each in few_shot(found) if each.known == count])
        for count in COUNTS
    }
    assert medians[0] > 0.1
    assert max(medians[3], medians[8]) < 0.03


def test_sources_with_too_few_runs_are_left_out(found):
    assert {each.source for each in few_shot(found[:-3])} == {"owner/a", "owner/b", "owner/c"}


def test_runs_are_chosen_without_their_times(found):
    chosen = evenly(found[:14], 3)
    assert len(set(chosen)) == 3
    assert chosen == evenly([replace(item, measured=9.0) for item in found[:14]], 3)


def test_together_sources_are_predicted_as_run_by_run(found):
    """`left_out`'s spread is the diagonal of what the runs of a source share and have alone."""
    (first, *_) = grouped_without(found)
    alone = left_out(found)[0]
    assert alone.spread**2 == pytest.approx(first.covariance[0, 0])
    assert alone.measured - alone.predicted == pytest.approx(first.off[0])
    assert np.linalg.eigvalsh(first.covariance).min() > 0


def test_the_section_has_every_source_and_the_means(found):
    lines = few_shot_section(few_shot(found))
    assert sum(line.startswith("| owner/") for line in lines) == 4
    assert lines[-1].startswith("| mean of the medians")
