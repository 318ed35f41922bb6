"""Training scripts as Megatron-Bridge reads them, by its defaults in ``bridge_defaults.json``.

`benchmarks.outside.bridge` has the release itself read them.
"""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from export_cases import DATA, exported, scenario

DEFAULTS = json.loads((DATA / "bridge_defaults.json").read_text())
LATENT = {"dp": 8, "tp": 2, "pp": 4, "sp": True, "ep": 4, "zero": 1}


def provider(script: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the model's provider; what is no literal stays as it is written."""
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.keyword) and node.arg == "model":
            assert isinstance(node.value, ast.Call)
            words = {str(word.arg): ast.unparse(word.value) for word in node.value.keywords}
            return ast.unparse(node.value.func), words
    raise AssertionError("there is no model")


def read(script: str) -> dict[str, Any]:
    """The model and the division of its experts as Megatron-Bridge would have them."""
    name, words = provider(script)
    blocks, experts = int(words["num_layers"]), "num_moe_experts" in words
    latent = words.get("multi_latent_attention", str(DEFAULTS["multi_latent_attention"][name]))
    dense = 0 if experts else blocks
    if "transformer_layer_spec" not in words:
        latent = "False"
    elif "moe_layer_freq" in words:
        dense = eval(words["moe_layer_freq"], {}).count(0)  # a sum of two lists of 0 and 1
    ep, tp = (int(words[f"{axis}_model_parallel_size"]) for axis in ("expert", "tensor"))
    etp = DEFAULTS["expert_tensor_parallel_size, ep above 1"] if ep > 1 else tp
    return {
        "latent": latent == "True",
        "dense": dense,
        "etp": int(words.get("expert_tensor_parallel_size", etp)),
    }


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("llama3-8b", {"dp": 32, "tp": 2, "sp": True}),
        ("mixtral-8x7b", {"dp": 32, "tp": 2, "sp": True, "ep": 4, "zero": 1}),
        ("mixtral-8x7b", {"dp": 32, "tp": 2, "sp": True, "ep": 4, "etp": 1, "zero": 1}),
        ("mixtral-8x7b", {"dp": 32, "tp": 2, "sp": True, "zero": 1}),
        ("deepseek-v2", LATENT),
        ("deepseek-v3", LATENT | {"etp": 1}),
    ],
)
def test_it_trains_the_model_of_the_plan(model: str, fields: dict[str, Any]) -> None:
    """DeepSeek-V3 was built of 61 blocks with plain attention and experts in each, and experts that
    the plan divides by tp were whole."""
    asked = scenario(model)
    experts = asked.model.experts > 1
    assert read(str(exported("nemo", asked, **fields).files["train.py"])) == {
        "latent": asked.model.kv_rank > 0,
        "dense": asked.model.dense_blocks if experts else asked.model.blocks,
        "etp": fields.get("etp", fields["tp"]),
    }


@pytest.mark.parametrize("model", ["gpt3-13b", "llama3-8b"])
def test_the_vocabulary_is_padded(model: str) -> None:
    """Eight ranks did not divide GPT-3's 50,257 entries, which the provider was given as its own;
    Megatron Core's tokenizer for mock data adds none any more."""
    asked = scenario(model)
    fields = {"dp": 8, "tp": 8, "sp": True}
    script = str(exported("nemo", asked, **fields).files["train.py"])
    assert "vocab_size" not in provider(script)[1]
    assert f"            vocab_size={asked.model.vocabulary},\n" in script
    launch = str(exported("megatron", asked, **fields).files["launch.sh"])
    assert f"--vocab-size {asked.model.vocabulary}\n" in launch


def test_what_hides_is_said() -> None:
    """Several queues for passes beside one another, and messages of virtual stages."""
    asked = scenario("deepseek-v3", "h100-spine-leaf-64", "workload.expert_overlap=true")
    beside = exported("nemo", asked, dp=64, ep=64, zero=1)
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=32\n" in str(beside.files["launch.sh"])
    fields = {"dp": 8, "pp": 8, "interleave": 2, "zero": 1}
    for hides in (True, False):
        asked = scenario().hiding({"pp": hides})
        _, words = provider(str(exported("nemo", asked, **fields).files["train.py"]))
        overlap = [words.get(key) for key in ("overlap_p2p_comm", "batch_p2p_comm")]
        assert overlap == (["True", "False"] if hides else [None, None])


@pytest.mark.parametrize("target", ["nemo", "megatron"])
def test_a_layout_of_stages_goes_with_its_pipeline(target: str) -> None:
    """With half as many stages Megatron Core makes it an interleaved one and says nothing."""
    uneven = exported(target, scenario(), dp=16, pp=4, cuts=[0, 6, 17, 25, 34])
    assert any("layout of stages is that of pp 4" in note for note in uneven.notes)
    for cuts in ([0, 9, 17, 25, 34], [0, 8, 17, 26, 34]):
        assert len(exported(target, scenario(), dp=16, pp=4, cuts=cuts).notes) == 1
