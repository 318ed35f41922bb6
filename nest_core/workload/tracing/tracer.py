"""One PyTorch module to one layer's operators.

The module is exported on the meta device (`torch.export`), where tensors have shapes and no
memory, so a trace costs the same at any size. The exported graph is then read once, in order:

- what depends on neither input nor parameter (masks, ranges, rotary tables) is dropped;
- what depends on parameters only is those parameters (a transposed weight, a cast one);
- modules with ``fused = True`` become one node of their ``op`` and ``function``;
- PyTorch's operators become those of `nest_core.workload.graph`; views that follow each other
  become one, views that change nothing none;
- lengths become products of symbols (`nest_core.workload.tracing.entries`).

Nodes are named after the module that runs them.

Modules to PyTorch's exported graphs, on the meta device.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from nest_core.documents.errors import InputError, require
from nest_core.workload.tracing.entries import (
    FusedGroup,
    Shape,
    TraceEntry,
    as_node,
    free_name,
    fused_groups,
    module_path,
    tidied,
)
from nest_core.workload.tracing.operators import (
    arguments,
    base_name,
    canonical,
    is_idle,
    is_in_place,
    is_permutation,
    is_view,
)

__all__ = ["export", "trace"]


def export(module: nn.Module, inputs: Sequence[Any]) -> torch.export.ExportedProgram:
    """Return the exported program of a module, which is left as it was.

    Raises
    ------
    InputError
        If its forward fails or cannot be exported.
    """
    with _on_meta(module), torch.device("meta"):
        return _export(
            module, tuple(x.detach().to("meta") if isinstance(x, Tensor) else x for x in inputs)
        )


@contextmanager
def _on_meta(module: nn.Module) -> Iterator[None]:
    """Return the module's tensors without memory, and as they were afterwards."""
    originals: list[tuple[dict[str, Any], str, Any]] = []
    replaced: dict[int, Any] = {}
    for part in module.modules():
        for store in (part._parameters, part._buffers):
            for name, tensor in store.items():
                if tensor is None or tensor.is_meta:
                    continue
                originals.append((store, name, tensor))
                if id(tensor) not in replaced:
                    thin = tensor.detach().to("meta")
                    replaced[id(tensor)] = (
                        nn.Parameter(thin, tensor.requires_grad)
                        if isinstance(tensor, nn.Parameter)
                        else thin
                    )
                store[name] = replaced[id(tensor)]
    try:
        yield
    finally:
        for store, name, tensor in originals:
            store[name] = tensor


def _export(module: nn.Module, inputs: tuple[Any, ...]) -> torch.export.ExportedProgram:
    try:
        return torch.export.export(module, inputs)
    except Exception as error:  # whatever the person's forward or the exporter raises
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            f"module {type(module).__name__}",
            "must be traceable by torch.export on the meta device",
            f"{type(error).__name__}: {first}",
            "avoid branches on tensor values and operators without shapes, and check the inputs",
        ) from error


@dataclass(frozen=True, slots=True)
class _Value:
    """What a value of the exported graph is to us.

    ``source`` names an entry; where it is empty, the value is made of the parameters in
    ``weights``, or constant without them.
    """

    source: str = ""
    weights: tuple[str, ...] = ()
    shape: Shape = ()


