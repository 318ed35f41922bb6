"""Workloads: models, their operator graphs, sub-graph strategies, and the chain of layers."""

from nest_core.workload.graph import Graph, Node, Split, load_trace
from nest_core.workload.layers import Chain, Collective, Layer, chain, layer_graph
from nest_core.workload.model_files import load_model
from nest_core.workload.models import Model
from nest_core.workload.operators import Kernel, Operator
from nest_core.workload.strategies import Strategy

__all__ = [
    "Chain",
    "Collective",
    "Graph",
    "Kernel",
    "Layer",
    "Model",
    "Node",
    "Operator",
    "Split",
    "Strategy",
    "chain",
    "layer_graph",
    "load_model",
    "load_trace",
]
