"""Scenarios as people hold them: a document, what is changed in it, and where its paths start.

Everything that passes a scenario on passes this value: pages, worker processes, links, the store
and the public interface. What it comes to is computed when it is first asked for.

Titles are read off what is computed and off nothing else: a file's ``name`` is what its author
called it once; overrides, sliders and drawings change what it stands for and leave the name as it
was. So no name of a scenario or a fabric stands in a title (docs/decisions/titles.md): a model and
an accelerator are called by their preset's name only while they are what the preset says.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nest_core.documents import (
    InputError,
    assign,
    edition,
    humanise,
    load_toml,
    looks_like_path,
    preset_names,
    preset_path,
    require,
    settings,
    to_gib,
)
from nest_core.documents.schema import FabricFile, ScenarioFile, check_plain, checked, names_of
from nest_core.documents.schema.checking import alternatives
from nest_core.documents.schema.failures import FailureFile
from nest_core.fabric import Fabric, build_fabric
from nest_core.hardware import Accelerator, load_accelerator
from nest_core.scenario.values import (
    HERE,
    OF_FAILURES,
    OF_PRICES,
    ScenarioValues,
    expanded,
    fabric_document,
    failures_of,
    scenario_document,
    values_of,
)
from nest_core.workload import Model, load_model

__all__ = [
    "Scenario",
    "accelerator_title",
    "as_written",
    "fabric_title",
    "file_stem",
    "load_scenario",
    "model_title",
    "page_title",
    "scenario_or_fabric",
    "scenario_title",
]

# What bills and measured curves read from a fabric's name, so part of what is computed.
_CALLED = re.compile(r"\b(?:TPU v\d\w?|(?:GB|MI|[ABHV])\d{3}X?)\b")
_LONGEST_STEM = 100
_ATOMS = (str, int, float)


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


_OF_FILES = frozenset({"version", "name", "kind", "source", "names"})


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """A training job on a fabric, and what the search for its plan may choose.

    `nest_core.load` and `with_` check it: what they return can be planned. Two scenarios are equal
    if they have the same `key`.

    Parameters
    ----------
    document : mapping
        The scenario file's tables (``docs``: "Scenario files"), or ``fabric`` alone.
    overrides : mapping
        Dotted keys of the document to the values that replace its own.
    folder : Path or None
        Where relative paths in them start; without it every name in them must be a preset's.
    """

    document: Mapping[str, Any]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    @cached_property
    def key(self) -> str:
        """Return a hash of the content; it changes with the presets, which a name may lead to."""
        text = json.dumps(
            [self.document, self.overrides, self.folder, edition()], sort_keys=True, default=str
        )
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @cached_property
    def values(self) -> ScenarioValues:
        """Return what it comes to, in SI units; InputError for what is no scenario."""
        if self.folder is not None:  # files that paths lead to may change
            return values_of(self.document, self.overrides, self.folder)
        return _resolved(self)

    @cached_property
    def fabric(self) -> Fabric:
        """Return its fabric, also where the rest is no scenario."""
        if "workload" in self.document:
            try:
                return self.values.fabric
            except InputError:
                pass  # the fabric alone may still be one, and says what is wrong with it
        return build_fabric(checked(FabricFile, self.fabric_table, "fabric."))

    @property
    def failures(self) -> FailureFile:
        """Return what strikes it, also where the rest is no scenario."""
        return failures_of(*expanded(self.document, self.overrides, self.folder), self.folder)

    @property
    def fabric_table(self) -> dict[str, Any]:
        """Return the fabric's document with its overrides in it; InputError where there is none."""
        merged, changes = expanded(self.document, self.overrides, self.folder)
        for key, value in changes.items():
            if key.startswith("fabric."):
                assign(merged, key, value)
        table = merged.get("fabric")
        if not isinstance(table, dict):
            raise InputError("fabric", "must be a table or a preset", table, "name a preset")
        return table

    def setting(self, key: str) -> Any:
        """Return what stands under a dotted key; None where a default applies."""
        place: Any = dict(self.document)
        if key.startswith("fabric."):
            place["fabric"] = self.fabric_table
        elif key in self.overrides:
            return self.overrides[key]
        for part in key.split("."):
            if isinstance(place, Mapping):
                place = place.get(part)
            elif isinstance(place, list) and part.isdecimal() and int(part) < len(place):
                place = place[int(part)]
            else:
                return None
        return place

    @property
    def title(self) -> str:
        """Model, devices, fabric with its realised oversubscription, and batch."""
        return scenario_title(self.values)

    def __repr__(self) -> str:
        try:
            return f"<Scenario: {self.title}>"
        except InputError as error:
            return f"<Scenario: {error}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def with_(self, **changes: Any) -> Self:
        """Return the same scenario with some parameters changed.

        Parameters
        ----------
        **changes
            ``fabric``, ``accelerator`` and ``model`` take what `load_fabric`, `load_accelerator`
            and `load_model` take; every other name is that of a key of the scenario file or of
            its fabric, with or without its unit: ``micro_batch`` or ``micro_batch_sequences``,
            ``memory`` or ``memory_GiB``, ``oversubscription``. Values are in the key's unit.
            A dotted key (``**{"fabric.level.1.bandwidth_GBps": 50.0}``) names any other.

        Raises
        ------
        InputError
            For a name that the scenario does not have, and for a value that breaks a rule.

        Examples
        --------
        >>> from nest_core import load
        >>> load("llama2-7b-64-h100").with_(micro_batch=2, memory=40.0).values.space.micro_batch
        (2,)
        """
        names = dict(self._keys())
        overrides = dict(self.overrides)
        for name, value in changes.items():
            is_table = name in ScenarioFile.model_fields and isinstance(value, Mapping)
            key = name if "." in name or is_table else names.get(name)
            if key is None:
                near = difflib.get_close_matches(name, names, 1)
                hint = f"write {near[0]}" if near else "name a key of the scenario file"
                raise InputError(name, "must be a parameter of this scenario", value, hint)
            for inner in [name for name in overrides if name == key or name.startswith(f"{key}.")]:
                del overrides[inner]
            overrides[key] = as_written(name, value)
        changed = type(self)(self.document, overrides, self.folder)
        _ = changed.values  # which checks them
        return changed

    def _keys(self) -> Iterator[tuple[str, str]]:
        """Yield names that `with_` takes, and the dotted keys that they stand for."""
        merged, _ = expanded(self.document, self.overrides, self.folder)
        kinds = {name: _table(field) for name, field in FabricFile.model_fields.items()}
        tables: list[tuple[str, type[BaseModel]]] = [
            *(
                (f"fabric.{name}.", kind)
                for name, kind in kinds.items()
                if kind is not None and isinstance(merged["fabric"].get(name), Mapping)
            ),
            ("fabric.", FabricFile),
            *(
                (f"{section}.", kind)
                for section in ("accelerator", "baselines", "search", "workload")
                if (kind := _table(ScenarioFile.model_fields[section])) is not None
            ),
        ]
        tops = (info.alias or name for name, info in ScenarioFile.model_fields.items())
        yield from ((name, name) for name in tops)
        for prefix, table in tables:  # a later one goes before: the job, then what it runs on
            yield from (
                pair
                for pair in ((name, prefix + key) for name, key in names_of(table))
                if pair[0] not in _OF_FILES
            )


