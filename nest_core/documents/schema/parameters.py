"""The catalogue of parameters: what can be set, read off the tables that files are checked by.

A field of a table that says what it is called is a parameter. Forms, addresses, sweeps and
messages take its bounds, words and refusal from here, so that a value means the same and is refused
in the same sentence wherever it comes from.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from nest_core.documents.columns import KEY_UNITS, column_of
from nest_core.documents.schema.checking import alternatives, check_plain, inside, sentence
from nest_core.documents.schema.scenario import ScenarioFile
from nest_core.documents.units import capital, format_ratio

__all__ = ["Parameter", "fabric_key", "in_labels", "names_of", "parameter", "settings_in"]

_KEY = re.compile(r"(?<!')\b(?:[a-z]\w*(?:\.\w+|\[\d+\])+|[a-z]+(?:_\w+)+)")
"""Of a field; what stands in quotes is a value."""
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that can be set.

    Parameters
    ----------
    key : str
        Dotted key in a scenario's document, or in what else has a table.
    name : str
        What sweeps and the API call it: a short name, or its key's last part without the unit.
    kind : type
        int, float, bool or str.
    low, high : int, float or None
        Bounds, ends included.
    usual : float or None
        Up to where a slider reaches; values beyond it are as good.
    choices : tuple
        The only values there are, if there are only some.
    label, unit, text, group : str
        What it is called, what it is counted in, what it does, what forms fold it under.
    default : object
        Where a file leaves it out; None where all values are allowed then.
    values : tuple
        Worth a sweep of a scenario, in order.
    present : int, float, str or None
        What the scenario has; None where the search chooses.
    changes : callable (value) -> dict, optional
        Overrides of the scenario that a value means, where it is not the key's alone.
    doubling : bool
        Whether a step is a factor rather than a difference.
    fabric : bool
        Whether it changes the fabric.
    note : str
        What stays as it is while it varies.
    """

    name: str
    label: str
    key: str = ""
    kind: type = str
    low: float | None = None
    high: float | None = None
    usual: float | None = None
    choices: tuple[Any, ...] = ()
    unit: str = ""
    text: str = ""
    group: str = ""
    default: Any = None
    _adapter: TypeAdapter[Any] = field(default=TypeAdapter(Any), compare=False)
    _file: TypeAdapter[Any] = field(default=TypeAdapter(Any), compare=False)
    values: tuple[Any, ...] = ()
    present: Any = None
    changes: Callable[[Any], Mapping[str, Any]] | None = field(default=None, compare=False)
    doubling: bool = False
    fabric: bool = False
    note: str = ""

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def column(self) -> str:
        """The name of its column in rows, with its unit."""
        return column_of(self.label, self.unit)

    @property
    def options(self) -> tuple[Any, ...]:
        """Every value that there is, where they are few."""
        return (
            (False, True)
            if self.kind is bool
            else self.choices or tuple(range(int(self.low or 0), int(self.high or 0) + 1))
        )

    @property
    def allowed(self) -> str:
        """The choices or the range in words."""
        return (
            " or ".join(map(str, self.choices))
            if self.choices
            else f"{self.low:,.12g} to {self.high:,.12g}"
        )

    def scaled(self, factor: float, unit: str) -> Self:
        """For widgets: the same counted in another unit, ``factor`` of which are one of its own."""
        low, high = ((end if end is None else factor * end) for end in (self.low, self.high))
        return replace(self, low=low, high=high, unit=unit)

    def overrides(self, value: Any) -> Mapping[str, Any]:
        """Return what a checked value changes in a scenario, as dotted keys and their values.

        Raises
        ------
        InputError
            If it is nothing of this scenario.
        """
        return self.changes(value) if self.changes else {self.key: value}

    def words(self, value: Any) -> str:
        """Return a value as axes and labels show it.

        Examples
        --------
        >>> parameter("search.zero").words(3), parameter("fabric.clos.devices").words(1024)
        ('ZeRO 3', '1,024')
        """
        if self.name == "zero":
            return f"ZeRO {value}"
        if self.name.startswith("oversubscription") and isinstance(value, int | float):
            return format_ratio(value, 6)
        return f"{value:,.12g}" if isinstance(value, int | float) else str(value)

    def named(self, value: Any) -> str:
        """Return what is varied with its value and unit."""
        words = self.words(value)
        if words.startswith("ZeRO"):
            return words
        plain = self.unit in ("", "number", "down : up")
        return f"{self.label} {words}" if plain else f"{self.label} {words} {self.unit}"

    def checked(self, value: object, field: str = "") -> Any:
        """Return the value, as a file's would be read; ``field`` is what messages call it instead.

        Raises
        ------
        InputError
            If it is no value of this parameter.
        """
        check_plain(self.key, value)
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            cause = error if field else self._of_files(value) or error
            field = field or re.sub(r"\.(\d+)", r"[\1]", self.key)
            raise sentence(ScenarioFile, cause, value, field) from error

    def _of_files(self, value: object) -> ValidationError | None:
        """Return what is wrong with it in a file, where lists and tables may stand too."""
        try:
            self._file.validate_python(value)
        except ValidationError as error:
            return error
        return None

    def read(self, text: str, field: str = "") -> Any:
        """Return the value that a text means; what is no number stays the text that it is."""
        value: Any = {"true": True, "false": False}.get(text, text) if self.kind is bool else text
        if self.kind in (int, float):
            with contextlib.suppress(ValueError):
                value = float(text)
                value = int(value) if self.kind is int and value.is_integer() else value
        return self.checked(value, field)


