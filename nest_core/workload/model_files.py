"""The models that people name: a preset, a table of sizes, or a path to a file.

Presets and tables have the fields of `Model`, checked key by key; a ``config.json`` is read by
`nest_core.workload.hugging_face`, a trace of one's own by `nest_core.workload.traced`. Nothing is
downloaded.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import create_model

from nest_core.documents import InputError, load_toml, named_file, read_text
from nest_core.documents.schema import SchemaTable, checked
from nest_core.workload.hugging_face import read_config, renamed
from nest_core.workload.models import Model
from nest_core.workload.traced import is_trace, traced_model

__all__ = ["ModelFile", "load_model", "model_of", "model_table"]

_TYPES = get_type_hints(Model, include_extras=True)
_FIELDS: dict[str, Any] = {
    field.name: (_TYPES[field.name], ... if field.default is MISSING else field.default)
    for field in fields(Model)
    if field.name != "graphs"
}
# A file may leave the inner width of dense MLPs out, which `Model` asks for.
_FIELDS["ffn"] = (_TYPES["ffn"], 0)

ModelFile = create_model(
    "ModelFile",
    __base__=SchemaTable,
    __doc__="A model preset, or ``workload.model`` as a table, with the fields of `Model`.",
    **_FIELDS,
)


def load_model(choice: str | Mapping[str, Any], folder: Path | None = None) -> Model:
    """Return the model that somebody names.

    Parameters
    ----------
    choice : str or mapping
        A preset's name, a table with the fields of `Model`, or, given a folder, a path to a
        ``config.json`` or to a trace of one's own; then also a table with that path as ``trace``
        and the sizes to be changed.
    folder : Path, optional
        Where a relative path starts; without it a name must be a preset's.

    Raises
    ------
    InputError
        If there is no such model, or it cannot be one.
    """
    if isinstance(choice, Mapping):
        if "trace" not in choice:
            return model_of(choice, "workload.model")
        path = _file(str(choice["trace"]), folder, "workload.model.trace")
        sizes = {key: value for key, value in choice.items() if key != "trace"}
        return traced_model(read_text(path), path.stem, sizes)
    path = _file(choice, folder, "workload.model")
    if path.suffix == ".toml":
        return model_of(load_toml(path), "model")
    text = read_text(path)
    if is_trace(text):
        return traced_model(text, path.stem)
    place = path.resolve()
    return read_config(text, place.parent.name if place.stem == "config" else place.stem)


def _file(name: str, folder: Path | None, field: str) -> Path:
    return named_file(
        "models",
        name,
        folder,
        field=field,
        file="config.json or trace",
        table=True,
        is_path=lambda name, _: name.endswith(".json"),
    )


def model_of(table: Mapping[str, Any], where: str = "model") -> Model:
    """Return the model of a table.

    Parameters
    ----------
    where : str
        The table's name in messages.
    """
    entry = checked(ModelFile, dict(table), f"{where}.")
    try:
        model = Model(**entry.model_dump())
        model.check_family()
    except InputError as error:
        raise renamed(error, lambda field: f"{where}.{field}") from error
    return model


def model_table(model: Model) -> dict[str, Any]:
    """Return the table of a model: what differs from the defaults, in the order of `Model`."""
    return {
        field.name: value
        for field in fields(model)
        if (value := getattr(model, field.name)) != field.default or field.default is MISSING
    }
