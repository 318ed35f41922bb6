"""Configurations as transformers 5 writes them, against its own classes.

The oracle is ``counts.csv`` beside the files: parameters of transformers' classes on the meta
device. Nothing that evaluates a trace made it.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from itertools import chain as chained
from pathlib import Path
from typing import Any

import pytest

from nest_core.documents.errors import InputError
from nest_core.scenario import load_scenario
from nest_core.workload import Strategy, chain
from nest_core.workload.hugging_face import families_by_type, read_config
from nest_core.workload.model_files import load_model, model_of, model_table
from nest_core.workload.models import Model

FOLDER = Path(__file__).resolve().parent.parent / "data" / "transformers_configs"
with (FOLDER / "counts.csv").open(encoding="utf-8") as file:
    COUNTS = {row["name"]: row for row in csv.DictReader(file)}
names = pytest.mark.parametrize("name", COUNTS)
LOCAL = ("sliding_attention", "chunked_attention", "linear_attention")


def config_of(name: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return config


def text_of(config: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = config.get("text_config", config)
    return part


def model(name: str, **changes: Any) -> Model:
    """The model of a configuration, keys of its text part changed."""
    config = config_of(name)
    text_of(config).update(changes)
    return read_config(json.dumps(config), name)


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_config(text, "m")
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


@names
def test_parameters_are_those_of_transformers_own_class(name):
    """A failure: a weight of the family is left out, or a key is read as the wrong size."""
    row = COUNTS[name]
    result = model(name)
    result.check_family()
    assert result.parameters == int(row["parameters"]) + int(row["router_biases"])


def linear(inner: int, outer: int, *, bias: bool = True) -> int:
    return (inner + bias) * outer


def encoder(width: int, ffn: int, *, gated: bool = False, bias: bool = True) -> int:
    """Return the parameters of a block of a vision tower, without its norms."""
    up = linear(width, ffn, bias=bias) * (1 + gated)
    return 4 * linear(width, width, bias=bias) + up + linear(ffn, width, bias=bias)


def gemma3_vision(hidden: int) -> int:
    """SigLIP of 896 pixels in patches of 14, and a projection to the text's width."""
    width = 1152
    tower = 27 * (encoder(width, 4304) + 4 * width) + 64**2 * width
    return tower + linear(3 * 14**2, width) + 2 * width + width + linear(width, hidden, bias=False)


def llama4_vision(hidden: int) -> int:
    """336 pixels in patches of 14; four patches become one of the adapter's 4,096."""
    width = 1408
    tower = 34 * (encoder(width, 5632) + 4 * width) + (24**2 + 2) * width + 3 * 14**2 * width
    return tower + 4 * width + 4 * width * 4096 + 4096**2 + 4096 * hidden


def mistral3_vision(hidden: int) -> int:
    """Pixtral without biases, and a projector that merges two by two patches."""
    width = 1024
    tower = 24 * (encoder(width, 4096, gated=True, bias=False) + 2 * width)
    return tower + 3 * 14**2 * width + 2 * width + 4 * width**2 + width * hidden + hidden**2


def qwen2_5_vision(hidden: int) -> int:
    width = 1280
    tower = 32 * (encoder(width, 3420, gated=True) + 2 * width) + 2 * 3 * 14**2 * width
    return tower + width + linear(4 * width, 4 * width) + linear(4 * width, hidden)


def qwen3_vision(hidden: int) -> int:
    """Patches of 16 in two frames, 48 x 48 places; a merger, and three for deeper features."""
    width = 1152
    tower = 27 * (encoder(width, 4304) + 4 * width) + 48**2 * width
    merger = linear(4 * width, 4 * width) + linear(4 * width, hidden)
    return tower + linear(2 * 3 * 16**2, width) + 4 * merger + 2 * width + 3 * 8 * width


VISION = {
    "gemma3": gemma3_vision,
    "llama4": llama4_vision,
    "mistral": mistral3_vision,
    "ministral": mistral3_vision,
    "qwen2.5": qwen2_5_vision,
    "qwen3": qwen3_vision,
}
"""Of each family's checkpoints, from the sizes in their ``vision_config``."""


