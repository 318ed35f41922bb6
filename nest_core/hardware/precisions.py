"""Precisions of matrix products, and what products of less than 16 bits cost beside them.

In 8 or 4 bits only products with weights run at the narrow rate; attention, element-wise operators
and the head stay in 16 bits. Their operands are converted on the way: read, written as the product
reads them and once more transposed for the product that reads them the other way. Scales that
depend on the largest element of the tensor, row or column take one reading more.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NARROW", "Narrow", "narrow_product"]


@dataclass(frozen=True, slots=True)
class Narrow:
    """A precision of less than 16 bits.

    Parameters
    ----------
    element_bytes : float
        Of an operand's element, with its share of the block's scale.
    cast_bytes : float
        Read and written per element that is converted.
    share : float
        What the best product reaches of the peak, over what it reaches in 16 bits; used where a
        device's own was not measured.
    """

    element_bytes: float
    cast_bytes: float
    share: float


NARROW = {
    # Delayed scales: two bytes read, one written, one more transposed (Transformer Engine's cast
    # and transpose). Share: H100's 1,402.6 of 1,979 TFLOP/s over 794.5 of 989 in bf16, as tabled
    # in stas00/ml-engineering@b9e2972, "Maximum Achievable Matmul FLOPS".
    "fp8": Narrow(1.0, 2.0 + 1.0 + 1.0, (1402.6 / 1979.0) / (794.5 / 989.0)),
    # AQT's dynamic scales (google/aqt). Share: nobody publishes the best product; as in 16 bits.
    "int8": Narrow(1.0, 2.0 + 2.0 + 1.0 + 1.0, 1.0),
    # E2M1 with an E4M3 scale per 16 elements and one per tensor (arXiv:2509.25149, section 2).
    # Share: B200's 5,239 of 9,000 TFLOP/s at 8192^3 (cuBLASLt, scales per 32 elements;
    # deepseek-ai/DeepGEMM#348) over 1,745 of 2,250 in bf16.
    "nvfp4": Narrow(
        0.5 + 1 / 16, 2.0 + 2.0 + 2 * (0.5 + 1 / 16), (5239.0 / 9000.0) / (1745.0 / 2250.0)
    ),
}


def narrow_product(unit: str, precision: str) -> Narrow | None:
    """The narrow precision that a kernel of a unit runs in, if it does.

    Examples
    --------
    >>> narrow_product("attention", "fp8"), narrow_product("gemm", "bf16")
    (None, None)
    """
    return NARROW.get(precision) if unit == "gemm" else None
