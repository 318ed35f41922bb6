"""Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

Queries, keys and values pass through narrow latents; queries of small models come from the
residual stream itself. A head's query and key have a part without positions (``head_dim``) and a
rotated one (``rope_dim``), whose key all heads share. An indexer (DeepSeek-V3.2, arXiv:2512.02556)
scores all earlier tokens with heads of its own and picks those that attention sees.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.traces.layers import Merge, RmsNorm, Rope, SplitHeads
from benchmarks.traces.sizes import Sizes

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


class IndexCore(nn.Module):
    """Scores of all earlier tokens, weighted and summed over the indexer's heads; in the sum here
    the weights stand at the keys."""

    fused, op, function, causal = True, "attention", "index", True

    def forward(self, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        scores = F.relu(query @ key.expand(-1, query.shape[1], -1, -1).transpose(-1, -2)).tril()
        return (scores @ weight).sum(1)


class Select(nn.Module):
    """The rotated keys, with the tokens that the indexer picks; here it scales them."""

    fused, op, function = True, "elementwise", "select"

    def forward(self, key: Tensor, picked: Tensor) -> Tensor:
        return key + 0.0 * picked.unsqueeze(1)


class Indexer(nn.Module):
    """DeepSeek-V3.2's: heads that share one key, normalised, and a weight for each."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.query = nn.Linear(sizes.q_rank, sizes.index_heads * sizes.index_dim, bias=False)
        self.key = nn.Linear(sizes.hidden, sizes.index_dim, bias=False)
        self.key_norm = nn.LayerNorm(sizes.index_dim)
        self.weight = nn.Linear(sizes.hidden, sizes.index_heads, bias=False)
        self.query_heads, self.key_heads = SplitHeads(sizes.index_heads), SplitHeads(1)
        self.weight_heads = SplitHeads(sizes.index_heads)
        self.rope_query, self.rope_key = Rope(0.5), Rope(0.5)
        self.core = IndexCore()

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        query = self.rope_query(self.query_heads(self.query(latent)))
        key = self.rope_key(self.key_heads(self.key_norm(self.key(x))))
        return cast(Tensor, self.core(query, key, self.weight_heads(self.weight(x))))


class LatentAttention(nn.Module):
    """MLA; every projection to a sum of widths is written as several.

    Parameters
    ----------
    sizes : Sizes
    narrow : bool
        Whether queries pass through a latent of their own.
    index : bool
        Whether an indexer picks the tokens that are seen.
    """

    def __init__(self, sizes: Sizes, *, narrow: bool = True, index: bool = False) -> None:
        super().__init__()
        hidden, heads = sizes.hidden, sizes.heads
        width = sizes.q_rank if narrow else hidden
        self.query_down = nn.Linear(hidden, width, bias=False) if narrow else nn.Identity()
        self.query_norm = RmsNorm(width) if narrow else nn.Identity()
        self.query = nn.Linear(width, heads * sizes.head_dim, bias=False)
        self.query_position = nn.Linear(width, heads * sizes.rope_dim, bias=False)
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
        self.indexer = Indexer(sizes) if index else None
        self.select = Select()
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
        if self.indexer is not None:
            key_rope = self.select(key_rope, self.indexer(x, latent))
        mixed = self.core(query, query_rope, key, key_rope, self.value_heads(self.value(shared)))
        return cast(Tensor, self.output(self.merge(mixed)))
