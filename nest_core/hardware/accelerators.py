"""Accelerators: what a device has, as its vendor publishes it, and what software reaches of that.

Of what the kernels of a family of accelerators reach there are few parameters, one set per family,
fitted where the rules of ``docs/method.md``, "Calibration", allow. ``presets/estimators`` holds
them, with the data they were fitted on.

In 8 or 4 bits only products with weights run at the narrow rate; attention, element-wise operators
and the head stay in 16 bits. Their operands are converted on the way: read, written as the product
reads them and once more transposed for the product that reads them the other way. Scales that
depend on the largest element of the tensor, row or column take one reading more.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nest_core.documents import (
    TERA,
    InputError,
    from_gbps_bytes,
    from_gib,
    kept_per_edition,
    load_toml,
    named_file,
    preset_names,
    preset_path,
    require,
)
from nest_core.documents.schema import AcceleratorFile, checked
from nest_core.hardware.collectives import Curve
from nest_core.hardware.profiles import Profile, load_profile

__all__ = [
    "NARROW",
    "UNCALIBRATED",
    "Accelerator",
    "Family",
    "Narrow",
    "accelerator_of",
    "load_accelerator",
    "load_family",
    "narrow_product",
]


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


UNCALIBRATED = "uncalibrated"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device.

    Parameters
    ----------
    name : str
    family : Family
        What its kernels reach of the peaks; `UNCALIBRATED`'s where no measurement was fitted.
    peak_flops : tuple of (str, float)
        Dense FLOP/s by precision, for those that it has.
    matmul_flops : tuple of (str, float)
        The largest rate of a matrix product that was measured, FLOP/s by precision; may be empty.
    memory_bytes : float
    memory_bandwidth_Bps : float
    units : int
        Streaming multiprocessors, compute units or systolic arrays that share the tiles of a
        matrix product.
    tile : tuple of int
        Rows and columns of the output that one unit works on.
    reserved_bytes : float
        Taken by driver and context before the first tensor.
    communicator_bytes : float
        That each communicator of its communication library takes; 0 where none does.
    source : str
    power_w : float or None
        Design power, W; None where the vendor publishes none.
    host_Bps : float
        What its link to its host carries one way, bytes/s; 0 if unknown.
    links, network : str or Curve
        Curves of its own links and of the network between nodes: names in
        ``presets/collectives``, or measured on one's own cluster; empty: links as they are.
    profile : Profile or None
        Measured times, which go before the estimate where a kernel has one.
    scale_up_Bps : float
        What all links of a device inside its node carry one way; 0 if unknown. Counts where a
        fabric does not state it.
    scale_up_devices : int
        The most that are sold as one scale-up domain (HGX and DGX boards, NVL72 racks, a Trainium
        UltraServer; recalled); 0: no limit is known.
    links_reach, network_reach : float
        Of what the curves say that its own links and ports between nodes carry.
    """

    name: str
    family: Family
    peak_flops: tuple[tuple[str, float], ...]
    matmul_flops: tuple[tuple[str, float], ...]
    memory_bytes: float
    memory_bandwidth_Bps: float
    units: int
    tile: tuple[int, int]
    reserved_bytes: float
    source: str
    power_w: float | None = None
    host_Bps: float = 0.0
    links: str | Curve = ""
    network: str | Curve = ""
    profile: Profile | None = None
    links_reach: float = 1.0
    network_reach: float = 1.0
    communicator_bytes: float = 0.0
    scale_up_Bps: float = 0.0
    scale_up_devices: int = 0

    def peak(self, precision: str) -> float:
        """Dense FLOP/s at a precision; KeyError where the device lacks it."""
        return dict(self.peak_flops)[precision]

    def matmul_peak(self, precision: str) -> float:
        """FLOP/s of the best matrix product: measured, else the peak's share of those measured.

        No product is faster than its peak, and what was measured in a precision that the device
        is not said to have counts for nothing. Precisions of less than 16 bits keep less of their
        peak; how much less, where it was not measured, is in `nest_core.hardware.accelerators`.
        """
        peaks = dict(self.peak_flops)
        measured = {
            name: min(rate, peaks[name]) for name, rate in self.matmul_flops if name in peaks
        }
        if precision in measured or not measured:
            return measured.get(precision, peaks[precision])
        measured_precision = next(iter(measured))
        share = measured[measured_precision] / peaks[measured_precision]
        narrow = NARROW.get(precision)
        return peaks[precision] * share * (narrow.share if narrow else 1.0)

    @property
    def precisions(self) -> tuple[str, ...]:
        """Precisions that the device computes in."""
        return tuple(name for name, _ in self.peak_flops)


@kept_per_edition(64)
def load_accelerator(name: str) -> Accelerator:
    """Return an accelerator preset."""
    entry = load_toml(named_file("accelerators", name, None, field="accelerator"))
    return accelerator_of(checked(AcceleratorFile, entry, "accelerator."))


def accelerator_of(file: AcceleratorFile, folder: Path | None = None) -> Accelerator:
    """Return an accelerator as its checked file describes it.

    Parameters
    ----------
    file : AcceleratorFile
    folder : Path, optional
        Where a relative path to a profile starts; without it the profile must be a preset.
    """
    return Accelerator(
        name=file.name,
        family=load_family(file.family),
        peak_flops=tuple((name, peak * TERA) for name, peak in file.peak_TFLOPs.items()),
        matmul_flops=tuple((name, rate * TERA) for name, rate in file.matmul_TFLOPs.items()),
        memory_bytes=from_gib(file.memory_GiB),
        memory_bandwidth_Bps=from_gbps_bytes(file.memory_bandwidth_GBps),
        units=file.units,
        tile=(file.tile[0], file.tile[1]),
        reserved_bytes=from_gib(file.reserved_GiB),
        communicator_bytes=from_gib(file.communicator_MiB / 1024),
        source=file.source,
        power_w=file.power_W,
        host_Bps=from_gbps_bytes(file.host_bandwidth_GBps or 0.0),
        links=(file.collectives and file.collectives.links) or "",
        network=(file.collectives and file.collectives.network) or "",
        scale_up_Bps=from_gbps_bytes(file.scale_up_GBps or 0.0),
        scale_up_devices=file.scale_up_devices or 0,
        profile=load_profile(file.profile, folder) if file.profile else None,
    )
