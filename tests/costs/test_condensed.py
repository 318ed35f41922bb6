"""Runs of equal layers: what is priced once must be equal in everything that a price reads."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from plain_chain import chain

from nest_core.costs import LayerTable
from nest_core.costs.problem import Calls, condensed

LAYERS = 7
FIGURES = [
    field.name
    for field in fields(LayerTable)
    if field.name not in ("calls", "tied_parameters", "boundary_bytes", "host_bytes")
]


def with_calls(**changed: np.ndarray) -> LayerTable:
    every: dict[str, np.ndarray] = {
        "number": np.ones(LAYERS),
        "bytes": np.ones(LAYERS),
        "replay_number": np.zeros((3, LAYERS)),
        "replay_bytes": np.zeros((3, LAYERS)),
    }
    return chain(LAYERS, calls={"tp": Calls("reduce_scatter", **(every | changed))})


def test_equal_layers_are_one_run_and_the_last_stands_alone():
    brief, times = condensed(chain(LAYERS))
    assert times.tolist() == [LAYERS - 1, 1]
    assert brief.layers == 2
    assert condensed(chain(1))[1].tolist() == [1]


@pytest.mark.parametrize("name", [*FIGURES, "host_bytes"])
def test_any_figure_sets_a_layer_apart(name):
    plain = getattr(chain(LAYERS), name)
    values = np.array(np.zeros(LAYERS) if plain is None else plain, dtype=float)
    values[..., 3] += 1.0
    table = replace(chain(LAYERS), **{name: values})
    brief, times = condensed(table)
    assert times.tolist() == [3, 1, 2, 1]
    assert np.repeat(getattr(brief, name), times, axis=-1).tolist() == values.tolist()


@pytest.mark.parametrize("name", ["number", "bytes", "replay_number", "replay_bytes"])
def test_any_figure_of_a_call_sets_a_layer_apart(name):
    values = np.array(getattr(with_calls().calls["tp"], name))
    values[..., 3] += 1.0
    brief, times = condensed(with_calls(**{name: values}))
    assert times.tolist() == [3, 1, 2, 1]
    assert np.repeat(getattr(brief.calls["tp"], name), times, axis=-1).tolist() == values.tolist()


def test_boundaries_are_those_between_runs():
    compute = np.array([3.0, 3.0, 1.0, 1.0, 1.0, 5.0])
    table = chain(6, compute_s=compute, boundary_bytes=np.arange(7.0))
    brief, times = condensed(table)
    assert times.tolist() == [2, 3, 1]
    assert brief.boundary_bytes.tolist() == [0.0, 2.0, 5.0, 6.0]
