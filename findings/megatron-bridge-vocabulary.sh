#!/usr/bin/env bash
# megatron-bridge 0.6.2: a vocabulary that the model states is never padded, whatever should_pad_vocab.
#
# What setup decides of model and tokenizer overwrites both vocab_size and should_pad_vocab of the
# provider. A size that the model states comes back with padding off, also where it equals the
# tokenizer's; only one that is left out (None), or use_tokenizer_vocab_size, is padded. GPT-3's 50,257
# entries then stay 50,257 rows, which no even tensor-parallel degree divides, although the provider
# said should_pad_vocab=True and make_vocab_size_divisible_by=128.
#
# Guessed before it was run: 51,200 rows on 8 tensor-parallel ranks, padded as asked.
# Who exports a plan leaves vocab_size to the tokenizer, or writes the padded number himself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --ignore-requires-python --target "$folder/bridge" "megatron-bridge==0.6.2"
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import ast
import logging
from pathlib import Path
from typing import Optional

NAME = "_validate_and_set_vocab_size"
tree = ast.parse(Path("bridge/megatron/bridge/training/setup.py").read_text())
parts = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == NAME]
surroundings = {"logging": logging, "Optional": Optional}
exec(compile(ast.Module(parts, []), NAME, "exec"), surroundings)
decide = surroundings[NAME]

overwritten = [
    ast.unparse(node.targets[0])
    for node in ast.walk(tree)
    if isinstance(node, ast.Assign)
    and isinstance(node.value, ast.Call)
    and ast.unparse(node.value.func) == NAME
]
stated, unstated = decide(50257, 50257), decide(None, 50257)
forced = decide(50257, 50257, use_tokenizer_vocab_size=True)
print("setup writes", *overwritten)
print("stated by the model", stated, "left out", unstated, "use_tokenizer_vocab_size", forced)
print("divided by", [tp for tp in range(1, 65) if stated[0] % tp == 0])
assert overwritten == ["(cfg.model.vocab_size, cfg.model.should_pad_vocab)"], overwritten
assert stated == (50257, False), stated
assert unstated == forced == (50257, True), (unstated, forced)
print("as described")
PYTHON
