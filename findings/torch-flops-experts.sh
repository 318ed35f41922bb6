#!/usr/bin/env bash
# PyTorch 2.13.0: FlopCounterMode counts nothing for the experts of a mixture, and on a CPU nothing
# for attention either.
#
# It adds up operators that have a formula. torch.nn.functional.grouped_mm, the product of all
# experts of a rank at once, has none: 256 rows through experts of 64 x 128 are 0 FLOP instead of
# 4,194,304, on a CPU and on the meta device. Scaled dot-product attention has
# formulas for the GPU's kernels and, on meta tensors, for the two products that it becomes; the
# CPU's own kernel has none, so the same call is 33,554,432 FLOP on meta and 0 on a CPU.
#
# Guessed before it was run: both counted, the backward pass at twice and two and a half times.
# An MFU or a compute-to-communication ratio of a mixture that rests on this counter is too low by
# the experts: count the experts by hand, and attention on meta tensors.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode


def counted(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


results = {}
for device in ("cpu", "meta"):
    rows = torch.empty(256, 64, device=device).bfloat16()
    experts = torch.empty(4, 64, 128, device=device).bfloat16()
    ends = torch.tensor([64, 128, 192, 256], dtype=torch.int32, device=device)
    queries = torch.empty(1, 8, 128, 64, device=device)
    dense = torch.empty(64, 128, device=device).bfloat16()
    results[device] = {
        "dense product": counted(lambda: rows @ dense),
        "experts": counted(lambda: F.grouped_mm(rows, experts, offs=ends)),
        "attention": counted(lambda: F.scaled_dot_product_attention(queries, queries, queries)),
    }
    print(device, results[device])
product, attention = 2 * 256 * 64 * 128, 4 * 8 * 128 * 128 * 64
assert results["cpu"] == {"dense product": product, "experts": 0, "attention": 0}, results
assert results["meta"] == {"dense product": product, "experts": 0, "attention": attention}, results
print("as described")
PYTHON