def part_of(name: str, part: str, result: Model) -> int:
    """Return the parameters of a part that checkpoints hold and our models lack.

    A module that predicts a further token (DeepSeek-V3, arXiv:2412.19437, 2.2) is one more block,
    a projection of two widths to one and three norms; some repeat the embedding and the head.
    """
    if not part:
        return 0
    if part == "vision":
        return VISION[re.split(r"-", name)[0]](result.hidden)
    full = max(result.full_every, 1)
    deeper, blocks = (replace(result, blocks=result.blocks + more) for more in (full, full - 1))
    module = deeper.parameters - blocks.parameters + (2 * result.hidden + 3) * result.hidden
    copies = 2 * result.vocabulary * result.hidden
    return module + (copies if part.endswith("embedding and head") else 0)


@names
def test_parameters_are_those_that_are_published(name):
    """A checkpoint's own count is met to a millionth (tables and scales), a rounded one in 0.1 %.

    A failure: transformers' class and we agree on sizes that the published model does not have.
    """
    row = COUNTS[name]
    published, digit = int(row["published"]), int(row["precision"])
    result = model(name)
    near = 1e-6 * published if digit == 1 else max(1e-3 * published, digit / 2)
    assert result.parameters + part_of(name, row["parts"], result) == pytest.approx(
        published, abs=near
    )


@names
def test_a_configuration_is_a_table_again(name):
    """What a page keeps of an uploaded file is the same model."""
    result = model(name)
    assert model_of(model_table(result)) == result


@names
def test_blocks_alternate_as_the_file_lists_them(name):
    """Local blocks where transformers says sliding, chunked or linear; experts where it says."""
    result, part = model(name), text_of(config_of(name))
    kinds = list(chained.from_iterable([kind] * count for kind, count in result.runs))[1:-1]
    listed = part.get("layer_types") or ["full_attention"] * result.blocks
    assert [kind.startswith("local") for kind in kinds] == [word in LOCAL for word in listed]
    if "moe_layers" in part:
        sparse = [place for place, kind in enumerate(kinds) if kind.endswith("moe_block")]
        assert sparse == part["moe_layers"]


def test_every_type_has_a_configuration():
    """Here, or among the published ones that presets must agree with."""
    published = (FOLDER.parent / "configs").glob("*.json")
    ours = {json.loads(path.read_text(encoding="utf-8"))["model_type"] for path in published}
    newer = {text_of(config_of(name))["model_type"] for name in COUNTS}
    assert set(families_by_type()) - {"grok"} == ours | newer


def attention_flops(result: Model, kind: str, sequence: int) -> float:
    layers = chain(result, Strategy(sequence=sequence)).runs
    layer = next(layer for layer, _ in layers if layer.kind == kind)
    return sum(operator.flops for operator in layer.operators if operator.op == "attention")


@pytest.mark.parametrize("name", ["gemma3-27b", "olmo3-7b", "command-a", "gemma2-9b"])
def test_local_blocks_see_the_window_and_others_everything(name):
    """Against the pairs of a causal mask, counted one by one."""
    result, sequence = model(name), 8192
    pairs = sum(min(place, result.window) for place in range(sequence))
    every = sequence * sequence / 2
    shape = 2.0 * result.heads * 2 * result.head_dim
    local = attention_flops(result, "local_block", sequence)
    assert local == pytest.approx(shape * pairs, rel=2e-3)
    assert attention_flops(result, "block", sequence) == pytest.approx(shape * every, rel=1e-12)


def test_linear_attention_grows_with_tokens_and_full_attention_with_their_square():
    result = model("qwen3-next-80b-a3b")
    linear = [attention_flops(result, "local_moe_block", tokens) for tokens in (4096, 8192)]
    full = [attention_flops(result, "moe_block", tokens) for tokens in (4096, 8192)]
    assert linear[1] == 2 * linear[0]
    assert full[1] == 4 * full[0]


def test_an_indexer_bounds_what_attention_sees_and_sees_all_itself():
    """DeepSeek-V3.2 picks 2,048 of the tokens with heads of its own."""
    result, sequence = model("deepseek-v3.2"), 16_384
    layer = next(
        layer
        for layer, _ in chain(result, Strategy(sequence=sequence)).runs
        if layer.kind == "block"
    )
    flops = {operator.name: operator.flops for operator in layer.operators}
    pairs = sum(min(place, 2048) for place in range(sequence))
    assert flops["attention.core"] == pytest.approx(2 * 128 * pairs * (192 + 128), rel=2e-3)
    assert flops["attention.indexer.core"] == 2 * 64 * sequence**2 / 2 * (128 + 1)


