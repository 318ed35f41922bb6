"""A stage's training step in JAX, compiled for a slice of TPUs that is not there.

The program is our own: it runs a model's traced operators (`nest_core.workload.graph`) on whole
tensors and says which dimension each axis of the mesh divides; XLA's partitioner makes the
collectives. Blocks are scanned, as MaxText scans them; a stage with several micro-batches in flight
runs all of their forward passes first. Weights are 16 bits wide beside fp32 masters, gradients are
added up in fp32 over the micro-batches, then AdamW steps. Dropout is left out, as `export` does for
MaxText. Attention is JAX's own splash kernel.

Nothing else imports JAX. libtpu takes a lock: one process at a time. Bytes.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import mesh_utils, topologies
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel,
    splash_attention_mask,
)
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nest_core.costs import Point
from nest_core.documents import InputError, require
from nest_core.workload import Dim, Model, Node, extent, sizes

__all__ = ["Compiled", "StageProgram", "compile_step", "memory_limit", "slice_mesh"]

MASTER, COMPUTE = jnp.float32, jnp.bfloat16
_BATCH, _SHARDS = ("replica", "dp"), ("dp", "cp")
_DIVIDED = {"heads", "kv_heads", "ffn", "vocabulary"}
"""Symbols that tensor parallelism divides."""

_USED = re.compile(
    r"([\d.]+)([KMGT])\)? (?:of|exceeds available HBM) \(?([\d.]+)([KMGT])(?: hbm|\))"
)
_UNIT = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_BETAS, _RATE, _DECAY, _EPSILON = (0.9, 0.95), 3e-4, 0.1, 1e-5


@dataclass(frozen=True, slots=True)
class StageProgram:
    """What a stage of a plan runs.

    Parameters
    ----------
    model : Model
    sequence : int
    point : Point
    zero : int
        The stage of ZeRO as it acts.
    recompute : str
        Of `RECOMPUTE`.
    blocks : int
    is_first, is_last : bool
        Whether it has the embedding, and the head.
    rounds, in_flight : int
        How often so many micro-batches go forward and then back.
    """

    model: Model
    sequence: int
    point: Point
    zero: int
    recompute: str
    blocks: int
    is_first: bool
    is_last: bool
    rounds: int
    in_flight: int

    @property
    def at(self) -> dict[str, float]:
        """Sizes of a micro-batch of all replicas."""
        return sizes(self.model, self.point.micro_batch * self.point.dp, self.sequence)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What XLA says of a program, bytes on one device.

    Parameters
    ----------
    text : str
        Its operations after all passes; empty where it does not fit.
    arguments, temporaries : float
        Results that take no argument's place are among the temporaries; of a program that does
        not fit, all is there.
    """

    text: str
    arguments: float
    temporaries: float


