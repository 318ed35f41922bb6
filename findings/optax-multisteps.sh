#!/usr/bin/env bash
# optax 0.2.8 with JAX 0.10.2: gradient accumulation by MultiSteps needs three times the parameters
# in temporaries, where the optimizer that it wraps needs none.
#
# AdamW with its parameters and states donated updates in place: the compiled step has temporaries
# of no byte that counts. Wrapped in MultiSteps (8 steps) it holds, beside the accumulator, three
# more copies of the parameters' size while it runs (XLA for a CPU), in every micro-step, also in
# the seven that update nothing: both branches of a condition are kept apart. For bfloat16
# parameters the accumulator is in float32: states are 4 times the parameters' bytes, not 3.
#
# Guessed before it was run: temporaries of one gradient, and an accumulator in bfloat16.
# Memory that is planned as parameters, gradients, accumulator and two moments is too small by three
# float32 copies: add up gradients in a scan around the loss, and step the bare optimizer once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 optax==0.2.8
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PYTHON'
import jax
import jax.numpy as jnp
import optax


def sizes(optimizer, dtype):
    """States and temporaries of a step over its parameters' bytes, and the types of its states."""
    params = [jnp.ones((512, 512), dtype) for _ in range(8)]
    states = optimizer.init(params)

    def step(params, states, gradients):
        updates, states = optimizer.update(gradients, states, params)
        return optax.apply_updates(params, updates), states

    compiled = jax.jit(step, donate_argnums=(0, 1)).lower(params, states, params).compile()
    total = sum(leaf.nbytes for leaf in params)
    tensors = [leaf for leaf in jax.tree.leaves(states) if leaf.ndim]
    return (
        round(sum(leaf.nbytes for leaf in tensors) / total, 2),
        round(compiled.memory_analysis().temp_size_in_bytes / total, 1),
        sorted({str(leaf.dtype) for leaf in tensors}),
    )


adamw = optax.adamw(1e-3)
results = {
    (name, dtype): sizes(optimizer, dtype)
    for name, optimizer in (("adamw", adamw), ("MultiSteps", optax.MultiSteps(adamw, 8)))
    for dtype in ("float32", "bfloat16")
}
for key, result in results.items():
    print(*key, "states, temporaries, types:", *result)
assert results["adamw", "float32"] == (2.0, 0.0, ["float32"]), results
assert results["MultiSteps", "float32"] == (3.0, 3.0, ["float32"]), results
assert results["adamw", "bfloat16"] == (2.0, 0.0, ["bfloat16"]), results
states, temporaries, types = results["MultiSteps", "bfloat16"]
assert (states, types) == (4.0, ["bfloat16", "float32"]) and temporaries >= 2.0, results
print("as described")
PYTHON