def trace(
    module: nn.Module, inputs: Sequence[Any], symbols: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """Return the operators of a module, in the form of a trace file's layers.

    Parameters
    ----------
    module : nn.Module
        In the mode (training or not) that is to be priced, on any device; left as it is.
    inputs : sequence
        Arguments of its forward: tensors, and what else it takes. Only shapes are used.
    symbols : mapping of str to int, optional
        Sizes that are to become symbols.

    Returns
    -------
    list of dict
        Nodes as `nest_core.workload.graph.graph_of` reads them; the last one is the output.

    Raises
    ------
    InputError
        If the module cannot be exported, or runs an operator without a counterpart.

    Examples
    --------
    >>> nodes = trace(nn.Linear(7, 5), (torch.empty(3, 7),), {"hidden": 7, "ffn": 5})
    >>> nodes[1]["shape"], nodes[1]["weights"]
    ([[3], ['ffn']], [[['ffn'], ['hidden']], [['ffn']]])
    """
    return [
        as_node(entry, symbols or {}) for entry in _Reader(module, export(module, inputs)).read()
    ]


class _Reader:
    """Walks an exported graph and collects entries."""

    def __init__(self, module: nn.Module, program: torch.export.ExportedProgram) -> None:
        self.module, self.graph = module, program.graph
        self.signature = program.graph_signature
        self.groups = fused_groups(module, program.graph)
        self.values: dict[fx.Node, _Value] = {}
        self.entries: dict[str, TraceEntry] = {}
        self.parameters: dict[str, Shape] = {}

    def read(self) -> list[TraceEntry]:
        """Return the entries of the whole graph, tidied."""
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "call_function":
                self.values[node] = self._call(node)
        sources = [value.source for value in self._of(self.graph.output_node()) if value.source]
        require(
            sources,
            f"module {type(self.module).__name__}",
            "must return a tensor that depends on its input",
            "none",
            "return the layer's output",
        )
        return tidied(self.entries, sources[0])

    def _placeholder(self, node: fx.Node) -> None:
        shape = _shape_of(node)
        parameters = self.signature.inputs_to_parameters
        if node.name in parameters:
            name = parameters[node.name]
            self.parameters[name] = shape
            self.values[node] = _Value(weights=(name,), shape=shape)
        elif node.name in self.signature.user_inputs and isinstance(node.meta.get("val"), Tensor):
            title = node.name if "input" in self.entries else "input"
            function = "" if node.meta["val"].is_floating_point() else "tokens"
            self.values[node] = self._emit(
                TraceEntry("", "input", function, [], shape, title=title)
            )
        else:
            self.values[node] = _Value(shape=shape)

    def _call(self, node: fx.Node) -> _Value:
        read, shape = self._of(node), _shape_of(node)
        if is_idle(node):
            return next(iter(read), _Value())
        weights, sources = _distinct(read)
        if not sources:  # constants, and what is made of parameters alone
            return _Value(weights=weights, shape=shape)
        group = self.groups.get(node)
        if group is not None:
            return self._fused(group, shape) if node is group.output else _Value(sources[0])
        if node.target is operator.getitem or is_view(node.target):
            return self._view(node, sources[0], shape)
        kind = canonical(node.target)
        if kind is None:
            raise self._unknown(node)
        entry = TraceEntry("", *kind, sources, shape, title=self._title(node, kind[1] or kind[0]))
        entry.weights = [self.parameters[name] for name in weights]
        self._detail(node, entry)
        return self._overwrite(node, entry) if is_in_place(node.target) else self._emit(entry)

    def _emit(self, entry: TraceEntry) -> _Value:
        entry.name = free_name(entry.title, self.entries)
        self.entries[entry.name] = entry
        return _Value(entry.name, shape=entry.shape)

    def _overwrite(self, node: fx.Node, entry: TraceEntry) -> _Value:
        """Return what is written into a view changes all of the tensor for those who read it
        later.
        """
        base = node.args[0]
        while isinstance(base, fx.Node) and is_view(base.target):
            base = base.args[0]
        if not isinstance(base, fx.Node) or base is node.args[0]:
            return self._emit(entry)
        before = self.values[base]
        entry.shape = _shape_of(base)
        part = self.values[node.args[0]].source if isinstance(node.args[0], fx.Node) else ""
        if base_name(node.target) == "copy" and part in entry.inputs:
            entry.inputs.remove(part)  # overwritten, not read
        if before.source and before.source not in entry.inputs:
            entry.inputs.append(before.source)
        self.values[base] = self._emit(entry)
        return self.values[base]

    def _view(self, node: fx.Node, source: str, shape: Shape) -> _Value:
        before = self.entries[source].shape
        if not isinstance(node.meta.get("val"), Tensor):  # several outputs: their items follow
            return _Value(source, shape=before)
        if shape == before and not is_permutation(node.target):
            return _Value(source, shape=shape)
        return self._emit(
            TraceEntry("", "reshape", "", [source], shape, title=self._title(node, "reshape"))
        )

    def _fused(self, group: FusedGroup, shape: Shape) -> _Value:
        """One entry for a whole module; its inputs in the order in which its output needs them."""
        weights, sources = _distinct(self._outside(group))
        op, function = str(group.module.op), str(getattr(group.module, "function", ""))
        if op == "loss":  # the targets are no activations
            del sources[1:]
        entry = TraceEntry("", op, function, sources, shape, title=group.path)
        entry.weights = [self.parameters[name] for name in weights]
        entry.causal = bool(getattr(group.module, "causal", False))
        return self._emit(entry)

    def _outside(self, group: FusedGroup) -> list[_Value]:
        """Values from outside that a group reads, depth first from its output."""
        values: list[_Value] = []
        seen: set[fx.Node] = set()

        def visit(node: fx.Node) -> None:
            for source in node.all_input_nodes:
                if source not in group.nodes:
                    values.append(self.values[source])
                elif source not in seen:
                    seen.add(source)
                    visit(source)

        for node in (group.output, *(node for node in self.graph.nodes if node in group.nodes)):
            if node is not None and node not in seen:
                seen.add(node)
                visit(node)
        return values

    def _detail(self, node: fx.Node, entry: TraceEntry) -> None:
        """Return what an operator's arguments say beyond its tensors."""
        if entry.op == "matmul":
            self._product(node, entry)
        elif entry.op == "attention":
            given = arguments(node)
            entry.causal = bool(given.get("is_causal", False))
            entry.function = "dropout" if given.get("dropout_p", 0.0) else ""
            entry.inputs = [self.values[given[name]].source for name in ("query", "key", "value")]
        elif entry.op == "loss":
            entry.inputs = entry.inputs[:1]

    def _product(self, node: fx.Node, entry: TraceEntry) -> None:
        """Products with a parameter are linear, with a stack of them grouped."""
        values = [self.values[argument] for argument in node.args if isinstance(argument, fx.Node)]
        name = base_name(node.target)
        if name in ("addmm", "baddbmm"):  # the sum's other term comes first
            values = [*values[1:], values[0]]
        first, second, *added = values
        if first.source and second.source:
            entry.inputs = [first.source, second.source]
            return
        weight = second if first.source else first
        *groups, rows, columns = weight.shape if len(weight.shape) > 1 else (1, *weight.shape)
        if name != "linear" and weight is second:  # stored as (in, out)
            rows, columns = columns, rows
        biases = [value.shape for value in added if value.weights]
        entry.op = "grouped_linear" if groups else "linear"
        entry.weights = [
            (*groups, rows, columns),
            *(_squeezed(shape, len(groups) + 1) for shape in biases),
        ]

    def _of(self, node: fx.Node) -> list[_Value]:
        """Values of a node's arguments, in order."""
        return [self.values[source] for source in node.all_input_nodes]

    def _title(self, node: fx.Node, plain: str) -> str:
        """Return a leaf module's path, or its parent's with what the operator does."""
        path = module_path(node)
        if path and not any(True for _ in self.module.get_submodule(path).children()):
            return path
        return f"{path}.{plain}" if path else plain

    def _unknown(self, node: fx.Node) -> InputError:
        return InputError(
            f"an operator of module {module_path(node) or type(self.module).__name__}",
            "must be a product, attention, norm, element-wise function, reduction, move or view",
            str(node.target),
            "write it with those, or give its module fused = True and an op",
        )


def _distinct(values: Sequence[_Value]) -> tuple[tuple[str, ...], list[str]]:
    """Names of the parameters and of the entries among values, each once."""
    weights = dict.fromkeys(name for value in values for name in value.weights)
    return tuple(weights), list(dict.fromkeys(value.source for value in values if value.source))


def _shape_of(node: fx.Node) -> Shape:
    value = node.meta.get("val")
    return tuple(int(length) for length in value.shape) if isinstance(value, Tensor) else ()


def _squeezed(shape: Shape, rank: int) -> Shape:
    """Return a bias without the axes of length 1 that broadcasting asked for."""
    lengths = list(shape)
    while len(lengths) > rank and 1 in lengths:
        lengths.remove(1)
    return tuple(lengths)
