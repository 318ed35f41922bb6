"""Models that torchtitan 0.3.0 ships: module, flavour, and a configuration to start from.

Sizes are those of ``torchtitan/models/*/__init__.py``; a configuration function of the same
tokenizer lends everything that the scenario does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.export.values import Refused
from nest_core.workload import Model

__all__ = ["Flavour", "flavour_of"]


@dataclass(frozen=True, slots=True)
class Flavour:
    """A model of torchtitan.

    Parameters
    ----------
    module, name, base : str
        Package of ``torchtitan.models``, key of its ``model_registry``, and function of its
        ``config_registry``.
    family : str
    blocks, hidden, heads, kv_heads, ffn, vocabulary : int
        ``ffn``: inner width of the dense MLP, 0 without one.
    experts, top_k, expert_ffn, shared_ffn, dense_blocks : int
    tied : bool
    """

    module: str
    name: str
    base: str
    family: str
    blocks: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    experts: int = 1
    top_k: int = 1
    expert_ffn: int = 0
    shared_ffn: int = 0
    dense_blocks: int = 0
    tied: bool = False


_LLAMA, _QWEN, _DEEPSEEK = 128256, 151936, "deepseek_v3_16b"
_FLAVOURS = (
    Flavour("llama3", "1B", "llama3_8b", "llama", 16, 2048, 32, 8, 8192, _LLAMA, tied=True),
    Flavour("llama3", "3B", "llama3_8b", "llama", 28, 3072, 24, 8, 8192, _LLAMA, tied=True),
    Flavour("llama3", "8B", "llama3_8b", "llama", 32, 4096, 32, 8, 14336, _LLAMA),
    Flavour("llama3", "70B", "llama3_70b", "llama", 80, 8192, 64, 8, 28672, _LLAMA),
    Flavour("llama3", "405B", "llama3_70b", "llama", 126, 16384, 128, 8, 53248, _LLAMA),
    Flavour("qwen3", "0.6B", "qwen3_0_6b", "qwen3", 28, 1024, 16, 8, 3072, _QWEN, tied=True),
    Flavour("qwen3", "1.7B", "qwen3_1_7b", "qwen3", 28, 2048, 16, 8, 6144, _QWEN, tied=True),
    Flavour("qwen3", "4B", "qwen3_1_7b", "qwen3", 36, 2560, 32, 8, 9728, _QWEN, tied=True),
    Flavour("qwen3", "8B", "qwen3_14b", "qwen3", 36, 4096, 32, 8, 12288, _QWEN),
    Flavour("qwen3", "14B", "qwen3_14b", "qwen3", 40, 5120, 40, 8, 17408, _QWEN),
    Flavour("qwen3", "32B", "qwen3_32b", "qwen3", 64, 5120, 64, 8, 25600, _QWEN),
    Flavour(
        "qwen3", "30B-A3B", "qwen3_30b_a3b", "qwen3_moe", 48, 2048, 32, 4, 0, _QWEN, 128, 8, 768
    ),
    Flavour(
        "qwen3", "235B-A22B", "qwen3_30b_a3b", "qwen3_moe", 94, 4096, 64, 4, 0, _QWEN, 128, 8, 1536
    ),
    Flavour(
        "deepseek_v3", "236B", _DEEPSEEK, "deepseek_v2", 60, 5120, 128, 128, 12288, 102400,
        160, 6, 1536, 3072, 1,
    ),
    Flavour(
        "deepseek_v3", "671B", "deepseek_v3_671b", "deepseek_v3", 61, 7168, 128, 128, 18432, 129280,
        256, 8, 2048, 2048, 3,
    ),
    Flavour(
        "gpt_oss", "120b", "gpt_oss_120b", "gpt_oss", 36, 2880, 64, 8, 0, 201088, 128, 4, 2880
    ),
    Flavour("gpt_oss", "20b", "gpt_oss_20b", "gpt_oss", 24, 2880, 64, 8, 0, 201088, 32, 4, 2880),
)  # fmt: skip
_SIZES = (
    "family", "blocks", "hidden", "heads", "kv_heads", "ffn", "vocabulary", "experts", "top_k",
    "expert_ffn", "shared_ffn", "dense_blocks", "tied",
)  # fmt: skip


def flavour_of(model: Model) -> Flavour:
    """The flavour with a model's sizes.

    Raises
    ------
    Refused
        If torchtitan ships none.
    """
    for flavour in _FLAVOURS:
        if not model.window and all(getattr(flavour, n) == getattr(model, n) for n in _SIZES):
            return flavour
    raise Refused(
        "workload.model", "must have the sizes of a model that torchtitan ships", model.name,
        "pick a Llama 3, Qwen3, DeepSeek or GPT-OSS model, or export with --to megatron",
    )  # fmt: skip