def load_scenario(
    name: str, sets: Iterable[str] = (), folder: Path | None = HERE
) -> ScenarioValues:
    """Return what a scenario preset or file comes to with ``KEY=VALUE`` settings.

    Parameters
    ----------
    name : str
    sets : iterable of str
    folder : Path, optional
        Where a relative path starts; None where names may be presets' only.

    Raises
    ------
    InputError
        For anything that keeps it from being a scenario.
    """
    document, inside = scenario_document(name, folder)
    return Scenario(document, settings(sets), inside).values


def scenario_or_fabric(name: str, overrides: Mapping[str, Any], folder: Path | None) -> Scenario:
    """Return what a name means: a scenario where there is one, else one of a fabric alone.

    Parameters
    ----------
    name : str
        A preset or a file.
    overrides, folder
        As of a `Scenario`.

    Raises
    ------
    InputError
        If there is none, or of a fabric an override that is not of it, of prices or of failures.
    """
    if name in preset_names("scenarios") or _is_scenario(name, folder):
        document, inside = scenario_document(name, folder)
        return Scenario(document, overrides, inside)
    for key in overrides:
        require(
            key in ("failures", "prices") or key.startswith(("fabric.", OF_FAILURES, OF_PRICES)),
            "--set",
            "must name a key of the fabric, the prices or the failures, where there is no scenario",
            key,
            "name one of those",
        )
    return Scenario({"fabric": fabric_document(name, folder)}, overrides, folder)


def _is_scenario(name: str, folder: Path | None) -> bool:
    if folder is None or name in preset_names("fabrics"):
        return False
    path = folder / name
    return (
        looks_like_path(name, path)
        and path.suffix == ".toml"
        and path.is_file()
        and "workload" in load_toml(path)
    )


@lru_cache(maxsize=32)
def _resolved(scenario: Scenario) -> ScenarioValues:
    return values_of(scenario.document, scenario.overrides, None)


def as_written(field: str, value: object) -> Any:
    """Return a value as a file would hold it: fabrics as documents, numpy's figures as Python's.

    Raises
    ------
    InputError
        If no file could hold it.
    """
    check_plain(field, value)
    return _plain(field, value)


def _plain(field: str, value: object) -> Any:
    if value is None or isinstance(value, _ATOMS):
        return value
    if isinstance(value, Fabric):
        return value.document()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {
            str(key): entry if isinstance(entry, _ATOMS) else _plain(f"{field}.{key}", entry)
            for key, entry in value.items()
        }
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(field, entry) for entry in value]
    raise InputError(
        field, "must be text, a number, a list or a table", value, "write it as a file would"
    )


def _table(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table that a field holds; None for lists and plain values."""
    kinds = (alternative.annotation for alternative in alternatives(field))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
