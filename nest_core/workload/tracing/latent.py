"""Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

Queries, keys and values pass through narrow latents. A head's query and key have a part
without positions (``head_dim``) and a rotated one (``rope_dim``), whose key all heads share.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nest_core.workload.tracing.layers import Merge, RmsNorm, Rope, SplitHeads
from nest_core.workload.tracing.sizes import Sizes

__all__ = ["LatentAttention"]


class LatentCore(nn.Module):
    """Attention over both parts of queries and keys; the rotated key is broadcast to heads."""

    fused, op, function, causal = True, "attention", "mla", True

    def forward(
        self, query: Tensor, query_rope: Tensor, key: Tensor, key_rope: Tensor, value: Tensor
    ) -> Tensor:
        shared = key_rope.expand(-1, key.shape[1], -1, -1)
        return F.scaled_dot_product_attention(
            torch.cat((query, query_rope), dim=-1),
            torch.cat((key, shared), dim=-1),
            value,
            is_causal=True,
        )


class LatentAttention(nn.Module):
    """MLA; every projection to a sum of widths is written as several."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        hidden, heads = sizes.hidden, sizes.heads
        self.query_down = nn.Linear(hidden, sizes.q_rank, bias=False)
        self.query_norm = RmsNorm(sizes.q_rank)
        self.query = nn.Linear(sizes.q_rank, heads * sizes.head_dim, bias=False)
        self.query_position = nn.Linear(sizes.q_rank, heads * sizes.rope_dim, bias=False)
        self.key_value_down = nn.Linear(hidden, sizes.kv_rank, bias=False)
        self.key_position = nn.Linear(hidden, sizes.rope_dim, bias=False)
        self.key_value_norm = RmsNorm(sizes.kv_rank)
        self.key = nn.Linear(sizes.kv_rank, heads * sizes.head_dim, bias=False)
        self.value = nn.Linear(sizes.kv_rank, heads * sizes.value_dim, bias=False)
        self.query_heads = SplitHeads(heads)
        self.query_position_heads = SplitHeads(heads)
        self.key_heads = SplitHeads(heads)
        self.key_position_heads = SplitHeads(1)
        self.value_heads = SplitHeads(heads)
        self.rope_query = Rope()
        self.rope_key = Rope()
        self.core = LatentCore()
        self.merge = Merge()
        self.output = nn.Linear(heads * sizes.value_dim, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        latent = self.query_norm(self.query_down(x))
        query = self.query_heads(self.query(latent))
        query_rope = self.rope_query(self.query_position_heads(self.query_position(latent)))
        shared = self.key_value_norm(self.key_value_down(x))
        key = self.key_heads(self.key(shared))
        key_rope = self.rope_key(self.key_position_heads(self.key_position(x)))
        mixed = self.core(query, query_rope, key, key_rope, self.value_heads(self.value(shared)))
        return cast(Tensor, self.output(self.merge(mixed)))
