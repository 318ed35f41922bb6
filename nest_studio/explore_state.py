"""What the Explore page remembers: its job, the last answer, and a point on its way to Plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.studies.knob import Knob, Value, with_values
from nest_core.studies.knobs import fabric_table
from nest_studio.fabric_widgets import LARGEST_RATIO, reset_fabric
from nest_studio.forms import Request
from nest_studio.jobs import Job, desk, there
from nest_studio.own_fabric import OWN, start

__all__ = ["awaited", "inputs_of", "is_on_its_way", "last_answer", "open_in_plan", "unsaid"]

_OPENS = "explore opens a point"
_LISTS = ("search.zero", "search.recompute")
_MICRO_BATCH = "search.micro_batch_sequences"
_PLAIN = (
    "workload.global_batch_sequences",
    "workload.sequence_length_tokens",
    "accelerator.memory_GiB",
    "fabric.clos.devices",
)


def inputs_of(request: Request) -> dict[str, Any]:
    """A request as the plain values that studies take."""
    return {
        "document": request.document,
        "overrides": request.overrides,
        "folder": str(request.folder),
    }


def awaited(name: str, what: str, work: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
    """The answer of a study, computed in a worker; None while it is not there.

    Meanwhile its progress stands here, or why there is none and a way to try again. What this page
    asked for before and no longer wants is stopped.

    Parameters
    ----------
    name : str
        Tells studies of the page apart.
    what : str
        What is computed, in words.
    work : callable (inputs, \\*, progress, stop)
    inputs : mapping
        Plain values.

    Raises
    ------
    InputError
        What the study refuses.
    """
    job = desk().ask(f"{name} {json.dumps(inputs, sort_keys=True)}", work, dict(inputs))
    _give_up_other(job)
    if not there(job, what, key=f"explore-{name}"):
        return None
    found = job.result(0)
    if not found.complete:
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.info(f"{what} was cancelled: what was there by then is shown.")
        right.button(
            "Run again", key=f"explore-again-{name}", on_click=desk().forget, args=(job.key,),
            width="stretch",
        )  # fmt: skip
    st.session_state[f"explore {name} answer"] = found
    return found


def _give_up_other(job: Job) -> None:
    """Stop what was asked for before, so that it can be begun anew another time."""
    earlier: Job | None = st.session_state.get("explore job")
    if earlier is not None and earlier.key != job.key and not earlier.ended:
        earlier.stop()
        desk().forget(earlier.key)
    st.session_state["explore job"] = job


def last_answer(name: str) -> Any:
    """The last answer that this session saw; None before the first."""
    return st.session_state.get(f"explore {name} answer")


def unsaid(pairs: Iterable[tuple[Knob, Value]]) -> str:
    """What the form of the Plan page cannot say about a point; empty if it says all."""
    for knob, _ in pairs:
        if knob.key == "micro_batch":
            return "The form can only limit the micro-batch, so a smaller one may win there."
    return ""


def open_in_plan(request: Request, pairs: tuple[tuple[Knob, Value], ...]) -> None:
    """Set the form to a point, for a button's callback; the page then goes to Plan."""
    beyond = [pair for pair in pairs if pair[0].fabric and not _has_widget(pair)]
    if beyond:
        _as_own_fabric(request, tuple(pair for pair in pairs if pair[0].fabric))
    for knob, value in pairs:
        if knob.fabric and beyond:
            continue
        for key, setting in knob.overrides(value).items():
            st.session_state[key] = _widget_value(key, setting)
    st.session_state[_OPENS] = True


def is_on_its_way() -> bool:
    """Whether the form was set to a point that is to be opened; true once."""
    return bool(st.session_state.pop(_OPENS, False))


def _has_widget(pair: tuple[Knob, Value]) -> bool:
    """Whether the form has a widget that holds this value of a fabric's knob."""
    knob, value = pair
    if knob.key.startswith("oversubscription.") and isinstance(value, int | float):
        return 1.0 <= value <= LARGEST_RATIO and 2 * value == int(2 * value)
    return all(key in _PLAIN for key in knob.overrides(value))


def _widget_value(key: str, setting: Any) -> Any:
    if key in _LISTS:
        return [setting]
    return setting if key in (*_PLAIN, _MICRO_BATCH) else float(setting)


def _as_own_fabric(request: Request, pairs: tuple[tuple[Knob, Value], ...]) -> None:
    """Bring the point's fabric as a fabric of one's own: no widget says what it changes."""
    turned = replace(request, overrides=with_values(request.overrides, pairs))
    table = fabric_table(turned.document, turned.overrides, turned.folder)
    said = ", ".join(
        f"{knob.label} {knob.words(value)} {knob.unit}".strip() for knob, value in pairs
    )
    start({**table, "name": f"{table['name']}, {said}"[:200]}, ())
    st.session_state["fabric"] = OWN
    reset_fabric()
