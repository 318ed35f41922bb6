"""Workloads: models, their operators, sub-graph strategies, and the chain of layers."""

from nest_core.workload.layers import Chain, Collective, Layer, Strategy, chain
from nest_core.workload.models import Model
from nest_core.workload.operators import Operator

__all__ = ["Chain", "Collective", "Layer", "Model", "Operator", "Strategy", "chain"]
