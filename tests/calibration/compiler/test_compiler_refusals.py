"""What libtpu refuses, told in a sentence; JAX is stood in for, its messages are libtpu's own.

They were seen with jax 0.10.2 and libtpu 0.0.42.1: a slice of v5e of 3 x 5, and a second process.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from unittest.mock import MagicMock

import pytest

import nest_core as nest

PROGRAM = "nest_core.calibration.compiler.program"
MODULES = (
    "jax",
    "jax.numpy",
    "jax.sharding",
    "jax.experimental",
    "jax.experimental.pallas.ops.tpu.splash_attention",
)
SCENARIO = {
    "schema": 1,
    "name": "a slice",
    "accelerator": "tpu-v5e",
    "fabric": {
        "schema": 1,
        "name": "slice",
        "kind": "tpu_slice",
        "tpu_slice": {"generation": "v5e", "shape": [4, 4]},
    },
    "workload": {
        "model": "gpt3-125m",
        "sequence_length_tokens": 1024,
        "global_batch_sequences": 32,
        "precision": "bf16",
    },
}


class JaxRuntimeError(RuntimeError):
    """Stands in for JAX's."""


@pytest.fixture
def describe_slice(monkeypatch):
    """What JAX is asked for a slice with, in a JAX that is not there."""
    jax = MagicMock()
    jax.errors.JaxRuntimeError = JaxRuntimeError
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, jax)
    monkeypatch.delitem(sys.modules, PROGRAM, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    yield jax.topologies.get_topology_desc
    sys.modules.pop(PROGRAM, None)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            'INVALID_ARGUMENT: Topology layout "v5e:3x5" is not divisible by the given (or '
            'default) chips_per_host_bounds "2x2x1"',
            "fabric must be a slice that libtpu has of TPU v5e, but is '4x4': pick another.",
        ),
        (
            "ABORTED: Internal error when accessing libtpu multi-process lockfile.",
            "libtpu must serve one process at a time, but is 'locked': wait for the other one.",
        ),
    ],
)
def test_what_libtpu_refuses_is_told_in_a_sentence(describe_slice, message, sentence):
    describe_slice.side_effect = JaxRuntimeError(message)
    with pytest.raises(nest.InputError) as refused:
        nest.compiled(nest.load(SCENARIO), "dp=16,zero=3")
    assert str(refused.value) == sentence
    assert describe_slice.call_args.kwargs == {"platform": "tpu", "topology_name": "v5e:4x4"}
