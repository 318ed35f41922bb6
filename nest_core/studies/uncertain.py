"""What is not known exactly, in words, and how one would come to know it.

Names are those of a spread (`nest_core.studies.uncertainty`): figures of an accelerator's kernels,
and ``kind.which`` of the network (`nest_core.hardware.network_spread`).
"""

__all__ = ["how_measured", "parameter_in_words"]

_KERNELS = {
    "gemm_efficiency": "what matrix products reach",
    "memory_efficiency": "what memory-bound kernels reach",
    "attention_efficiency": "what attention reaches",
    "biased_attention_efficiency": "what attention with a bias reaches",
    "host_s": "the time to launch a kernel",
    "network": "what collectives reach of the line rate",
}
_NETWORK = {
    "reach": "what collectives reach of the line rate",
    "incast": "incast of all-to-alls",
    "uplinks": "how evenly uplinks are used",
    "reduction": "what switches that reduce reach",
    "overlap": "overlap of traffic with computation",
}
_MEASURED = {
    **dict.fromkeys(_KERNELS, "profile one accelerator (nest-studio profile)"),
    "host_s": "trace an iteration on one node",
    "network": "run nccl-tests between two nodes",
    "reach": "run nccl-tests between two nodes",
    "incast": "run an all-to-all between nodes",
    "uplinks": "run an all-reduce across the spine, all nodes at once",
    "reduction": "run nccl-tests with and without in-network reduction",
    "overlap": "trace an iteration on several nodes",
}


def parameter_in_words(name: str, device: str = "") -> str:
    """Return a parameter to be read; of kernels with their device.

    Examples
    --------
    >>> parameter_in_words("gemm_efficiency", "H100"), parameter_in_words("overlap.dp")
    ('what matrix products reach on H100', 'overlap of traffic with computation (dp)')
    """
    if device:
        return f"{_KERNELS.get(name, name)} on {device}"
    kind, _, which = name.partition(".")
    words = _NETWORK.get(kind, kind)
    return f"{words} ({which})" if which else words


def how_measured(name: str) -> str:
    """Return what to run to know a parameter.

    Examples
    --------
    >>> how_measured("reach.roce")
    'run nccl-tests between two nodes'
    """
    return _MEASURED[name.partition(".")[0]]
