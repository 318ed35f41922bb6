#!/usr/bin/env bash
# JAX 0.10.2: the derivative of jax.nn.silu(gate) * up keeps five tensors of their size, that of a
# tanh GELU five where its input alone would do, and an RMS norm written in fp32 keeps six bytes an
# element where its 16-bit input takes two.
#
# jax.vjp saves what each step of a formula multiplies by: the gate, its sigmoid, the sigmoid's
# derivative, the SiLU and `up`; x, tanh, 1 - tanh and two products with x; the fp32 argument and the
# 16-bit result before scaling. Scanned layers keep these stacks as they are.
#
# Guessed before it was run: three for the gate (gate, up and the SiLU, the sigmoid made again), one
# for GELU as in PyTorch, two bytes for the norm.
# A planner that takes PyTorch's autograd for JAX without recomputation is off by 1.8 times for a
# Llama block; write such functions with jax.custom_vjp, or put a checkpoint policy round the block.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PYTHON'
import math

import jax
import jax.numpy as jnp

SHAPE = (64, 256)


def norm(x, weight):
    exact = x.astype(jnp.float32)
    exact = exact * jax.lax.rsqrt(jnp.mean(exact * exact, -1, keepdims=True) + 1e-5)
    return exact.astype(jnp.bfloat16) * weight


def kept(function, *arguments):
    """Bytes per element of the arrays as large as the output that backward is left with."""
    _, backward = jax.vjp(function, *arguments)
    leaves = {id(leaf): leaf for leaf in jax.tree.leaves(backward) if leaf.shape == SHAPE}
    return sum(leaf.nbytes for leaf in leaves.values()) / math.prod(SHAPE)


x = jax.random.normal(jax.random.key(0), SHAPE, jnp.bfloat16)
y = jax.random.normal(jax.random.key(1), SHAPE, jnp.bfloat16)
result = {
    "silu(gate) * up": kept(lambda gate, up: jax.nn.silu(gate) * up, x, y),
    "gelu": kept(jax.nn.gelu, x),
    "rms norm in fp32": kept(norm, x, jnp.ones(SHAPE[-1], jnp.bfloat16)),
}
print("bytes an element:", result)
assert result == {"silu(gate) * up": 10.0, "gelu": 10.0, "rms norm in fp32": 6.0}, result
print("as described")
PYTHON
