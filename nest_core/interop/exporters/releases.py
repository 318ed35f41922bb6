"""The release that every target is written for, said here and nowhere else.

Files, pages, documents and the programs of ``make outside`` take it from here.
"""

from collections.abc import Mapping

__all__ = ["PACKAGES", "RELEASES"]

PACKAGES: Mapping[str, str] = {
    "megatron-core": "0.19.2",
    "megatron-bridge": "0.6.2",
    "deepspeed": "0.19.8",
    "torchtitan": "0.3.0",
    "maxtext": "0.2.5",
}
"""Releases on the Python package index."""

_CORE = f"megatron-core {PACKAGES['megatron-core']}"

RELEASES: Mapping[str, str] = {
    "megatron": f"Megatron-LM ({_CORE})",
    "nemo": f"Megatron-Bridge {PACKAGES['megatron-bridge']} ({_CORE})",
    "deepspeed": f"DeepSpeed {PACKAGES['deepspeed']}",
    "torchtitan": f"torchtitan {PACKAGES['torchtitan']}",
    "maxtext": f"MaxText {PACKAGES['maxtext']}",
    "slurm": "Slurm 24.11.5 and 26.05.5",
    "astra-sim": "ASTRA-sim commit 2ad88b8d, Chakra schema commit 6dc63e14",
}
"""What the files of every target are written for, by the name that ``--to`` takes."""
