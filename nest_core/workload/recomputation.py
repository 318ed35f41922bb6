"""What backward runs again instead of keeping it: nothing, whole layers, or modules of a layer.

A recomputation is a word of `RECOMPUTE`, a method of full recomputation, or a set of modules [1]_,
spelled in the order of `MODULES` and joined by ``+``; ``selective`` is core attention alone. Two
ways to run a module again free different tensors:

* *From its input* (core attention, an MLP, a layer of experts, shared experts): what the module
  makes for itself is freed, its output stays for whoever reads it. Its collectives run again but
  those of core attention, whose keys and values stay.
* *Without its output* (layer norms, the activation of experts, the up projections of latent
  attention): its output is freed too, and made again when its reader's backward starts. A copy in
  fp8 that a projection made of it stays.

Full recomputation has two methods [1]_, both of which count blocks from the first of a virtual
stage on: ``block:n`` runs the first ``n`` again, one at a time, and keeps all of the others;
``uniform:n`` keeps the input of every n-th and runs ``n`` again at once. ``full`` is ``uniform:1``.

References
----------
.. [1] NVIDIA/Megatron-LM@002526d, ``recompute_modules``, ``recompute_method`` and
       ``recompute_num_layers`` in ``megatron/core/transformer/transformer_config.py``.

What backward runs again under PyTorch's checkpoints of a block.

A non-reentrant checkpoint stops as soon as it has made the last tensor that backward reads [1]_:
of a block, the down projection, its collective and the sum that takes it do not run again.
Selective recomputation is by operator [2]_: the outputs of attention, of reduce-scatters and of
the first, third, fifth... product of a block stay, and of the others those are made again that
backward reads or that lead there. Products in 8 bits are not among those that stay, so all of them
but the last run again. JAX's checkpoints run again what backward reads; ``selective`` is there that
of products with weights all stay that it reads, summed over the ranks that share them (MaxText's
``minimal``, and its names of the experts' products).

References
----------
.. [1] pytorch/pytorch#96866 (PyTorch 2.1).
.. [2] pytorch/torchtitan@0596be3, ``_save_list`` in
       ``torchtitan/models/llama/parallelize_llama.py``.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from nest_core.documents.errors import InputError, require
from nest_core.workload.graph import Graph, Node
from nest_core.workload.operators import Operator

__all__ = [
    "METHODS",
    "MODULES",
    "RECOMPUTE",
    "WITHOUT_OUTPUT",
    "by_method",
    "method_of",
    "module_nodes",
    "modules_of",
    "ordered",
    "recomputation",
    "run_again",
    "saved_outputs",
    "spelled",
]

RECOMPUTE = ("none", "selective", "full")

MODULES = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")

METHODS = ("uniform", "block")
"""Of full recomputation."""

MOST_LAYERS = 100_000

WITHOUT_OUTPUT = frozenset({"layernorm", "moe_act", "mla_up_proj"})
"""Modules whose output is freed too."""

_PARTS_OF_MOE = ("moe_act", "shared_experts")
_NORMS = ("attention_norm", "mlp_norm")
_UP_PROJECTIONS = frozenset(
    f"attention.{name}"
    for name in ("query", "query_position", "rope_query", "key", "rope_key", "value")
)


def spelled(modules: Iterable[str], field: str = "recompute") -> str:
    """Return the spelling of a set of modules; what a layer of experts holds goes without saying.

    Raises
    ------
    InputError
        For an unknown module, one given twice, and for none at all.

    Examples
    --------
    >>> spelled(["moe_act", "core_attn"]), spelled(["core_attn"]), spelled(["moe", "moe_act"])
    ('core_attn+moe_act', 'selective', 'moe')
    """
    requested = list(modules)
    for name in requested:
        require(
            name in MODULES,
            field,
            "must name modules that can be recomputed",
            name,
            "pick " + ", ".join(MODULES),
        )
    require(
        requested and len(set(requested)) == len(requested),
        field,
        "must name each module once, and at least one",
        requested,
        "write none for nothing",
    )
    distinct = [
        m for m in MODULES if m in requested and not (m in _PARTS_OF_MOE and "moe" in requested)
    ]
    return "selective" if distinct == ["core_attn"] else "+".join(distinct)


def by_method(method: str, layers: Any, field: str = "recompute") -> str:
    """Return the spelling of full recomputation by a method of `METHODS`.

    Raises
    ------
    InputError
        For a number of layers that is none.

    Examples
    --------
    >>> by_method("block", 4), by_method("uniform", 1)
    ('block:4', 'full')
    """
    require(
        not isinstance(layers, bool) and isinstance(layers, int) and (1 <= layers <= MOST_LAYERS),
        f"{field}.{method}",
        f"must be a whole number of layers from 1 to {MOST_LAYERS:,}",
        layers,
        "write none for no recomputation",
    )
    return "full" if (method, layers) == ("uniform", 1) else f"{method}:{layers}"


def recomputation(value: Any, field: str = "recompute") -> str:
    """Return a recomputation as a plan or a file states it.

    A word, modules joined by ``+``, ``block:4``, or a table: ``{"modules": [...]}``,
    ``{"uniform": 2}``, ``{"block": 4}``.

    Raises
    ------
    InputError
        If it is none.
    """
    if isinstance(value, dict) and len(value) == 1:
        ((key, given),) = value.items()
        if key == "modules" and isinstance(given, list):
            return spelled(map(str, given), field)
        if key in METHODS:
            return by_method(key, given, field)
    if value in RECOMPUTE:
        return str(value)
    if isinstance(value, str) and ("+" in value or value in MODULES):
        return spelled(value.split("+"), field)
    if isinstance(value, str):
        method, _, layers = value.partition(":")
        if method in METHODS:
            plain = layers.isascii() and layers.isdecimal() and len(layers) < 9
            return by_method(method, int(layers) if plain else layers, field)
    raise InputError(
        field,
        "must be none, selective, full, modules joined by +, uniform:n or block:n",
        value,
        "modules are " + ", ".join(MODULES),
    )


def ordered(recomputations: Iterable[str]) -> tuple[str, ...]:
    """Those of `RECOMPUTE`, with the others among these before full, each once.

    Examples
    --------
    >>> ordered(["mlp", "full"])
    ('none', 'selective', 'mlp', 'full')
    """
    *lean, full = RECOMPUTE
    return tuple(dict.fromkeys((*lean, *(name for name in recomputations if name != full), full)))


def modules_of(recompute: str) -> tuple[str, ...]:
    """Return the modules of a recomputation; none of full, which runs all of a layer again."""
    if recompute == "selective":
        return ("core_attn",)
    return () if recompute in RECOMPUTE or method_of(recompute)[1] else tuple(recompute.split("+"))


def method_of(recompute: str) -> tuple[str, int]:
    """Return method and number of layers of full recomputation by a method; else nothing and 0.

    Examples
    --------
    >>> method_of("block:4"), method_of("full")
    (('block', 4), ('', 0))
    """
    method, _, layers = recompute.partition(":")
    return (method, int(layers)) if method in METHODS else ("", 0)


def module_nodes(graph: Graph, module: str) -> frozenset[str]:
    """Names of the operators and collectives of a block that a module runs again."""
    inner = {node.name for node in graph.nodes if _of(graph, node, module)}
    if module == "core_attn":
        return frozenset(inner)
    nodes = set(inner)
    for node in graph.nodes:
        if node.op != "collective":
            continue
        readers = {other.name for other in graph.nodes if node.name in other.inputs}
        is_inner = node.inputs[0] in nodes and module not in WITHOUT_OUTPUT
        if is_inner or (readers and readers <= inner):
            nodes.add(node.name)
    return frozenset(nodes)


def _of(graph: Graph, node: Node, module: str) -> bool:
    """Whether an operator, as traces and rewrites name it, belongs to a module."""
    name = node.name
    if node.op in ("input", "reshape", "collective"):
        return False
    if module == "core_attn":
        return node.core
    if module == "layernorm":
        return name in _NORMS
    if module == "moe_act":
        return name == "experts.activation"
    if module == "mla_up_proj":
        latent = any(other.name == "attention.key_value_down" for other in graph.nodes)
        return latent and name in _UP_PROJECTIONS
    if module == "mlp":
        return name.startswith("mlp.")
    return (
        name.startswith("shared.")
        if module == "shared_experts"
        else name.startswith(("experts.", "shared.")) or name == "shared_add"
    )


_PRODUCTS = ("linear", "grouped_linear")
_SUMS = (("all_reduce",), ("reduce_scatter",))


def saved_outputs(graph: Graph, checkpoint: str, read: Collection[str]) -> tuple[str, ...]:
    """Nodes whose output stays under recomputation by operator.

    Parameters
    ----------
    checkpoint : {"per_operator", "per_operator_narrow", "jax"}
        As of `Strategy`.
    read : collection of str
        What backward reads, or what leads there (`run_again`).
    """
    products = [node.name for node in graph.nodes if node.op in _PRODUCTS]
    sums = {node.inputs[0]: node.name for node in graph.nodes if node.forward in _SUMS}
    if checkpoint == "jax":  # a product is whole before it is kept
        return tuple(sums.get(name, name) for name in products if name in read)
    others = [
        node.name
        for node in graph.nodes
        if node.op == "attention" or node.forward == ("reduce_scatter",)
    ]
    return (*(products[::2] if checkpoint == "per_operator" else ()), *others)


def run_again(
    graph: Graph,
    replayed: Sequence[Operator],
    saved: Collection[str] = (),
    drawn: tuple[str, ...] = (),
) -> frozenset[str]:
    """Nodes of a block that run again until all that backward reads is there.

    Parameters
    ----------
    replayed : sequence of Operator
        Of the graph.
    saved : collection of str
        Those whose output is there already.
    drawn : tuple of str
        How names of tensors end that are made without inputs.
    """
    wanted = [
        name.split(":")[0]
        for operator in replayed
        for name, _ in operator.kept
        if not name.endswith(drawn)
    ]
    again: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in again and name not in saved:
            again.add(name)
            wanted += graph[name].inputs
    return frozenset(again) - {graph.nodes[0].name}
