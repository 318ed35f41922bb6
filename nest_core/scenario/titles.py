"""Titles of fabrics, models and scenarios, read off what is computed and off nothing else.

A file's ``name`` is what its author called it once; overrides, sliders and drawings change what it
stands for and leave the name as it was. So no name of a scenario or a fabric stands in a title
(docs/decisions/titles.md): a model and an accelerator are called by their preset's name only while
they are what the preset says.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from nest_core.documents import humanise, load_toml, preset_names, preset_path, to_gib
from nest_core.fabric import Fabric
from nest_core.hardware import Accelerator, load_accelerator
from nest_core.workload import Model, load_model

if TYPE_CHECKING:
    from nest_core.scenario.values import ScenarioValues

__all__ = [
    "accelerator_title",
    "fabric_title",
    "file_stem",
    "model_title",
    "page_title",
    "scenario_title",
]

# What bills and measured curves read from a fabric's name, so part of what is computed.
_CALLED = re.compile(r"\b(?:TPU v\d\w?|(?:GB|MI|[ABHV])\d{3}X?)\b")
_LONGEST_STEM = 100


def scenario_title(scenario: ScenarioValues) -> str:
    """Return model, devices, fabric with its realised ratios, and batch.

    Examples
    --------
    >>> from nest_core.scenario import load_scenario
    >>> scenario_title(load_scenario("llama2-7b-64-h100", ["fabric.clos.devices=128"]))
    'Llama 2 7B on 128 H100 SXM 80 GB, spine-leaf 1:1, batch 1,024'
    """
    fabric = scenario.fabric
    return (
        f"{model_title(scenario.model)} on {fabric.devices:,} "
        f"{accelerator_title(scenario.accelerator)}, {_arrangement(fabric)}, "
        f"batch {scenario.batch:,}"
    )


def page_title(scenario: ScenarioValues) -> str:
    """Return the same between dots, devices in a word where their preset is the whole truth.

    Examples
    --------
    >>> from nest_core.scenario import load_scenario
    >>> page_title(load_scenario("llama2-7b-64-h100", ["fabric.clos.devices=128"]))
    'Llama 2 7B · 128 H100 · spine-leaf 1:1 · batch 1,024'
    """
    fabric, called = scenario.fabric, accelerator_title(scenario.accelerator)
    short = _CALLED.match(called)
    is_preset = called == scenario.accelerator.name
    parts = (
        model_title(scenario.model),
        f"{fabric.devices:,} {short.group() if short and is_preset else called}",
        _arrangement(fabric),
        f"batch {scenario.batch:,}",
    )
    return " · ".join(parts)


def fabric_title(fabric: Fabric) -> str:
    """Devices, kind and realised ratios, innermost first.

    Devices are called as the fabric's own name calls them, since its bill goes by that.

    Examples
    --------
    >>> from nest_core.scenario import load_fabric
    >>> fabric_title(load_fabric("meta-3tier-7to1")), fabric_title(load_fabric("mesh-8x8"))
    ('24,576 H100, 4 levels 1:1 and 0.5:1 and 7:1', '64 devices, 8×8 mesh')
    """
    called = _CALLED.search(fabric.name)
    noun = called.group() if called else "device" if fabric.devices == 1 else "devices"
    return f"{fabric.devices:,} {noun}, {_arrangement(fabric)}"


def model_title(model: Model) -> str:
    """Return a preset's name for what the preset is; else the model's own name, and its size.

    A preset's name on other sizes would be a false one: it gives way to the family.
    """
    preset = _names_of("models").get(model.name)
    if preset is None:
        called = model.name
    elif replace(load_model(preset), source=model.source) == model:
        return model.name
    else:
        called = f"{model.family} model"
    count = humanise(model.parameters).replace("G", "billion").replace("M", "million")
    return f"{called} ({count} parameters)"


def accelerator_title(accelerator: Accelerator) -> str:
    """Return a preset's name for what the preset is; else what of it was changed."""
    preset = _names_of("accelerators").get(accelerator.name)
    if preset is None:
        return accelerator.name
    shipped = load_accelerator(preset)
    # What its kernels and links reach is its stack's, not its own, and so are measured curves.
    accelerator = replace(
        accelerator,
        family=shipped.family,
        links_reach=shipped.links_reach,
        network_reach=shipped.network_reach,
        links=accelerator.links if isinstance(accelerator.links, str) else shipped.links,
        network=accelerator.network if isinstance(accelerator.network, str) else shipped.network,
    )
    if shipped == accelerator:
        return accelerator.name
    same = replace(accelerator, memory_bytes=shipped.memory_bytes)
    memory = f"{to_gib(accelerator.memory_bytes):.4g} GiB"
    if same == shipped:
        return (
            f"{accelerator.name} limited to {memory}"
            if (accelerator.memory_bytes < shipped.memory_bytes)
            else f"{accelerator.name} given {memory}"
        )
    return f"changed {accelerator.name} ({memory})"


def file_stem(title: str) -> str:
    """Return a title as the name of a file, without its ending.

    Examples
    --------
    >>> file_stem("Llama 2 7B on 64 H100 SXM 80 GB, spine-leaf 1:1, batch 1,024")
    'llama-2-7b-on-64-h100-sxm-80-gb-spine-leaf-1to1-batch-1024'
    """
    plain = title.lower().replace(",", "").replace(":", "to").replace("×", "x")
    return re.sub(r"[^a-z0-9.]+", "-", plain).strip("-.")[:_LONGEST_STEM] or "nest"


def _arrangement(fabric: Fabric) -> str:
    """Return the kind of a fabric with its realised ratios and how much of it failed."""
    words, gone = fabric.arrangement(), len(fabric.missing)
    return f"{words}, {gone:,} failed" if gone else words


@cache
def _names_of(kind: str) -> dict[str, str]:
    """Return presets by the name that stands in them."""
    return {
        load_toml(preset_path(kind, f"{name}.toml"))["name"]: name for name in preset_names(kind)
    }
