#!/usr/bin/env bash
# Accelerate 1.15.0: its estimate for training in bfloat16 is half of what AdamW keeps.
#
# "accelerate estimate-memory" prints for training the largest of four figures, not a sum: model 4,
# gradients 6, optimizer 8 and "step" 8 bytes a parameter for bfloat16 and float16, so 8, where
# float32 is 4, 4, 8 and 16, so 16. AdamW under bfloat16 autocast keeps weights, gradients and two
# moments in float32: 16 bytes a parameter, without any activation and without the copies in
# bfloat16. The estimate says that bfloat16 halves what it leaves as it was.
#
# Guessed before it was run: 16 bytes a parameter for bfloat16, the sum of its parts.
# Who sizes a GPU by it should double the figure for bfloat16, then add activations.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check accelerate==1.15.0 \
  torch==2.13.0 numpy
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
from accelerate.commands.estimate import estimate_training_usage

PARAMETERS = 2**20
estimates = {
    name: estimate_training_usage(4 * PARAMETERS, name) for name in ("float32", "bfloat16")
}
for name, parts in estimates.items():
    print(name, {part: size / PARAMETERS for part, size in parts.items()})

layer = torch.nn.Linear(1024, 1024, bias=False)
optimizer = torch.optim.AdamW(layer.parameters())
with torch.autocast("cpu", torch.bfloat16):
    loss = layer(torch.randn(8, 1024)).square().mean()
loss.backward()
optimizer.step()
(state,) = optimizer.state.values()
tensors = [layer.weight, layer.weight.grad, state["exp_avg"], state["exp_avg_sq"]]
kept = sum(tensor.nbytes for tensor in tensors) / PARAMETERS
largest = {name: max(parts.values()) / PARAMETERS for name, parts in estimates.items()}
print("bytes a parameter: estimated", largest, "kept by AdamW under bfloat16 autocast", kept)
assert largest == {"float32": 16.0, "bfloat16": 8.0}, largest
assert kept == 16.0, kept
print("as described")
PYTHON
