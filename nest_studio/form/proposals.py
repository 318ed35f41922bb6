"""What a fabric goes with and a form does not have: another accelerator, a larger batch."""

from typing import Any

from nest_core.calibration.acceptance.expected import accelerator_in
from nest_core.documents import as_markdown, preset_names
from nest_core.fabric import Fabric
from nest_core.hardware import load_accelerator
from nest_studio.form.fields import DrawnForm

__all__ = ["NODE", "other_accelerator", "scaled_batch"]

NODE = "fabric.clos.devices_per_node"
FEWER = 4
"""Times fewer tokens on a device than the preset's are worth a word."""


def other_accelerator(form: DrawnForm, fabric: Fabric, accelerator: str, place: Any) -> str:
    """Say where nodes are larger than an accelerator is sold in, and return one that is.

    Parameters
    ----------
    form : DrawnForm
        Below whose node size the sentence stands too.
    fabric : Fabric
    accelerator : str
        A preset.
    place : container

    Returns
    -------
    str
        The one that the fabric's name tells, if its scale-up domain holds such nodes, else the
        preset with the smallest that does; empty where there is none, or none is needed.
    """
    device, size = load_accelerator(accelerator), getattr(fabric, "devices_per_node", 0)
    most = device.scale_up_devices
    if not 0 < most < size:
        return ""
    words = f"Nodes of {size} devices: {device.name} is sold with at most {most} in one domain."
    for box in dict.fromkeys((place, form.boxes.get(NODE, place))):
        box.caption(f":orange[{as_markdown(words)}]")
    domains = (
        (load_accelerator(name).scale_up_devices, name) for name in preset_names("accelerators")
    )
    return min(
        (domain for domain in domains if domain[0] >= size),
        key=lambda domain: (domain[1] != accelerator_in(fabric.name), domain),
        default=(0, ""),
    )[1]


def scaled_batch(
    batch: int, sequence: int, devices: int, usual: tuple[int, int], place: Any
) -> int:
    """Say what a device has of a batch that did not grow with the fabric, and return one that did.

    Parameters
    ----------
    batch, sequence, devices : int
        Sequences, their tokens, and the devices that share them.
    usual : (int, int)
        Batch and devices of the preset.
    place : container

    Returns
    -------
    int
        0 where a device has as much as in the preset, but for less than `FEWER` times.
    """
    fitting = round(usual[0] * devices / usual[1])
    if batch * FEWER > fitting:
        return 0
    place.caption(
        f":orange[{batch * sequence / devices:,.0f} tokens a device, {batch / devices:.2g} "
        f"sequences: {devices / usual[1]:.3g} times the preset's devices, batch {batch:,}.]"
    )
    return fitting
