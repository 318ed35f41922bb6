"""A model of one's own: a ``config.json`` pasted or uploaded, or its sizes in a form.

It is a table as scenario files have it under ``workload.model``. The session keeps it on every
page and the address carries it, so that a link or a reload brings it back. What cannot be read
says so in one sentence, and the last good model stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import parameter
from nest_core.workload.graph import families, load_trace
from nest_core.workload.hugging_face import read_config
from nest_core.workload.model_files import ModelFile, load_model, model_of, model_table
from nest_core.workload.models import Model
from nest_studio.form.fields import number_of, upload

__all__ = [
    "OWN_MODEL",
    "carry_own_model",
    "chosen_model",
    "follow_own_model",
    "own_controls",
    "own_table",
    "set_own_model_aside",
    "use_model",
]

OWN_MODEL = "My model"
LONGEST_ADDRESS = 2000
_STATE = "own model"
_PROBLEM = "own model problem"
_ADDRESS = "own_model"
_ASIDE = "aside."
_TEXT = "own model text"
_FILE = "own model file"

_ALWAYS = ("blocks", "hidden", "heads", "kv_heads", "head_dim", "vocabulary")
_SIZES = tuple(
    field
    for field, told in ModelFile.model_fields.items()
    if told.title  # what is no size has none
)


def own_table(start: str) -> dict[str, Any]:
    """The person's model; a copy of a preset until there is one.

    Parameters
    ----------
    start : str
        The preset that it starts from.
    """
    if not follow_own_model():
        unread = bool(st.query_params.get(_ADDRESS))
        use_model(model_table(load_model(start)))
        if unread:
            st.session_state[_PROBLEM] = (
                f"The link's {_ADDRESS} must be a model's table as this page writes it, and cannot "
                f"be read: the form begins with {start} instead."
            )
    carry_own_model()
    table: dict[str, Any] = st.session_state[_STATE]["table"]
    return table


def follow_own_model() -> bool:
    """Take up the model that the address carries, if any; whether the person has one."""
    if _STATE not in st.session_state and (table := _from_address()) is not None:
        use_model(table)
    return _STATE in st.session_state


def carry_own_model() -> None:
    """Put the person's model into the address, so that a link or a reload brings it back."""
    text = json.dumps(st.session_state[_STATE]["table"], separators=(",", ":"))
    if len(text) <= LONGEST_ADDRESS and st.query_params.get(_ADDRESS) != text:
        st.query_params[_ADDRESS] = text


def set_own_model_aside() -> None:
    """Let the address keep the person's model, as one that is not on the screen."""
    text = st.query_params.get(_ADDRESS, "")
    if _STATE in st.session_state and text and not text.startswith(_ASIDE):
        st.query_params[_ADDRESS] = f"{_ASIDE}{text}"


def chosen_model(choice: str) -> Model:
    """The model of a choice in the form: a preset, or the person's own, once there is one."""
    return load_model(st.session_state[_STATE]["table"] if choice == OWN_MODEL else choice)


def own_controls(table: Mapping[str, Any], on_change: Callable[[], None]) -> None:
    """Ways to change the person's model.

    Parameters
    ----------
    table : mapping
        As it is.
    on_change : callable
        Called after it changed, inside a callback.
    """
    problem = st.session_state.get(_PROBLEM)
    with st.popover("Change my model", width="stretch"):
        if problem:  # here too: the popover lies above what comes after it
            st.error(as_markdown(problem))
        st.text_area(
            "Paste a config.json",
            key=_TEXT,
            on_change=_paste,
            args=(on_change,),
            height=120,
            help="A Hugging Face configuration; nothing is downloaded.",
        )
        st.file_uploader(
            "Or upload one",
            type=["json"],
            key=_FILE,
            on_change=_upload,
            args=(on_change,),
            help="At most 5 MB. The file stays on this machine.",
        )
        _form(table, on_change)
    if problem:
        st.warning(as_markdown(problem))


def _form(table: Mapping[str, Any], on_change: Callable[[], None]) -> None:
    revision = st.session_state[_STATE]["revision"]
    names = families()
    family = st.selectbox(
        "Or give its sizes; family",
        names,
        index=names.index(table["family"]),
        key=f"own model family {revision}",
        help="Norms, activation, biases and the kind of attention and experts.",
    )
    with st.form(f"own model sizes {revision}", border=False):
        left, right = st.columns(2)
        fields = _fields(family)
        for place, field in enumerate(fields):
            of = parameter(field, ModelFile)
            number_of(
                of,
                table.get(field, of.default or of.low),
                1,
                key=_key(revision, field),
                place=right if place % 2 else left,
                bind=None,
            )
        st.checkbox(
            "The head shares the embedding's weights",
            table.get("tied", False),
            key=_key(revision, "tied"),
        )
        st.form_submit_button(
            "Use these sizes", on_click=_use_sizes, args=(family, fields, revision, on_change)
        )


def _fields(family: str) -> tuple[str, ...]:
    """The sizes that a family has."""
    trace = load_trace(family)
    known = {symbol for graph in trace.values() for node in graph.nodes for symbol in node.symbols}
    mixture = "moe_block" in trace
    more = {
        "experts": mixture,
        "top_k": mixture,
        "dense_blocks": mixture and "block" in trace,
        "expert_groups": mixture,
        "top_groups": mixture,
        "window": "kv_rank" not in known,
    }
    return tuple(field for field in _SIZES if field in _ALWAYS or more.get(field, field in known))


def _key(revision: int, field: str) -> str:
    # A new table needs new widgets: a widget keeps its value when only its default changes.
    return f"own model {revision} {field}"


def _use_sizes(
    family: str, fields: tuple[str, ...], revision: int, on_change: Callable[[], None]
) -> None:
    if any(_key(revision, field) not in st.session_state for field in (*fields, "tied")):
        return  # another model has come since
    sizes = {field: st.session_state[_key(revision, field)] for field in (*fields, "tied")}
    before = st.session_state[_STATE]["table"]
    table = {"name": OWN_MODEL, "family": family, **sizes}
    same = all(before.get(key, value) == value for key, value in table.items() if key != "name")
    _take(lambda: model_of(before if same else table), on_change)


def _paste(on_change: Callable[[], None]) -> None:
    text = st.session_state.get(_TEXT) or ""
    if text.strip():
        _take(lambda: read_config(text, OWN_MODEL), on_change)
    else:
        st.session_state.pop(_PROBLEM, None)


def _upload(on_change: Callable[[], None]) -> None:
    file = upload(st.session_state.get(_FILE))
    if file is None:
        st.session_state.pop(_PROBLEM, None)
        return
    _take(lambda: read_config(file.getvalue(), OWN_MODEL), on_change)


def _take(read: Callable[[], Model], on_change: Callable[[], None]) -> None:
    """Put what is read in place of the present model, or say why that cannot be."""
    try:
        table = model_table(read())
    except InputError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    use_model(table)
    on_change()


def use_model(table: dict[str, Any]) -> None:
    """Make a model's table the person's own."""
    revision = st.session_state.get(_STATE, {}).get("revision", 0)
    st.session_state[_STATE] = {"table": table, "revision": revision + 1}
    st.session_state.pop(_PROBLEM, None)


def _from_address() -> dict[str, Any] | None:
    """The table that the address carries, if it is a model."""
    text = st.query_params.get(_ADDRESS, "").removeprefix(_ASIDE)
    if not text or len(text) > LONGEST_ADDRESS:
        return None
    try:
        table = json.loads(text)
        return model_table(model_of(table)) if isinstance(table, dict) else None
    except (ValueError, RecursionError):  # no JSON, or InputError: no model
        return None
