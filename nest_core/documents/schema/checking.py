"""What tables of files share, and documents checked against them.

Bounds of figures, what people read of a field and strictness are said once; what is wrong is told
in one sentence about the first finding.
"""

import difflib
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from nest_core.documents.errors import InputError
from nest_core.documents.text import grouped

__all__ = [
    "LONGEST_NAME",
    "MAX_DEPTH",
    "Count",
    "Name",
    "NotNegative",
    "Positive",
    "SchemaTable",
    "alternatives",
    "check_plain",
    "checked",
    "inside",
    "label",
    "must",
    "sentence",
]

MAX_DEPTH = 32


def check_plain(where: str, value: object) -> None:
    """Refuse what Python's readers take and no other: deep nesting, endless numbers, half letters.

    Raises
    ------
    InputError
        For tables and arrays more than `MAX_DEPTH` deep, whole numbers over 64 bits, and text with
        half of a surrogate pair, which could not be copied, shown or saved.
    """
    items: list[Any] = [value]
    # All of one depth at once, and by type: drawn fabrics have hundreds of thousands.
    for _ in range(MAX_DEPTH + 1):
        by_type = grouped(zip(map(type, items), items, strict=True))
        numbers, texts, tables, arrays = (
            [*chain(*(alike for kind, alike in by_type.items() if issubclass(kind, base)))]
            for base in (int, str, dict, list)
        )
        for number in numbers:
            if not -(2**63) <= number < 2**63:
                raise InputError(
                    where,
                    "must hold whole numbers of at most 64 bits",
                    f"{number.bit_length()} bits long",
                    "shorten the number",
                )
        _check_letters(where, " ".join(texts))
        items = [*chain(*arrays, dict.fromkeys(chain(*tables)), *map(dict.values, tables))]
    if items:
        raise InputError(
            where, f"must nest at most {MAX_DEPTH} tables and arrays", "deeper", "flatten it"
        )


def _check_letters(where: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            where,
            "must hold text of whole characters",
            f"{text[error.start : error.end]!a} in it",
            "take it out",
        ) from error


_T = TypeVar("_T", bound=BaseModel)


def checked(kind: type[_T], document: dict[str, Any], where: str = "") -> _T:
    """Validate a document.

    Parameters
    ----------
    where : str
        Prefix of the field names in messages.

    Raises
    ------
    InputError
        For the first finding: field, rule, value, remedy.
    """
    check_plain("the document", document)
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise sentence(kind, error, document, where) from error


def sentence(
    kind: type[BaseModel], error: ValidationError, document: Any, where: str
) -> InputError:
    """Return what pydantic found, as one sentence; ``where`` is the prefix of the field's name."""
    # Every alternative of a union reports; the deepest finding is about the one that was meant.
    findings = sorted(
        error.errors(include_url=False), key=lambda finding: -len(_written(finding, document))
    )
    first = findings[0]
    path = _written(first, document)
    field = (
        (where + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path))
        .removeprefix(".")
        .replace("..", ".")
    )
    if first["type"] == "missing":
        return InputError(field, "is required", "missing", "add it")
    if first["type"] == "extra_forbidden":
        keys = _known(kind, path[:-1])
        near = difflib.get_close_matches(str(path[-1]), keys, 1)
        hint = f"write {near[0]}" if near else "known keys are " + ", ".join(keys)
        return InputError(field, "is not a known key", first["input"], hint)
    same = [finding for finding in findings if _written(finding, document) == path]
    # A value out of bounds is of the alternative that it is too large or small for.
    meant = [f for f in same if not f["type"].endswith(("_type", "literal_error"))]
    validator_error = next((f for f in same if f["type"] == "value_error"), None)
    if validator_error is not None:  # a validator's own words, commas and all
        return InputError(
            field, f"must be {validator_error['ctx']['error']}", first["input"], "change it"
        )
    rules = ", ".join(dict.fromkeys(_rule(finding) for finding in meant or same))
    # One enumeration of all alternatives: 'a', 'b', a table or a list.
    *others, last = rules.replace(" or ", ", ").split(", ")
    rule = f"{', '.join(others)} or {last}" if others else last
    keys = _known(kind, path) if last == "a table" else []
    remedy = f"write {{ {keys[0]} = … }}" if keys else "change it"
    return InputError(field, f"must be {rule}", first["input"], remedy)


_RULES = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "a finite number",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "a list of at least {min_length} entries",
    "too_long": "a list of at most {max_length} entries",
    "string_too_short": "text that is not empty",
    "string_too_long": "text of at most {max_length} characters",
    "literal_error": "{expected}",
}


def _rule(finding: ErrorDetails) -> str:
    """Return what pydantic asks for, in the words of the other messages."""
    kind, message = finding["type"], finding["msg"].removeprefix("Input should be ")
    return _RULES[kind].format(**finding.get("ctx", {})) if kind in _RULES else message


def _written(finding: ErrorDetails, document: Any) -> tuple[int | str, ...]:
    """Return the part of a finding's location that a person wrote, without tags of unions."""
    path: list[int | str] = []
    for part in finding["loc"]:
        in_table = isinstance(document, dict) and part in document
        in_list = isinstance(document, list) and isinstance(part, int) and part < len(document)
        if in_table or in_list:
            document = document[part]
            path.append(part)
    if finding["type"] == "missing":
        path.append(finding["loc"][-1])
    return tuple(path)


def _known(kind: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Keys of the table at a path."""
    field = FieldInfo.from_annotation(kind)
    for part in path:
        field = inside(field, part) or field
    tables = [alternative.annotation for alternative in alternatives(field)]
    return [
        inner.alias or name
        for table in tables
        for name, inner in getattr(table, "model_fields", {}).items()
    ]


def inside(field: FieldInfo, part: int | str) -> FieldInfo | None:
    """Return the field under a key of a table, or of a list's entries; None where there is none."""
    for alternative in alternatives(field):
        if get_origin(alternative.annotation) is list and str(part).isdecimal():
            return FieldInfo.from_annotation(get_args(alternative.annotation)[0])
        for name, inner in getattr(alternative.annotation, "model_fields", {}).items():
            if part == (inner.alias or name):
                inner_field: FieldInfo = inner
                return inner_field
    return None


def alternatives(field: FieldInfo) -> list[FieldInfo]:
    """Return what a field may hold, in order, but for nothing."""
    if get_origin(field.annotation) not in (Union, UnionType):
        return [field]
    kinds = [kind for kind in get_args(field.annotation) if kind is not NoneType]
    return [FieldInfo.from_annotation(kind) for kind in kinds]


Count = Annotated[int, Field(ge=1, le=10_000_000)]
# Below these floors times overflow to infinity, and infinities become NaN.
Positive = Annotated[float, Field(ge=1e-9, le=1e18)]
NotNegative = Annotated[float, Field(ge=0, le=1e18)]
LONGEST_NAME = 200
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


def label(
    title: str,
    text: str = "",
    unit: str = "",
    usual: float | None = None,
    short: str = "",
    group: str = "",
) -> Any:
    """Return what people read of a field.

    Its label and help, a unit that its key does not say, up to where a slider reaches, a
    shorter name than its key's, and what forms fold it under.
    """
    more: Any = {"unit": unit, "usual": usual, "short": short, "group": group}
    return Field(title=title, description=text, json_schema_extra=more)


class SchemaTable(BaseModel):
    """One table of a file: its keys, their types and bounds, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


def must(holds: bool, what: str) -> None:
    """Refuse a table whose keys do not go together; `sentence` says what it must be."""
    if not holds:
        raise ValueError(what)
