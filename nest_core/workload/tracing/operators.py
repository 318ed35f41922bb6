"""What PyTorch's operators are in the vocabulary of `nest_core.workload.graph`."""

import operator
from typing import Any

import torch
from torch import Tensor, fx

__all__ = [
    "arguments",
    "base_name",
    "canonical",
    "is_idle",
    "is_in_place",
    "is_permutation",
    "is_view",
]

_BY_NAME = {
    "linear": ("matmul", ""),
    "addmm": ("matmul", ""),
    "mm": ("matmul", ""),
    "bmm": ("matmul", ""),
    "baddbmm": ("matmul", ""),
    "matmul": ("matmul", ""),
    "embedding": ("embedding", ""),
    "layer_norm": ("norm", "layernorm"),
    "native_layer_norm": ("norm", "layernorm"),
    "rms_norm": ("norm", "rmsnorm"),
    "_fused_rms_norm": ("norm", "rmsnorm"),
    "group_norm": ("norm", "groupnorm"),
    "scaled_dot_product_attention": ("attention", ""),
    "softmax": ("softmax", "softmax"),
    "_softmax": ("softmax", "softmax"),
    "log_softmax": ("softmax", "log_softmax"),
    "_log_softmax": ("softmax", "log_softmax"),
    "dropout": ("dropout", ""),
    "native_dropout": ("dropout", ""),
    "cross_entropy_loss": ("loss", "cross_entropy"),
    "nll_loss": ("loss", "nll"),
    "nll_loss_nd": ("loss", "nll"),
    "nll_loss2d": ("loss", "nll"),
}

# Moves of data, priced as one pass over what they write.
_MOVES = frozenset(
    {
        "cat",
        "concat",
        "stack",
        "gather",
        "index",
        "index_select",
        "index_add",
        "scatter",
        "scatter_add",
        "index_put",
        "roll",
        "flip",
        "repeat",
        "repeat_interleave",
        "pad",
        "constant_pad_nd",
        "tril",
        "triu",
        "topk",
        "sort",
        "argsort",
        "cumsum",
        "one_hot",
        "masked_select",
        "take_along_dim",
        "new_zeros",
        "zeros_like",
        "ones_like",
        "full_like",
        "new_ones",
        "new_full",
        "copy",
        "fill",
        "zero",
        "index_copy",
        "index_fill",
        "scatter_reduce",
    }
)

_CASTS = frozenset({"to", "type_as", "_to_copy"})

# Composite functions without PyTorch's tag for element-wise ones.
_ELEMENTWISE = frozenset(
    {
        "selu",
        "relu6",
        "hardtanh",
        "square",
        "softplus",
        "glu",
        "mish",
        "log_sigmoid",
        "prelu",
        "rsub",
        "where",
        "masked_fill",
        "true_divide",
        "float_power",
    }
)

# Composite reductions likewise.
_REDUCTIONS = frozenset({"logsumexp", "norm", "linalg_vector_norm", "std", "var", "mse_loss"})

# Copies that a kernel avoids by reading with strides: free, like views.
_FREE = frozenset(
    {
        "reshape",
        "flatten",
        "unflatten",
        "contiguous",
        "clone",
        "detach",
        "alias",
        "lift_fresh",
        "lift_fresh_copy",
        "view_as",
        "reshape_as",
        "expand_as",
        "chunk",
        "split",
        "tensor_split",
        "unbind",
        "split_with_sizes",
        "unsafe_chunk",
        "unsafe_split",
    }
)


# Views that may keep the shape and yet not be the same tensor.
_PERMUTATIONS = frozenset(
    {
        "transpose",
        "permute",
        "t",
        "swapaxes",
        "swapdims",
        "movedim",
        "slice",
        "select",
        "narrow",
        "chunk",
        "split",
        "unbind",
    }
)


def base_name(target: Any) -> str:
    """Return an operator's name without namespace and overload: ``add`` for
    ``aten.add_.Tensor``.
    """
    name = str(target._schema.name).rpartition("::")[2] if _known(target) else str(target)
    return name.rstrip("_") or name


def arguments(node: fx.Node) -> dict[str, Any]:
    """Return a call's arguments by the names that the operator's schema gives them."""
    target: Any = node.target
    names = [argument.name for argument in target._schema.arguments]
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def is_view(target: Any) -> bool:
    """Whether an operator passes bytes on without touching them."""
    if not _known(target) or base_name(target) == "to":
        return False
    returns = target._schema.returns
    aliases = bool(returns) and all(
        entry.alias_info is not None and not entry.alias_info.is_write for entry in returns
    )
    return aliases or base_name(target) in _FREE


def is_permutation(target: Any) -> bool:
    """Whether a view of equal shape may still be another tensor."""
    return target is operator.getitem or base_name(target) in _PERMUTATIONS


def is_in_place(target: Any) -> bool:
    """Whether an operator overwrites its first argument."""
    return any(
        entry.alias_info is not None and entry.alias_info.is_write
        for entry in target._schema.arguments[:1]
    )


def is_idle(node: fx.Node) -> bool:
    """Whether a call does nothing: no dropout, a cast to its own type, a check."""
    if node.op != "call_function" or not _known(node.target):
        return False
    name = base_name(node.target)
    if name.startswith(("_assert", "sym_")):
        return True
    if name == "dropout":
        given = arguments(node)
        return not (given.get("train", True) and given.get("p", 0.0))
    if name in _CASTS:
        first, value = node.args[0], node.meta.get("val")
        before = first.meta.get("val") if isinstance(first, fx.Node) else None
        if isinstance(before, Tensor) and isinstance(value, Tensor):
            return before.dtype == value.dtype
    return False


def canonical(target: Any) -> tuple[str, str] | None:
    """Operation and function of an operator that is no view; None where nothing fits."""
    if not _known(target):
        return None
    name = base_name(target)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in _CASTS:
        return ("elementwise", "cast")
    tags = target.tags
    listed = name in _MOVES or name in _ELEMENTWISE or name in _REDUCTIONS
    return (
        ("elementwise", name)
        if listed or torch.Tag.pointwise in tags or torch.Tag.reduction in tags
        else None
    )


def _known(target: Any) -> bool:
    return hasattr(target, "_schema")
