"""What the kernels and the software of a family of accelerators reach.

Few parameters, one set per family, fitted where the rules of ``docs/method.md``, "Calibration",
allow. ``presets/estimators`` holds them, with the data they were fitted on.

Precisions of matrix products, and what products of less than 16 bits cost beside them.

In 8 or 4 bits only products with weights run at the narrow rate; attention, element-wise operators
and the head stay in 16 bits. Their operands are converted on the way: read, written as the product
reads them and once more transposed for the product that reads them the other way. Scales that
depend on the largest element of the tensor, row or column take one reading more.
"""

from dataclasses import dataclass
from typing import Any

from nest_core.documents import (
    InputError,
    kept_per_edition,
    load_toml,
    preset_names,
    preset_path,
    require,
)

__all__ = ["NARROW", "Family", "Narrow", "load_family", "narrow_product"]


@dataclass(frozen=True, slots=True)
class Family:
    """What the kernels and the software of a family of accelerators reach.

    Parameters
    ----------
    name : str
    gemm_efficiency : float
        Share of the device's best matrix product (`Accelerator.matmul_peak`) that a product
        reaches which is large enough for everything else to vanish.
    wave_tail : float
        Waves that a product takes beyond those that its tiles fill.
    depth_tail : float
        Elements along the summed dimension that a tile takes beyond its own.
    memory_efficiency : float
        Share of the memory bandwidth.
    attention_efficiency : float
        Share of the same of fused attention.
    biased_attention_efficiency : float
        Of fused attention that adds a bias to its scores (ALiBi), which vendors' kernels lack.
    host_s : float
        Seconds that the host needs to issue one kernel.
    overlap_tp, overlap_pp, overlap_dp : float
        Share of communication that hides behind compute where there is some: inside layers,
        between stages, and of gradients and states; 0 where a stack overlaps nothing of it.
    calibrated : bool
        Whether measurements of this family were fitted.
    source : str
    """

    name: str
    gemm_efficiency: float
    wave_tail: float
    depth_tail: float
    memory_efficiency: float
    attention_efficiency: float
    biased_attention_efficiency: float
    host_s: float
    overlap_tp: float
    overlap_pp: float
    overlap_dp: float
    calibrated: bool
    source: str

    def __post_init__(self) -> None:
        for field in ("memory_efficiency", "attention_efficiency", "biased_attention_efficiency"):
            value = getattr(self, field)
            require(
                0.0 < value <= 1.0,
                f"estimator.{field}",
                "must lie above 0 and at most at 1",
                value,
                "correct it",
            )
        require(
            self.gemm_efficiency > 0.0,
            "estimator.gemm_efficiency",
            "must be positive",
            self.gemm_efficiency,
            "correct it",
        )
        for field in ("wave_tail", "depth_tail", "host_s"):
            require(
                getattr(self, field) >= 0.0,
                f"estimator.{field}",
                "must not be negative",
                getattr(self, field),
                "correct it",
            )


@kept_per_edition(64)
def load_family(name: str) -> Family:
    """Return the parameters of a family from ``presets/estimators``.

    Raises
    ------
    InputError
        If there is no such preset.
    """
    if name not in preset_names("estimators"):
        raise InputError(
            "accelerator.family",
            "must be one of the families",
            name,
            "pick " + ", ".join(preset_names("estimators")),
        )
    document: dict[str, Any] = load_toml(preset_path("estimators", f"{name}.toml"))
    return Family(
        name=name,
        **document["parameters"],
        calibrated=bool(document["calibrated"]),
        source=str(document["source"]),
    )


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
    """Return the narrow precision that a kernel of a unit runs in, if it does.

    Examples
    --------
    >>> narrow_product("attention", "fp8"), narrow_product("gemm", "bf16")
    (None, None)
    """
    return NARROW.get(precision) if unit == "gemm" else None
