"""Workloads: models, their operator graphs, sub-graph strategies, and the chain of layers."""

from nest_core.workload.explain import (
    elementwise_flops,
    gradients_in_words,
    kept_in_words,
    kernel_in_words,
    number,
    shape_in_words,
)
from nest_core.workload.graph import (
    Dim,
    Graph,
    Node,
    Sizes,
    Split,
    count,
    extent,
    families,
    load_trace,
)
from nest_core.workload.layers import (
    Chain,
    Collective,
    Layer,
    chain,
    check_experts,
    check_modules,
    layer_graph,
)
from nest_core.workload.model_files import ModelFile, load_model, model_of, model_table
from nest_core.workload.models import Model, sizes
from nest_core.workload.offload import NO_OFFLOAD, Offload, offloading
from nest_core.workload.operators import SOFTMAX_MATRICES, Accumulation, Kernel, Operator, Unit
from nest_core.workload.recomputation import (
    RECOMPUTE,
    WITHOUT_OUTPUT,
    by_method,
    method_of,
    module_nodes,
    modules_of,
    ordered,
    spelled,
)
from nest_core.workload.strategies import STRATEGIES, Strategy

__all__ = [
    "NO_OFFLOAD",
    "RECOMPUTE",
    "SOFTMAX_MATRICES",
    "STRATEGIES",
    "WITHOUT_OUTPUT",
    "Accumulation",
    "Chain",
    "Collective",
    "Dim",
    "Graph",
    "Kernel",
    "Layer",
    "Model",
    "ModelFile",
    "Node",
    "Offload",
    "Operator",
    "Sizes",
    "Split",
    "Strategy",
    "Unit",
    "by_method",
    "chain",
    "check_experts",
    "check_modules",
    "count",
    "elementwise_flops",
    "extent",
    "families",
    "gradients_in_words",
    "kept_in_words",
    "kernel_in_words",
    "layer_graph",
    "load_model",
    "load_trace",
    "method_of",
    "model_of",
    "model_table",
    "module_nodes",
    "modules_of",
    "number",
    "offloading",
    "ordered",
    "shape_in_words",
    "sizes",
    "spelled",
]
