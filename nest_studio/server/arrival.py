"""Pages that open by an address: what a link asked for stays, and what it could not have is said.

The address that a session arrives with is kept until its first page stands. Widgets drop what
they do not take without a word: what then differs from the address was refused, and is said until
its field is set to something else or the word dismissed.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from nest_core.documents import InputError, as_markdown, look_again
from nest_core.documents.schema import parameter
from nest_studio.form import FORM, hold
from nest_studio.session.history import form_value, form_values

__all__ = ["arrive", "refused", "say_refused"]

LONGEST = 60
_ASKED = "address on arrival"
_REFUSED = "refused of the address"
_PAGE = "page shown"


def arrive(page: Any) -> None:
    """Note what the address says, if this is a page's first run; before anything is drawn.

    What an address set in a page's only run, Streamlit still holds when the next page is drawn,
    but does not tell that page's widgets. So it is set for them again; and so is what no page that
    was shown has had a widget for.

    Parameters
    ----------
    page : StreamlitPage
        The page that is about to be drawn.
    """
    address = {key: tuple(st.query_params.get_all(key)) for key in st.query_params}
    if _ASKED not in st.session_state:
        st.session_state[_ASKED] = address
        look_again()
    _without_endless(address)
    before, seeded = st.session_state.get(_PAGE, (None, {}))
    if before == page.title:
        had_its_widgets = "scenario" in st.session_state  # what then was not taken was refused
        unread = {key: texts for key, texts in seeded.items() if key not in st.session_state}
        st.session_state[_PAGE] = page.title, {} if had_its_widgets else unread
        return
    if seeded and "fabric" in form_values():  # of its preset: another page has another standard
        seeded = {"fabric": (form_values()["fabric"],), **seeded}
    carried = {
        key: texts
        for key, texts in seeded.items()
        if key not in address and (key in FORM or key.startswith("fabric"))
    }
    st.session_state[_PAGE] = page.title, carried | address
    stated = {key: value for key in carried if (value := form_value(key)) is not None}
    st.session_state.update(stated)
    if carried.keys() - stated.keys():  # which only an address tells to widgets
        st.switch_page(page, query_params=carried | address)
    # Refused where the page before still has their widgets, which Streamlit then follows.
    with contextlib.suppress(StreamlitAPIException):
        st.query_params.update({key: carried[key] for key in stated})


def _without_endless(address: Mapping[str, Sequence[str]]) -> None:
    """Run anew without numbers that are none, which Streamlit's fields of whole numbers fail on."""
    endless = [key for key, texts in address.items() if "." in key and any(map(_endless, texts))]
    for key in endless:
        # Refused where a field holds the word, which then is one of text and takes it.
        with contextlib.suppress(StreamlitAPIException):
            del st.query_params[key]
    if any(key not in st.query_params for key in endless):
        st.rerun()


def _endless(text: str) -> bool:
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def say_refused(place: Any) -> None:
    """Say what was not taken, once the page stands.

    Parameters
    ----------
    place : container
        Where to, above the page.
    """
    if arrived := st.session_state[_ASKED]:
        st.session_state[_ASKED] = {}
        address = {key: tuple(st.query_params.get_all(key)) for key in st.query_params}
        st.session_state[_REFUSED] = refused(
            arrived, address, {**form_values(), **st.session_state.to_dict()}
        )
    sentences = {
        key: entry
        for key, entry in st.session_state.get(_REFUSED, {}).items()
        if form_value(key) == entry[0]
    }
    st.session_state[_REFUSED] = sentences
    if sentences:
        with place:
            st.warning("  \n".join(sentence for _, sentence in sentences.values()))
            st.button(
                "Dismiss",
                type="tertiary",
                on_click=hold,
                args=(_REFUSED, {}),
                key="refused-dismiss",
            )


def refused(
    arrived: Mapping[str, Sequence[str]],
    address: Mapping[str, Sequence[str]],
    values: Mapping[str, Any],
) -> dict[str, tuple[Any, str]]:
    """Return the settings of an address that the page did not take.

    Parameters
    ----------
    arrived : mapping of str to sequence of str
        Keys and texts on arrival.
    address : mapping of str to sequence of str
        Those afterwards; what equals a preset's value is left out there.
    values : mapping of str to object
        What widgets hold afterwards, by key.

    Returns
    -------
    dict of str to (object, str)
        By key, what its widget holds instead (None where there is no such widget) and a sentence.
    """
    groups = {key.split(".")[0] for key in values if "." in key}
    refusals: dict[str, tuple[Any, str]] = {}
    for key, texts in arrived.items():
        text, name = _quoted(", ".join(texts)), as_markdown(key[:LONGEST])
        if key in values:
            if tuple(address.get(key, ())) != tuple(texts) and not _says(texts, values[key]):
                why = _why_not(key, texts) or (
                    f"{name} must be a value that its field offers, not {text}:"
                )
                stands = f"{_quoted(_word(values[key]))} stands there until another is set."
                refusals[key] = values[key], f"The link's {why} {stands}"
        elif "." in key and key.split(".")[0] in groups:
            refusals[key] = (
                None,
                (
                    f"The link's {name} must be a setting of what is chosen here, and none has "
                    f"that name: its value {text} changes nothing."
                ),
            )
    return refusals


def _why_not(key: str, texts: Sequence[str]) -> str:
    """What the catalogue has against the value of a parameter; empty where it has nothing."""
    with contextlib.suppress(KeyError):  # a key that is none of a scenario's
        try:
            for text in texts:
                parameter(key).read(text)
        except InputError as error:
            return as_markdown(error)
    return ""


def _says(texts: Sequence[str], value: Any) -> bool:
    """Return whether the texts of an address mean the value."""
    if isinstance(value, (list, tuple)):
        return sorted(texts) == sorted(map(_word, value))
    if not texts:
        return value is None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return texts[-1].lower() == _word(value).lower()
    try:
        return math.isclose(float(texts[-1]), value)
    except ValueError:
        return False


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_word, value))
    return "" if value is None else str(value)


def _quoted(text: str) -> str:
    """Return a text of any length and content within a sentence of Markdown."""
    plain = " ".join(text.replace("`", "'").split())
    if len(plain) > LONGEST:
        plain = f"{plain[:LONGEST]}…"
    return f"`{plain}`" if plain else "nothing"
