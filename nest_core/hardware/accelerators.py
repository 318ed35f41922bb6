"""Accelerators: what a device has, as its vendor publishes it."""

from dataclasses import dataclass
from pathlib import Path

from nest_core.documents import (
    TERA,
    from_gbps_bytes,
    from_gib,
    kept_per_edition,
    load_toml,
    named_file,
)
from nest_core.documents.schema import AcceleratorFile, checked
from nest_core.hardware.collectives import Curve
from nest_core.hardware.families import NARROW, Family, load_family
from nest_core.hardware.profiles import Profile, load_profile

__all__ = ["UNCALIBRATED", "Accelerator", "accelerator_of", "load_accelerator"]

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
        peak; how much less, where it was not measured, is in `nest_core.hardware.families`.
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
