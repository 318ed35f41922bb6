"""Profiles: how long kernels took on a device, measured by ``nest-studio profile``.

A profile is a list of kernels with the median seconds of each, in one precision on one device.
A kernel is known by what the estimator sees of it (`Signature`): the operator that it belongs
to, the pass, its unit, shape, FLOP and bytes. Kernels that a signature cannot tell apart (two
element-wise functions over the same bytes) share the mean of what they took.

Profiles are JSON files: presets in ``presets/profiles``, or a person's own. Reading them needs
no torch; `nest_core.hardware.profiling` makes them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, TypeVar, cast, get_type_hints

from pydantic import BaseModel, Field, create_model

from nest_core.documents import grouped, named_file, parsed_json, read_text, require
from nest_core.documents.schema import Name, SchemaTable, checked
from nest_core.workload import Kernel, Unit

__all__ = [
    "Direction",
    "KernelMeasurement",
    "Profile",
    "Signature",
    "SkippedKernel",
    "joined",
    "load_profile",
    "read_profile",
    "signature",
    "write_profile",
]

FIELD = "accelerator.profile"
MAX_KERNELS = 20_000
Direction = Literal["forward", "backward"]
_Text = Annotated[str, Field(max_length=400)]
_Amount = Annotated[float, Field(ge=0, le=1e24)]
_Operators = Annotated[tuple[_Text, ...], Field(max_length=1000, strict=False)]

# Sizes that are equal on paper may differ in the last digit, by the order of their divisions.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Signature:
    """What the estimator sees of a kernel.

    Parameters
    ----------
    op : str
        Of the operator that it belongs to.
    direction : {"forward", "backward"}
    unit, shape : str, tuple of float
        As `Kernel` has them.
    flops, bytes : float
    """

    op: Name
    direction: Direction
    unit: Unit
    shape: Annotated[tuple[_Amount, ...], Field(max_length=4, strict=False)]
    flops: _Amount
    bytes: _Amount

    @property
    def anywhere(self) -> Signature:
        """The kernel, whichever operator and pass ran it."""
        return replace(self, op="", direction="forward")


@dataclass(frozen=True, slots=True)
class KernelMeasurement:
    """One kernel that was measured.

    Parameters
    ----------
    signature : Signature
    function : str
        Which norm or element-wise function; empty for the rest.
    operators : tuple of str
        Where it was met: ``model, layer, operator``.
    seconds : float
        Median of the repeats.
    spread : float
        Difference of the quartiles over the median.
    repeats : int
    how : str
        What ran.
    """

    signature: Signature
    function: _Text
    operators: _Operators
    seconds: Annotated[float, Field(ge=1e-9, le=1e6)]
    spread: _Amount
    repeats: Annotated[int, Field(ge=1, le=1_000_000)]
    how: _Text


@dataclass(frozen=True, slots=True)
class SkippedKernel:
    """One kernel that could not be measured, and why.

    Parameters
    ----------
    signature : Signature
    function : str
    operators : tuple of str
    reason : str
    """

    signature: Signature
    function: _Text
    operators: _Operators
    reason: _Text


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Measured kernels of one device in one precision; equal and hashed by its contents.

    Parameters
    ----------
    name : str
    device : str
        As the driver names it.
    backend : {"cuda", "cpu"}
    precision : str
        Of the training run whose kernels these are.
    torch, cuda : str
        Versions; ``cuda`` is empty on a CPU.
    date : str
        Day of the measurement, ISO 8601.
    measured : tuple of KernelMeasurement
    skipped : tuple of SkippedKernel
    """

    name: Name
    device: Name
    backend: Literal["cuda", "cpu"]
    precision: str
    torch: _Text
    cuda: _Text
    date: _Text
    measured: tuple[KernelMeasurement, ...]
    skipped: tuple[SkippedKernel, ...] = ()
    _times: dict[Signature, float] = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times = grouped(
            (key, entry.seconds)
            for entry in self.measured
            for key in (entry.signature, entry.signature.anywhere)
        )
        object.__setattr__(self, "_times", {key: fmean(samples) for key, samples in times.items()})
        object.__setattr__(
            self, "_digest", hashlib.sha256(write_profile(self).encode()).hexdigest()
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def seconds(
        self, kernel: Kernel, precision: str, op: str = "", direction: Direction = "forward"
    ) -> float | None:
        """Measured time of a kernel; None where it was not measured, or in another precision.

        Parameters
        ----------
        op, direction : str
            Of its operator and pass; without ``op``, any that ran such a kernel.
        """
        if precision != self.precision:
            return None
        sought = signature(op, direction, kernel)
        return self._times.get(sought if op else sought.anywhere)


def signature(op: str, direction: Direction, kernel: Kernel) -> Signature:
    """Return the signature of an operator's kernel.

    Examples
    --------
    >>> signature("norm", "forward", Kernel("memory", 0.0, 2048.0)).bytes
    2048.0
    """
    shape = tuple(map(_rounded, kernel.shape))
    return Signature(
        op, direction, kernel.unit, shape, _rounded(kernel.flops), _rounded(kernel.bytes)
    )


def load_profile(choice: str, folder: Path | None = None) -> Profile:
    """Return the profile that somebody names.

    Parameters
    ----------
    choice : str
        A preset's name, or, given a folder, a path to a ``.json`` file.
    folder : Path, optional
        Where a relative path starts; without it the name must be a preset's.

    Raises
    ------
    InputError
        If there is no such profile, or it cannot be one.
    """
    path = named_file(
        "profiles",
        choice,
        folder,
        field=FIELD,
        ending=".json",
        is_path=lambda name, _: name.endswith(".json"),
    )
    return read_profile(read_text(path))


def read_profile(text: str) -> Profile:
    """Return the profile of a JSON text.

    Raises
    ------
    InputError
        If it is not JSON, or not a profile; the message names the first field at fault.
    """
    document = parsed_json(text, FIELD, "measure it again")
    require(
        isinstance(document, dict),
        FIELD,
        "must be a JSON object",
        type(document).__name__,
        "measure it again",
    )
    rows = dict(checked(_ProfileFile, document, "profile."))
    return Profile(
        **{name: rows[name] for name in _HEAD},
        measured=tuple(_kernel(KernelMeasurement, row) for row in rows["kernels"]),
        skipped=tuple(_kernel(SkippedKernel, row) for row in rows["skipped"]),
    )


def write_profile(profile: Profile) -> str:
    """Return the profile as JSON, one kernel a line; `read_profile` gives it back."""
    head = {name: getattr(profile, name) for name in _HEAD}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, entries in (("kernels", profile.measured), ("skipped", profile.skipped)):
        rows = ",\n    ".join(json.dumps(_row(entry)) for entry in entries)
        lines.append(f'  "{key}": [\n    {rows}\n  ]' if entries else f'  "{key}": []')
    return '{\n  "schema": 1,\n' + ",\n".join(lines) + "\n}\n"


def joined(first: Profile, second: Profile) -> Profile:
    """Two profiles of one device as one; where both measured a kernel, the second counts.

    Raises
    ------
    InputError
        If device, precision or versions differ.
    """
    for key in ("device", "backend", "precision", "torch", "cuda"):
        old, new = getattr(first, key), getattr(second, key)
        require(
            old == new,
            f"profile.{key}",
            f"must be {new!r} as in the profile that is added",
            old,
            "write to another file",
        )
    measured: dict[tuple[Signature, str], KernelMeasurement] = {}
    for entry in (*first.measured, *second.measured):
        key_of = (entry.signature, entry.function)
        before = measured.get(key_of)
        met = tuple(dict.fromkeys((*(before.operators if before else ()), *entry.operators)))
        measured[key_of] = replace(entry, operators=met)
    skipped = {
        (entry.signature, entry.function): entry
        for entry in (*first.skipped, *second.skipped)
        if (entry.signature, entry.function) not in measured
    }
    return Profile(
        first.name,
        second.device,
        second.backend,
        second.precision,
        second.torch,
        second.cuda,
        second.date,
        tuple(measured.values()),
        tuple(skipped.values()),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _row(entry: KernelMeasurement | SkippedKernel) -> dict[str, Any]:
    row = asdict(entry)
    return {**cast(dict[str, Any], row.pop("signature")), **row}


def _kernel(kind: type[_K], row: BaseModel) -> _K:
    """Return a row of a file as a kernel that was measured or skipped."""
    values = dict(row)
    op, direction, unit, shape, flops, size = (values.pop(item.name) for item in fields(Signature))
    return kind(signature(op, direction, Kernel(unit, flops, size, shape)), **values)


_K = TypeVar("_K", KernelMeasurement, SkippedKernel)
_HEAD = ("name", "device", "backend", "precision", "torch", "cuda", "date")
_ROWS = Field(max_length=MAX_KERNELS)
Profiled = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]


def _table(*kinds: type, **columns: Any) -> type[BaseModel]:
    """Return a table of files: the fields of some classes, with their bounds, and more columns."""
    hints = [get_type_hints(kind, include_extras=True) for kind in kinds]
    stated = {
        name: (hint, ...)
        for types in hints
        for name, hint in types.items()
        if name not in ("signature", "measured", "skipped", "_times", "_digest")
    }
    return create_model(
        "_".join(kind.__name__ for kind in kinds), __base__=SchemaTable, **stated | columns
    )


_MeasuredTable = _table(Signature, KernelMeasurement)
_SkippedTable = _table(Signature, SkippedKernel)
_ProfileFile = _table(
    Profile,
    version=(Literal[1], Field(alias="schema")),
    precision=(Profiled, ...),
    kernels=(Annotated[list[_MeasuredTable], _ROWS], ...),  # type: ignore[valid-type]  # made above
    skipped=(Annotated[list[_SkippedTable], _ROWS], []),  # type: ignore[valid-type]  # made above
)
