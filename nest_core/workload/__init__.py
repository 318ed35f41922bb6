"""Workloads: models, their operator graphs, sub-graph strategies, and the chain of layers."""

from nest_core.workload.graph import Dim, Graph, Node, Sizes, Split, extent, families, load_trace
from nest_core.workload.layers import (
    Chain,
    Collective,
    Layer,
    chain,
    check_experts,
    check_modules,
    layer_graph,
)
from nest_core.workload.model_files import load_model, model_table
from nest_core.workload.models import Model, sizes
from nest_core.workload.operators import Kernel, Operator, Unit
from nest_core.workload.recomputation import (
    RECOMPUTE,
    by_method,
    method_of,
    modules_of,
    ordered,
    spelled,
)
from nest_core.workload.strategies import Strategy

__all__ = [
    "RECOMPUTE",
    "Chain",
    "Collective",
    "Dim",
    "Graph",
    "Kernel",
    "Layer",
    "Model",
    "Node",
    "Operator",
    "Sizes",
    "Split",
    "Strategy",
    "Unit",
    "by_method",
    "chain",
    "check_experts",
    "check_modules",
    "extent",
    "families",
    "layer_graph",
    "load_model",
    "load_trace",
    "method_of",
    "model_table",
    "modules_of",
    "ordered",
    "sizes",
    "spelled",
]
