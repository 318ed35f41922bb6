"""What `nest-studio compiled` refuses before it compiles; figures need JAX (`make outside`)."""

import importlib.util

import pytest

import nest_core as nest

SCENARIO = {
    "schema": 1,
    "name": "a slice",
    "accelerator": "tpu-v5p",
    "fabric": {
        "schema": 1,
        "name": "slice",
        "kind": "tpu_slice",
        "tpu_slice": {"generation": "v5p", "shape": [2, 2, 2]},
    },
    "workload": {
        "model": "llama2-7b",
        "sequence_length_tokens": 4096,
        "global_batch_sequences": 32,
        "precision": "bf16",
    },
}
PLAN = "dp=8,zero=3,recompute=full"


@pytest.mark.parametrize(
    ("changes", "plan", "sentence"),
    [
        (
            {},
            PLAN,
            "jax and libtpu must be installed to compile for TPUs, but is 'missing': "
            "pip install nest-studio[tpu].",
        ),
        (
            {"accelerator": "h100-80gb"},
            PLAN,
            "accelerator must be a TPU on a torus that libtpu compiles for, but is 'H100 SXM 80 GB'"
            ": pick tpu-v4, tpu-v5p, tpu-v5e, tpu-v6e.",
        ),
        (
            {"workload.model": "mixtral-8x7b"},
            PLAN,
            "workload.model must be dense, of plain attention, in bf16 with adam to be written in "
            "JAX, but is 'Mixtral 8x7B in bf16 with adam': pick a model of the Llama or GPT "
            "family.",
        ),
        (
            {},
            "dp=4,zero=3",
            "plan.devices_used must be the whole slice in equal stages, but is 4: plan on all 8 "
            "devices.",
        ),
        ({}, "dp=64,zero=3", "plan must use at most the fabric's 8 devices, but is 64"),
        (
            {"fabric.tpu_slice.shape": [3, 5, 2]},
            PLAN,
            "tpu_slice.shape must be made of whole cubes of 4 x 4 x 4",
        ),
    ],
)
def test_what_cannot_be_compiled_is_told_in_a_sentence(monkeypatch, changes, plan, sentence):
    missing = {"jax", "libtpu"}
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else find(name)
    )
    with pytest.raises(nest.InputError) as refused:
        nest.compiled(nest.load(SCENARIO, changes), plan)
    assert str(refused.value).startswith(sentence)
    assert str(refused.value).count(". ") == 0
