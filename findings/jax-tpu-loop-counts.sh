#!/usr/bin/env bash
# JAX 0.10.2 with libtpu 0.0.42.1: the text of a program compiled for TPUs says of no loop how often
# it runs; compiled for a CPU the same program says known_trip_count.
#
# Guessed before it was run: as_text() has known_trip_count for every scan of fixed length, whatever
# the platform.
# Who counts a program's collectives or FLOPs from its text counts a scan's body once, and so 1/32 of
# a model of 32 scanned layers; read the constant that the loop's condition compares with.
# (One process at a time: libtpu takes a lock file. Some 1.2 GB are installed.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check \
    jax==0.10.2 jaxlib==0.10.2 libtpu==0.0.42.1
JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 "$folder/env/bin/python" -W ignore - 2> "$folder/log" <<'PYTHON'
import re

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding


def run(x, weights):
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]


def counts(device):
    """What the program of a device says of its loops, and what their conditions compare with."""
    place = SingleDeviceSharding(device)
    x = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16, sharding=place)
    weights = jax.ShapeDtypeStruct((7, 512, 512), jnp.bfloat16, sharding=place)
    text = jax.jit(run).lower(x, weights).compile().as_text()
    stated = re.findall(r'known_trip_count":\{"n":"(\d+)"', text)
    return stated, " while(" in text, "constant(7)" in text


slice_ = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
result = {"cpu": counts(jax.devices()[0]), "v5e": counts(slice_.devices[0])}
print("stated counts, has a loop, has the constant 7:", result)
assert result == {"cpu": (["7"], True, True), "v5e": ([], True, True)}, result
print("as described")
PYTHON
