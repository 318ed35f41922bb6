#!/usr/bin/env bash
# transformers 5.24.0: Mistral3Config ties the head of a model whose text part says it has its own.
#
# A config.json of type mistral3 that does not say tie_word_embeddings at its top, with a text part
# of type mistral that says false, becomes a model whose head is its embedding: the composite
# class has a default of its own (true), and it alone counts. The file that save_pretrained writes
# then says true at the top and false in the text part. At the sizes of Mistral Small 3.1 that is
# 671,088,640 parameters fewer than the published 24 billion have; the text class built from the same
# text part has them. kimi_k25 and internvl contradict themselves the same way, qwen3_vl_moe the other
# way round (false at the top, true in its text part, and a head of its own); gemma3 and llama4 agree.
#
# Guessed before it was run: what the text part says counts, and both places agree.
# A planner's user should compare the two places; ours ties only where both say so, and says it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.24.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

text = dict(
    model_type="mistral", hidden_size=5120, num_hidden_layers=40, num_attention_heads=32,
    num_key_value_heads=8, head_dim=128, intermediate_size=32768, vocab_size=131072,
    tie_word_embeddings=False,
)
config = AutoConfig.for_model("mistral3", text_config=text)
written = config.to_dict()
with torch.device("meta"):
    composite = AutoModelForImageTextToText.from_config(config)
    alone = AutoModelForCausalLM.from_config(config.text_config)
tied = composite.get_output_embeddings().weight is composite.get_input_embeddings().weight
towers = ("vision_tower", "multi_modal_projector")
of_text = sum(
    p.numel() for name, p in composite.named_parameters() if not any(t in name for t in towers)
)
whole = sum(p.numel() for p in alone.parameters())
top, part = (t["tie_word_embeddings"] for t in (written, written["text_config"]))
print("written: at the top", top, "in the text part", part, "tied", tied)
print("parameters of the text part: composite", of_text, "text class", whole)
assert (top, part, tied) == (True, False, True)
assert whole - of_text == 131072 * 5120
expected = {
    "gemma3": (True, True), "llama4": (False, False), "kimi_k25": (True, False),
    "internvl": (True, False), "qwen3_vl_moe": (False, True),
}
for kind, both in expected.items():
    fields = AutoConfig.for_model(kind).to_dict()
    seen = fields["tie_word_embeddings"], fields["text_config"]["tie_word_embeddings"]
    print(kind, "at the top and in the text part", seen)
    assert seen == both, (kind, seen)
print("as described")
PYTHON
