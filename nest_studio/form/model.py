"""A model of one's own: a ``config.json`` pasted or uploaded, or its sizes in a form.

It is a table as scenario files have it under ``workload.model``. The session keeps it on every
page and the address carries it, so that a link or a reload brings it back. What cannot be read
says so in one sentence, and the last good model stays.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import parameter
from nest_core.workload import (
    Model,
    ModelFile,
    families,
    load_model,
    load_trace,
    model_of,
    model_table,
)
from nest_core.workload.hugging_face import read_config
from nest_studio.form.fields import parameter_field, upload
from nest_studio.session.stored import address, session_value, write_address

__all__ = [
    "OWN_MODEL",
    "OwnModel",
    "chosen_model",
    "follow_own_model",
    "own_controls",
    "own_table",
    "say_own_model",
    "use_model",
]

OWN_MODEL = "My model"
LONGEST_ADDRESS = 2000
_ADDRESS = "own_model"
_TEXT = "own model text"
_FILE = "own model file"

_ALWAYS = ("blocks", "hidden", "heads", "kv_heads", "head_dim", "vocabulary")
_SIZES = tuple(
    name
    for name, size in ModelFile.model_fields.items()
    if size.title  # what is no size has none
)


@dataclass
class OwnModel:
    """A session's own model.

    Parameters
    ----------
    table : dict or None
        As scenario files have it; None until there is one.
    revision : int
        Grows with every change.
    problem : str
        Why what was brought last could not be read.
    """

    table: dict[str, Any] | None = None
    revision: int = 0
    problem: str = ""


def own_table(start: str) -> dict[str, Any]:
    """Return the person's model; a copy of a preset until there is one.

    Parameters
    ----------
    start : str
        The preset that it starts from.
    """
    model = session_value(OwnModel)
    if not follow_own_model():
        unread = st.query_params.get(_ADDRESS)
        use_model(model_table(load_model(start)))
        if unread:
            model.problem = (
                f"The link's {_ADDRESS} must be a model's table as this page writes it, and cannot "
                f"be read: the form begins with {start} instead."
            )
    say_own_model(shown=True)
    return model.table or {}


def follow_own_model() -> bool:
    """Take up the model that the address carries, if any; return whether the person has one."""
    model = session_value(OwnModel)
    if model.table is None and (table := _from_address()) is not None:
        use_model(table)
    return model.table is not None


def say_own_model(*, shown: bool) -> None:
    """Have the address carry the person's model, as on the screen or not; nothing without one."""
    model = session_value(OwnModel)
    text = json.dumps(model.table, separators=(",", ":"))
    if model.table is not None and len(text) <= LONGEST_ADDRESS and (shown or address(_ADDRESS)):
        write_address(_ADDRESS, text, shown=shown)


def chosen_model(choice: str) -> Model:
    """Return the model of a choice in the form: a preset, or the person's own, if there is one."""
    return load_model(session_value(OwnModel).table or {} if choice == OWN_MODEL else choice)


def own_controls(table: Mapping[str, Any], on_change: Callable[[], None]) -> None:
    """Draw ways to change the person's model.

    Parameters
    ----------
    table : mapping
        As it is.
    on_change : callable
        Called after it changed, inside a callback.
    """
    problem = session_value(OwnModel).problem
    with st.popover("Change my model", width="stretch"):
        if problem:  # here too: the popover lies above what comes after it
            st.error(as_markdown(problem))
        st.text_area(
            "Paste a config.json",
            key=_TEXT,
            on_change=_read,
            args=(_TEXT, on_change),
            height=120,
            help="A Hugging Face configuration; nothing is downloaded.",
        )
        st.file_uploader(
            "Or upload one",
            type=["json"],
            key=_FILE,
            on_change=_read,
            args=(_FILE, on_change),
            help="At most 5 MB. The file stays on this machine.",
        )
        _form(table, on_change)
    if problem:
        st.warning(as_markdown(problem))


def _form(table: Mapping[str, Any], on_change: Callable[[], None]) -> None:
    revision = session_value(OwnModel).revision
    names = families()
    family = st.selectbox(
        "Or give its sizes; family",
        names,
        index=names.index(table["family"]),
        key=f"own model family {revision}",
        help="Norms, activation, biases and the kind of attention and experts.",
    )
    with st.form(f"own model sizes {revision}", border=False):
        columns = st.columns(2)
        names = _fields(family)
        for number, name in enumerate(names):
            size = parameter(name, ModelFile)
            standard = table.get(name, size.default or size.low)
            place, key = columns[number % 2], _key(revision, name)
            parameter_field(size, standard, key=key, place=place, bind=None)
        st.checkbox(
            "The head shares the embedding's weights",
            table.get("tied", False),
            key=_key(revision, "tied"),
        )
        st.form_submit_button(
            "Use these sizes", on_click=_use_sizes, args=(family, names, revision, on_change)
        )


def _fields(family: str) -> tuple[str, ...]:
    """Return the sizes that a family has."""
    trace = load_trace(family)
    symbols = {
        symbol for graph in trace.values() for node in graph.nodes for symbol in node.symbols
    }
    mixture = "moe_block" in trace
    more = {
        "experts": mixture,
        "top_k": mixture,
        "dense_blocks": mixture and "block" in trace,
        "expert_groups": mixture,
        "top_groups": mixture,
        "window": "kv_rank" not in symbols,
    }
    return tuple(name for name in _SIZES if name in _ALWAYS or more.get(name, name in symbols))


def _key(revision: int, name: str) -> str:
    # A new table needs new widgets: a widget keeps its value when only its default changes.
    return f"own model {revision} {name}"


def _use_sizes(
    family: str, names: tuple[str, ...], revision: int, on_change: Callable[[], None]
) -> None:
    if any(_key(revision, name) not in st.session_state for name in (*names, "tied")):
        return  # another model has come since
    sizes = {name: st.session_state[_key(revision, name)] for name in (*names, "tied")}
    before = session_value(OwnModel).table or {}
    table = {"name": OWN_MODEL, "family": family, **sizes}
    same = all(before.get(key, value) == value for key, value in table.items() if key != "name")
    _take(lambda: model_of(before if same else table), on_change)


def _read(key: str, on_change: Callable[[], None]) -> None:
    """Read the configuration that a text field or an uploader has; nothing where it is empty."""
    value = st.session_state.get(key)
    file = upload(value)
    config = file.getvalue() if file else value if isinstance(value, str) else ""
    session_value(OwnModel).problem = ""
    if config.strip():
        _take(lambda: read_config(config, OWN_MODEL), on_change)


def _take(read: Callable[[], Model], on_change: Callable[[], None]) -> None:
    """Put what is read in place of the present model, or say why that cannot be."""
    try:
        table = model_table(read())
    except InputError as error:
        session_value(OwnModel).problem = str(error)
        return
    use_model(table)
    on_change()


def use_model(table: dict[str, Any]) -> None:
    """Make a model's table the person's own."""
    model = session_value(OwnModel)
    model.table, model.revision, model.problem = table, model.revision + 1, ""


def _from_address() -> dict[str, Any] | None:
    """Return the table that the address carries, if it is a model."""
    text = address(_ADDRESS)
    if not text or len(text) > LONGEST_ADDRESS:
        return None
    try:
        table = json.loads(text)
        return model_table(model_of(table)) if isinstance(table, dict) else None
    except (ValueError, RecursionError):  # no JSON, or InputError: no model
        return None