def slice_mesh(generation: str, shape: Sequence[int], point: Point) -> Mesh:
    """Return a stage's mesh on a slice that is described and not there.

    Raises
    ------
    InputError
        If the compiler knows no such slice.
    """
    size = "x".join(map(str, shape))
    core = {"chip_config_name": "megacore"} if generation == "v4" else {}
    try:
        chips = topologies.get_topology_desc(
            platform="tpu", topology_name=f"{generation}:{size}", **core
        )
    except jax.errors.JaxRuntimeError as error:
        require(
            "lockfile" not in str(error),
            "libtpu",
            "must serve one process at a time",
            "locked",
            "wait for the other one",
        )
        raise InputError(
            "fabric", f"must be a slice that libtpu has of TPU {generation}", size, "pick another"
        ) from error
    degrees = (point.pp, point.instances, point.dp // point.instances, point.cp, point.tp)
    devices = mesh_utils.create_device_mesh(degrees, chips.devices, allow_split_physical_axes=True)
    # Other stages run other programs; were their chips here, the compiler would sum over them.
    return Mesh(devices[0], ("replica", "dp", "cp", "tp"))


def memory_limit(mesh: Mesh) -> float:
    """Return the bytes of a device that the compiler hands out."""
    huge = jax.ShapeDtypeStruct((2**34, 128), MASTER, sharding=NamedSharding(mesh, PartitionSpec()))
    return _compiled(jax.jit(lambda x: x + x).lower(huge))[2]


def _compiled(lowered: Any) -> tuple[Any, float, float]:
    """Return a program; where there is none, what it would use and what there is, bytes."""
    try:
        return lowered.compile(), 0.0, math.inf
    except jax.errors.JaxRuntimeError as error:
        match = _USED.search(str(error))
        if match is None:
            raise
        used, limit = (float(match[n]) * _UNIT[match[n + 1]] for n in (1, 3))
        return None, used, limit


def compile_step(program: StageProgram, mesh: Mesh, *, passes: bool = True) -> Compiled:
    """Return what XLA makes of a stage's step.

    Parameters
    ----------
    passes : bool
        With the forward and backward passes, else the optimizer's step alone.
    """
    shards, weights = (
        _weights(program, mesh, is_sharded) for is_sharded in (True, program.zero > 2)
    )
    gradients = shards if program.zero else weights
    states = {"weights": weights} | dict.fromkeys(
        ("master", "mean", "square"), _exact(shards if program.zero else weights)
    )
    inputs = _inputs(program, mesh) if passes else _exact(gradients)
    run = partial(_step, program, mesh, _shardings(gradients)) if passes else _adamw
    jitted = jax.jit(run, donate_argnums=0, out_shardings=_shardings(states))
    result, used, _ = _compiled(jitted.lower(states, inputs))
    if result is None:
        return Compiled("", 0.0, used)
    size = result.memory_analysis()
    beyond = size.output_size_in_bytes - size.alias_size_in_bytes
    return Compiled(result.as_text(), size.argument_size_in_bytes, size.temp_size_in_bytes + beyond)


def _exact(tree: Any) -> Any:
    """Return weights in fp32."""
    return jax.tree.map(lambda leaf: leaf.update(dtype=MASTER), tree)


def _shardings(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.sharding, tree)


def _step(program: StageProgram, mesh: Mesh, placed: Any, states: Any, inputs: Any) -> Any:
    """Return the states after one iteration."""
    entry = inputs.get("entry")
    given = {name: value for name, value in inputs.items() if name != "entry"}

    def laid(tree: Any) -> Any:
        return lax.with_sharding_constraint(tree, placed)

    def add(carry: Any, _: None) -> tuple[Any, None]:
        weight_part, entry_part = jax.grad(partial(_loss, program, mesh), (0, 1))(
            states["weights"], entry, given
        )
        total = jax.tree.map(lambda sums, part: sums + part.astype(MASTER), carry[0], weight_part)
        return (laid(total), entry_part), None

    empty = jax.tree.map(partial(jnp.zeros_like, dtype=MASTER), states["weights"])
    (total, _), _ = lax.scan(add, (laid(empty), entry), None, length=program.rounds)
    return _adamw(states, total)


def _adamw(states: Any, gradients: Any) -> Any:
    """Return the states after the optimizer's step."""

    def step(master: Any, mean: Any, square: Any, part: Any) -> Any:
        mean = _BETAS[0] * mean + (1 - _BETAS[0]) * part
        square = _BETAS[1] * square + (1 - _BETAS[1]) * part * part
        master -= _RATE * (mean * lax.rsqrt(square + _EPSILON) + _DECAY * master)
        return {"master": master, "mean": mean, "square": square, "weights": master.astype(COMPUTE)}

    trees = (states["master"], states["mean"], states["square"], gradients)
    return jax.tree.transpose(jax.tree.structure(gradients), None, jax.tree.map(step, *trees))


def _loss(program: StageProgram, mesh: Mesh, weights: Any, entry: Any, given: Any) -> Any:
    """Return the sum over the micro-batches in flight of the loss, or of what stands for it."""

    def once(total: Any, parts: Any) -> tuple[Any, None]:
        layer = partial(_layer, program, mesh)
        value, batch = parts
        if program.is_first:
            value = layer("embedding", weights["embedding"], batch["tokens"], batch)

        def block(value: Any, part: Any) -> tuple[Any, None]:
            return layer("block", part, value, batch), None

        saved = {
            "none": block,
            "full": jax.checkpoint(block),
            "selective": jax.checkpoint(
                block, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable
            ),
        }
        value, _ = lax.scan(saved[program.recompute], value, weights["block"])
        if program.is_last:
            return total + layer("head", weights["head"], value, batch), None
        return total + jnp.sum((value * batch["back"]).astype(MASTER)), None

    return lax.scan(once, jnp.zeros((), MASTER), (entry, given))[0]


def _layer(
    program: StageProgram, mesh: Mesh, kind: str, weights: Any, value: Any, batch: Any
) -> Any:
    graph = program.model.trace[kind]
    values = {graph.nodes[0].name: value}
    for node in graph.nodes[1:]:
        inputs = [values[name] for name in node.inputs]
        if node.op == "loss":
            scores = jax.nn.log_softmax(inputs[0].astype(MASTER))
            return -jnp.mean(jnp.take_along_axis(scores, batch["targets"][..., None], -1))
        if node.op == "reshape":
            result = _reshaped(graph.inputs(node)[0].shape, node.shape, inputs[0], program.at)
        elif node.op == "attention":
            result = _attention(mesh, node, *inputs)
        else:
            write = WRITES[node.function or node.op]
            result = write(*inputs, *weights.get(node.name, ()))
        place = NamedSharding(mesh, _spec(node.shape, sp=program.point.sp))
        values[node.name] = lax.with_sharding_constraint(result, place)
    return values[graph.output.name]


def _scaled(value: Any, weight: Any, *bias: Any) -> Any:
    """Return an fp32 value over its root mean square, scaled in 16 bits."""
    unit = value * lax.rsqrt(jnp.mean(value * value, -1, keepdims=True) + _EPSILON)
    return sum(bias, unit.astype(COMPUTE) * weight)


def _rope(value: Any) -> Any:
    """Return queries or keys turned by their position, (batch, heads, sequence, width)."""
    length, width = value.shape[-2:]
    angle = jnp.outer(
        jnp.arange(length, dtype=MASTER), 1e4 ** (-jnp.arange(0, width, 2, dtype=MASTER) / width)
    )
    real, other = jnp.split(value, 2, -1)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    turned = (real * cosine - other * sine, other * cosine + real * sine)
    return jnp.concatenate(turned, -1).astype(COMPUTE)


WRITES: Mapping[str, Callable[..., Any]] = {
    "linear": lambda value, weight, *bias: sum(bias, jnp.einsum("...i,oi->...o", value, weight)),
    "embedding": lambda tokens, weight: weight[tokens],
    "position": lambda value, weight: value + weight[: value.shape[-2]],
    "rmsnorm": lambda value, weight: _scaled(value.astype(MASTER), weight),
    "layernorm": lambda value, weight, *bias: _scaled(
        value.astype(MASTER) - jnp.mean(value.astype(MASTER), -1, keepdims=True), weight, *bias
    ),
    "dropout": lambda value: value,
    "add": lambda *terms: sum(terms[1:], terms[0]),
    "rope": _rope,
    "gelu": jax.nn.gelu,
    "swiglu": lambda gate, up: jax.nn.silu(gate) * up,
    "geglu": lambda gate, up: jax.nn.gelu(gate) * up,
    "relu2": lambda value: jnp.square(jax.nn.relu(value)),
}
"""What operators write of their inputs and weights, by function or operator."""


def _reshaped(
    before: Sequence[Dim], after: Sequence[Dim], value: Any, at: Mapping[str, float]
) -> Any:
    """Return a view whose dimensions are products of the same factors in another order."""
    factors = [factor for dim in before for factor in dim]
    order = [factors.index(factor) for dim in after for factor in dim]
    split = value.reshape([int(extent((factor,), at)) for factor in factors])
    return split.transpose(order).reshape([int(extent(dim, at)) for dim in after])


def _attention(mesh: Mesh, node: Node, query: Any, key: Any, value: Any) -> Any:
    """Return fused attention; ranks of cp hold their queries and all keys."""
    heads, length, width = query.shape[1:]
    mask = splash_attention_mask.CausalMask if node.causal else splash_attention_mask.FullMask
    kernel = splash_attention_kernel.make_splash_mha(
        splash_attention_mask.MultiHeadMask([mask((length, length))] * heads),
        head_shards=mesh.shape["tp"],
        q_seq_shards=mesh.shape["cp"],
    )
    split = kernel.manual_sharding_spec(NamedSharding(mesh, PartitionSpec("tp", "cp")))
    part, total = (PartitionSpec(_BATCH, "tp", axis, None) for axis in ("cp", None))
    attend = jax.shard_map(
        lambda kernel, *operands: jax.vmap(kernel)(*operands),
        mesh=mesh,
        in_specs=(split, part, total, total),
        out_specs=part,
        check_vma=False,
    )
    return attend(kernel, query * width**-0.5, key, value)


def _spec(shape: Sequence[Dim], *, sp: bool) -> PartitionSpec:
    """Return which axes divide an activation."""
    divided = any(_DIVIDED & {*dim} for dim in shape)
    axes: dict[str, Any] = {"micro_batch": _BATCH, "sequence": "cp" if divided or not sp else
                            ("cp", "tp")} | dict.fromkeys(_DIVIDED, "tp")  # fmt: skip
    return PartitionSpec(*(next((axes[s] for s in dim if s in axes), None) for dim in shape))


def _weights(program: StageProgram, mesh: Mesh, sharded: bool) -> Any:
    """Return a stage's weights by layer and operator, blocks stacked, as they lie on the mesh."""
    layers = {"embedding": program.is_first, "block": program.blocks, "head": program.is_last}

    def place(kind: str, weight: Sequence[Dim]) -> jax.ShapeDtypeStruct:
        shape = [int(extent(dim, program.at)) for dim in weight]
        axes: list[Any] = ["tp" if _DIVIDED & {*dim} else None for dim in weight]
        ranks = math.prod(mesh.shape[axis] for axis in _SHARDS)
        free = [n for n, axis in enumerate(axes) if axis is None and shape[n] % ranks == 0]
        if sharded and free:
            axes[max(free, key=lambda n: shape[n])] = _SHARDS
        if kind == "block":
            shape, axes = [program.blocks, *shape], [None, *axes]
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(tuple(shape), COMPUTE, sharding=sharding)

    return {
        kind: {
            node.name: tuple(place(kind, weight) for weight in node.weights)
            for node in program.model.trace[kind].nodes
            if node.weights
        }
        for kind, count in layers.items()
        if count
    }


def _inputs(program: StageProgram, mesh: Mesh) -> Any:
    """Return what a stage is given of every micro-batch in flight."""
    tokens: Sequence[Dim] = (("micro_batch",), ("sequence",))
    hidden = (*tokens, ("hidden",))

    def place(dims: Sequence[Dim], dtype: Any) -> jax.ShapeDtypeStruct:
        axes = PartitionSpec(None, *_spec(dims, sp=program.point.sp))
        shape = (program.in_flight, *(int(extent(dim, program.at)) for dim in dims))
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, axes))

    entry = (
        {"tokens": place(tokens, jnp.int32)}
        if program.is_first
        else {"entry": place(hidden, COMPUTE)}
    )
    return entry | (
        {"targets": place(tokens, jnp.int32)}
        if program.is_last
        else {"back": place(hidden, COMPUTE)}
    )