@lru_cache(maxsize=1024)
def parameter(key: str, table: type[BaseModel] = ScenarioFile) -> Parameter:
    """Return a parameter by its key; entries of lists are numbered.

    What people read may stand on a table that the key leads through, as of a price its figure.

    Raises
    ------
    KeyError
        If the table has none of this key, or a table there.

    Examples
    --------
    >>> parameter("accelerator.memory_GiB").title
    'memory per device, GiB'
    >>> parameter("fabric.clos.oversubscription.0").allowed
    '1 to 1,000,000'
    """
    field = titled = FieldInfo.from_annotation(table)
    last = ""
    for part in key.split("."):
        if (inner := inside(field, part)) is None:
            raise KeyError(key)
        field = inner
        if field.title or not titled.title:
            titled, last = field, part
    main, *others = alternatives(field)  # a value, where a list of them or a range may stand
    kind: Any = main.annotation
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    kind = list if get_origin(kind) is list and field.title else kind
    if not choices and kind not in (int, float, bool, str, list):
        raise KeyError(key)  # a table of parameters
    plain = [
        alternative
        for alternative in others
        if choices and alternative.annotation in (int, float, str)
    ]
    of_files: Any = Annotated[field.annotation, field]
    values: Any = reduce(
        or_, (Annotated[alternative.annotation, alternative] for alternative in (main, *plain))
    )
    low, high = (
        next((kind(getattr(rule, end)) for rule in main.metadata if hasattr(rule, end)), None)
        for end in ("ge", "le")
    )
    more: Any = titled.json_schema_extra or {}
    return Parameter(
        key=key,
        name=more.get("short") or _without_unit(last),
        kind=type(choices[0]) if choices else kind,
        low=low,
        high=high,
        usual=more.get("usual"),
        choices=choices,
        label=titled.title or last,
        unit=more.get("unit") or KEY_UNITS.get(last.rpartition("_")[2], ""),
        text=titled.description or "",
        group=more.get("group") or "",
        default=None if field.is_required() else field.default,
        _adapter=TypeAdapter(values, config=_STRICT),
        _file=TypeAdapter(of_files, config=_STRICT),
    )


def settings_in(field: FieldInfo, value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the keys of all parameters that a document has, with what it says of each.

    Parameters
    ----------
    field : FieldInfo
        Of the table, list or value.
    value : object
        What the document has there; None where a default applies. Tables and entries that it
        does not have have no keys.
    key : str
        Dotted, of the field.
    """
    kind: Any = alternatives(field)[0].annotation
    if field.title:
        yield key, value
    elif get_origin(kind) is list:
        entry = FieldInfo.from_annotation(get_args(kind)[0])
        for index, item in enumerate(value or ()):
            yield from settings_in(entry, item, f"{key}.{index}")
    elif value is not None:
        for name, inner in getattr(kind, "model_fields", {}).items():
            yield from settings_in(inner, value.get(name), f"{key}.{name}")


def names_of(table: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield names of a table's fields with their keys: whole, without unit, in short."""
    for key, info in table.model_fields.items():
        more: Any = info.json_schema_extra or {}
        yield from (
            (name, key)
            for name in dict.fromkeys((key, _without_unit(key), more.get("short") or key))
        )


def _without_unit(key: str) -> str:
    name, _, unit = key.rpartition("_")
    return name if name and unit in KEY_UNITS else key


def in_labels(text: str, settings: Mapping[str, Parameter] = {}) -> str:
    """Return a sentence in which fields are called by their labels and not by their keys.

    Parameters
    ----------
    settings : mapping of str to Parameter
        Of a fabric, whose levels have names.

    Examples
    --------
    >>> in_labels("clos.radix must leave ports for one node, but is 3: use a radix of 16.")
    'Switch radix must leave ports for one node, but is 3: use a radix of 16.'
    >>> in_labels('clos.rails must be absent for kind = "leaf_spine", but is 2: remove it.')
    'Rails must be absent for kind leaf-spine, but is 2: remove it.'
    """

    def called(match: re.Match[str]) -> str:
        for key in (fabric_key(match[0]), f"{fabric_key(match[0])}.0", match[0]):
            try:
                return (settings.get(key) or parameter(key)).label
            except KeyError:
                continue
        return match[0] if "." in match[0] else match[0].replace("_", "-")

    return capital(re.sub(r' = "?([\w-]+)"?', r" \1", _KEY.sub(called, text)))


def fabric_key(field: str) -> str:
    """Return the dotted key of a field that a fabric refuses."""
    return "fabric." + re.sub(r"\[(\d+)\]", r".\1", field).removeprefix("fabric.")
