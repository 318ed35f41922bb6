"""What the kernels and the software of a family of accelerators reach.

Few parameters, one set per family, fitted where the rules of ``docs/method.md``, "Calibration",
allow. ``presets/estimators`` holds them, with the data they were fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.presets import kept_per_edition, load_toml, preset_names, preset_path

__all__ = ["Family", "load_family"]


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
            if not 0.0 < value <= 1.0:
                raise InputError(
                    f"estimator.{field}", "must lie above 0 and at most at 1", value, "correct it"
                )
        if not self.gemm_efficiency > 0.0:  # of the best product measured, so 1 is no bound
            raise InputError(
                "estimator.gemm_efficiency", "must be positive", self.gemm_efficiency, "correct it"
            )
        for field in ("wave_tail", "depth_tail", "host_s"):
            if getattr(self, field) < 0.0:
                raise InputError(
                    f"estimator.{field}", "must not be negative", getattr(self, field), "correct it"
                )


@kept_per_edition(64)
def load_family(name: str) -> Family:
    """The parameters of a family from ``presets/estimators``.

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