@pytest.mark.parametrize("sp", [False, True])
def test_every_tensor_parallel_rank_has_the_whole_indexer(sp):
    """Megatron-LM gathers its input under sequence parallelism; a rank had a part of the tokens."""

    def work(strategy: Strategy) -> list[float]:
        layers = [layer for layer, _ in chain(model("deepseek-v3.2"), strategy).runs]
        return [
            operator.flops
            for layer in layers
            for operator in layer.operators
            if "indexer" in operator.name
        ]

    assert work(Strategy(sequence=4096, tp=8, sp=sp)) == work(Strategy(sequence=4096))


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("moonlight-16b-a3b", {}, "without the modules that predict further tokens"),
        ("moonlight-16b-a3b", {"num_nextn_predict_layers": 0}, "model type deepseek_v3"),
        ("gemma3-4b", {}, "without the vision part"),
        ("llama4-scout", {}, "and the norm of queries and keys, which has no weights"),
        ("mistral-small-3.1-24b", {}, "though the whole one says tied"),
    ],
)
def test_what_is_left_out_is_said(name, changes, words):
    assert model(name, **changes).source.endswith(words)


def test_a_quantised_checkpoint_has_the_sizes_of_its_model():
    config = config_of("phi-4") | {"quantization_config": {"quant_method": "awq", "bits": 4}}
    result = read_config(json.dumps(config), "m")
    assert result.parameters == model("phi-4").parameters
    assert "stores weights in awq, which changes no size" in result.source


def test_an_adapter_is_refused_with_the_model_that_it_adapts():
    """PEFT writes adapter_config.json; people upload it for the model's."""
    adapter = {"peft_type": "LORA", "r": 16, "base_model_name_or_path": "org/base-7b"}
    assert refusal(json.dumps(adapter)) == (
        "config.json must describe a whole model, but is 'an adapter, peft_type LORA': "
        "give that of the model it adapts, org/base-7b."
    )
    assert "give that of the model it adapts." in refusal('{"peft_type": "LORA"}')


def test_a_vision_tower_is_refused_as_one():
    tower = {"model_type": "siglip_vision_model", "hidden_size": 1152, "patch_size": 14}
    assert refusal(json.dumps(tower)) == (
        "config.json must describe a language model, but is 'a vision tower, model_type "
        "siglip_vision_model': give that of the whole model, whose text part is read."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": ["full_attention"] * 3}, "layer_types must repeat through all 26 blocks"),
        (
            {"layer_types": ["full_attention", *["sliding_attention"] * 25]},
            "layer_types must repeat through all 26 blocks, but is 'full_attention at 1 of 26'",
        ),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention must be false"),
    ],
)
def test_a_pattern_that_does_not_repeat_is_refused(changes, message):
    config = config_of("gemma3-1b") | changes
    assert message in refusal(json.dumps(config))


def test_older_files_leave_the_pattern_to_the_class():
    """The hub's gemma-3 has a number for the list; where all blocks see all there is no window."""
    config = config_of("gemma3-4b")
    part = text_of(config)
    for key in ("layer_types", "num_attention_heads", "num_key_value_heads", "head_dim"):
        part.pop(key)
    assert read_config(json.dumps(config), "gemma3-4b") == model("gemma3-4b")
    part["sliding_window_pattern"] = 2
    assert read_config(json.dumps(config), "m").full_every == 2
    alike = model("gemma3-1b", layer_types=["full_attention"] * 26)
    assert (alike.full_every, alike.window) == (0, 0)


@pytest.mark.parametrize("name", ["gemma3-1b", "qwen3-next-80b-a3b", "llama4-maverick"])
def test_blocks_that_alternate_are_planned(name, tmp_path):
    """Distinct layers are priced once and stand in the model's order."""
    path = FOLDER / f"{name}.json"
    values = load_scenario("llama3-70b-1024-h100", [f'workload.model="{path}"'])
    assert values.model == load_model(path.name, FOLDER)
    runs = chain(values.model, Strategy(sequence=4096)).runs
    assert sum(times for _, times in runs) == values.model.blocks + 2
    assert [layer.kind for layer, _ in runs] == [kind for kind, _ in values.model.runs]
