"""A three-layer instance small enough to price by hand, and how to change it."""

from __future__ import annotations

from typing import Any


def tiny(**changes: object) -> dict[str, Any]:
    """An embedding and two layers on two devices that meet at level 1; `changes` replace keys."""
    layers = [(-1, 1, 2, 10, 100), (0, 3, 4, 20, 200), (1, 5, 6, 30, 300)]
    document: dict[str, Any] = {
        "ep_degree": 1,
        "cp_degree": 1,
        "maxMemoryPerDevice": 1000,
        "maxDevices": 2,
        "bws": [20, 10],
        "latency_per_level": [0.5, 1],
        "devices_per_level": [1, 2],
        "mbsInBatch": 4.0,
        "nodes": {
            "1": [
                {
                    "id": identifier,
                    "optimalLatencyFw": forward,
                    "optimalLatencyBw": backward,
                    "parameterSize": parameters,
                    "activationSize": activations,
                }
                for identifier, forward, backward, parameters, activations in layers
            ]
        },
        "edges": {
            "1": [
                {"sourceId": -1, "destId": 0, "communicationCost": 40},
                {"sourceId": 0, "destId": 1, "communicationCost": 80},
            ]
        },
        "activationRecomputation": True,
        "optimizerAlgorithm": "SGD",
    }
    return {**document, **changes}
