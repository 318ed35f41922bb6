"""Fields of forms: what each takes, what files say for it, and how it is drawn.

Links, notebooks and comparisons set widgets by key, and a browser sends what its last controls
were set to, which those drawn now need not have. Whatever it is, `settle` lets a widget see only
what its field takes, and `widget_value` hands a callback nothing else.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from html import escape
from io import BytesIO
from typing import Any

import streamlit as st

from nest_core.documents import as_markdown, capital, truncated
from nest_core.documents.schema import Parameter
from nest_core.report.explain.validity import worth_of
from nest_studio.session.history import form_value

__all__ = [
    "ADDRESS",
    "DrawnForm",
    "Edits",
    "Listed",
    "Number",
    "OneOf",
    "PresetOrOwn",
    "SomeOf",
    "Text",
    "Widget",
    "field_of",
    "fold",
    "hold",
    "label_of",
    "one_of",
    "parameter_field",
    "settle",
    "upload",
    "uploads",
    "widget",
    "widget_value",
]

ADDRESS: Any = "query-params"
"""What binds a widget to the address."""
_LONGEST = 14


class Widget(ABC):
    """What a widget takes, how it is drawn, and its words for what files say."""

    is_narrow = False
    """Whether there is no room beside its label."""
    explains = False
    """Whether it says itself what it cannot take."""

    @abstractmethod
    def fit(self, value: Any) -> tuple[Any] | None:
        """Return a value as the widget has it, in a tuple; None where it cannot have it."""

    def shown(self, value: Any) -> tuple[Any] | None:
        """Return what the widget has for what a file says, in a tuple; None where nothing."""
        return self.fit(value)

    def stated(self, value: Any) -> Any:
        """Return what a file says for what the widget has."""
        return value

    @abstractmethod
    def draw(self, place: Any, label: str, standard: Any, **look: Any) -> Any:
        """Draw the widget at a place, at first with the standard, and return what it has."""


@dataclass(frozen=True)
class OneOf(Widget):
    """One of some options; None too where it may be empty.

    Parameters
    ----------
    options : sequence
    empty : bool
    meanings : mapping
        What files say for an option, where it is not the option.
    """

    options: Sequence[Any]
    empty: bool = False
    meanings: Mapping[Any, Any] = field(default_factory=dict)

    def fit(self, value: Any) -> tuple[Any] | None:
        """Return the option."""
        if value is None:
            return (None,) if self.empty else None
        return next(((option,) for option in self.options if _same(option, value)), None)

    def shown(self, value: Any) -> tuple[Any] | None:
        """Return the option that means what a file says."""
        words = (word for word, meaning in self.meanings.items() if _same(meaning, value))
        return self.fit(next(words, value))

    def stated(self, value: Any) -> Any:
        """Return what the option means."""
        return self.meanings.get(value, value)

    def draw(self, place: Any, label: str, standard: Any, **look: Any) -> Any:
        """Draw a box to choose from, or to tick where it is yes or no."""
        if self.options and self.options[0] is False:
            return place.checkbox(label, standard, **look)
        return place.selectbox(
            label, self.options, None if standard is None else self.options.index(standard), **look
        )


@dataclass(frozen=True)
class PresetOrOwn(OneOf):
    """A preset by its name, or the person's own, which files have as a table.

    Parameters
    ----------
    own_option : str
        The option that means it.
    table : callable
        What a file says for it.
    is_one : callable (table) -> bool
        Whether the form can have a file's table.
    """

    own_option: str = ""
    table: Callable[[], Any] = dict
    is_one: Callable[[Mapping[str, Any]], bool] = bool

    def shown(self, value: Any) -> tuple[Any] | None:
        """Return the name, or the option of one's own."""
        if isinstance(value, Mapping):
            return (self.own_option,) if self.is_one(value) else None
        return None if value == self.own_option else super().shown(value)

    def stated(self, value: Any) -> Any:
        """Return the name, or the table."""
        return self.table() if value == self.own_option else super().stated(value)


@dataclass(frozen=True)
class SomeOf(Widget):
    """Some of the options, each once; a single one counts as a list of it.

    Parameters
    ----------
    options : sequence
    max_count : int or None
    meanings : mapping
        As those of `OneOf`.
    """

    options: Sequence[Any]
    max_count: int | None = None
    meanings: Mapping[Any, Any] = field(default_factory=dict)

    def fit(self, value: Any) -> tuple[Any] | None:
        """Return the list."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not all(any(_same(option, entry) for option in self.options) for entry in values):
            return None
        is_too_long = len(values) > (self.max_count or len(values))
        return None if is_too_long or len(set(values)) < len(values) else (values,)

    def shown(self, value: Any) -> tuple[Any] | None:
        """Return the options that a file lists, or pins; all of them where it says nothing."""
        if value is None:
            return (list(self.options),)
        option = OneOf(self.options, meanings=self.meanings)
        values = [option.shown(entry) for entry in (value if isinstance(value, list) else [value])]
        return self.fit([entry[0] for entry in values if entry]) if all(values) else None

    def stated(self, value: Any) -> Any:
        """Return what the options mean, in their order."""
        return [self.meanings.get(option, option) for option in self.options if option in value]

    def draw(self, place: Any, label: str, standard: Any, **look: Any) -> Any:
        """Draw a box to choose several from."""
        look.setdefault("max_selections", self.max_count)
        return place.multiselect(label, self.options, standard, **look)


@dataclass(frozen=True)
class Number(Widget):
    """A number between two, ends included, whole where they are; None too where it may be empty."""

    low: float
    high: float
    empty: bool = False

    def fit(self, value: Any) -> tuple[Any] | None:
        """Return the number, of the type of its bounds."""
        if value is None:
            return (None,) if self.empty else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not self.low <= value <= self.high:  # NaN lies nowhere
            return None
        kind = type(self.low)
        return (kind(value),) if kind(value) == value else None

    def draw(self, place: Any, label: str, standard: Any, **look: Any) -> Any:
        """Draw a box to type into; a slider where the look is of one."""
        draw = place.slider if look.pop("slider", False) else place.number_input
        if "step" in look:
            look["step"] = type(self.low)(look["step"])
        return draw(label, self.low, self.high, standard, **look)


@dataclass(frozen=True)
class Text(Widget):
    """Text, or None."""

    def fit(self, value: Any) -> tuple[Any] | None:
        """Return the text."""
        return (value,) if value is None or isinstance(value, str) else None

    def draw(self, place: Any, label: str, standard: Any, **look: Any) -> Any:
        """Draw a line to write in."""
        return place.text_input(label, standard, **look) or ""


@dataclass(frozen=True)
class Listed(Text):
    """Names or whole numbers with commas between them, which files have as a list."""

    def shown(self, value: Any) -> tuple[Any] | None:
        """Return the line of a list."""
        return (", ".join(map(str, value or ())),)

    def stated(self, value: Any) -> Any:
        """Return the list of a line."""
        words = [word.strip() for word in (value or "").split(",")]
        return [int(word) if word.isdecimal() else word for word in words if word]


@dataclass(frozen=True)
class Edits:
    """Edits of a table of so many rows, as Streamlit's editor sends them, by its columns' fields.

    Rows are added and deleted only in one that ``grows``.
    """

    rows: int
    columns: Mapping[str, Widget]
    grows: bool = False

    def fit(self, value: Any) -> tuple[Any] | None:
        """Return the edits."""
        match value:
            case {"edited_rows": {**changed}, "added_rows": [*added], "deleted_rows": [*deleted]}:
                fits = all(map(Number(0, self.rows - 1).fit, (*changed, *deleted)))
                fits = fits and all(map(self._row, (*changed.values(), *added)))
                return (value,) if fits and (self.grows or not (added or deleted)) else None
        return None

    def _row(self, cells: Any) -> bool:
        return isinstance(cells, Mapping) and all(
            name in self.columns and self.columns[name].fit(cell) for name, cell in cells.items()
        )


def field_of(parameter: Parameter, *, empty: bool = False) -> OneOf | Number:
    """Return what a widget of a parameter takes."""
    if parameter.choices or parameter.kind is bool:
        return OneOf(parameter.options)
    kind = parameter.kind
    return Number(parameter.low or kind(0), parameter.high or kind(0), empty)


def label_of(parameter: Parameter) -> str:
    """Return what a widget of a parameter is called."""
    return capital(parameter.title)


def parameter_field(
    parameter: Parameter,
    standard: Any,
    *,
    key: str = "",
    takes: Widget | None = None,
    bounds: str = "",
    **look: Any,
) -> Any:
    """Draw a parameter's widget, bound to the address, and return what it has.

    Parameters
    ----------
    parameter : Parameter
    standard : object
        What the widget has at first.
    key : str
        Of the widget, where it is not the parameter's.
    takes : Widget, optional
        Without it what the catalogue says.
    bounds : str, optional
        What its help begins with: without it the range of a number.
    **look
        As of `widget`, and over what the catalogue says.
    """
    takes = takes or field_of(parameter, empty=standard is None)
    if isinstance(takes, Number):
        bounds = bounds or f"{parameter.allowed}."
        look.setdefault("step", 1)
    text = f"{bounds} {parameter.text} {worth_of(parameter.key)}".strip()
    # Levels of a fabric have names that people give. A lone dollar begins no formula, and screen
    # readers would read its backslash.
    look = {
        "label": re.sub(r"^([^$]*)\\\$([^$]*)$", r"\1$\2", as_markdown(label_of(parameter))),
        "help": as_markdown(text),
        **look,
    }
    return widget(key or parameter.key, takes, standard, **look)


def widget(
    key: str,
    takes: Widget,
    standard: Any,
    *,
    label: str,
    place: Any = st,
    marked: bool = False,
    **look: Any,
) -> Any:
    """Draw a widget, bound to the address unless the look says otherwise, and return what it has.

    Parameters
    ----------
    key : str
        What the session has under it, and the field does not take, is forgotten.
    takes : Widget
    standard : object
        What it has at first.
    label : str
    place : container
    marked : bool
        Whether it is marked, and can be put back alone, while it is not as the standard.
    **look
        Streamlit's arguments.
    """
    if not takes.explains:
        settle(key, takes)
    arguments = {"key": key, "bind": ADDRESS, **look}
    if not marked:
        return takes.draw(place, label, standard, **arguments)
    with place.container(key=f"field-{key.replace('.', '-')}", gap=None):
        value = takes.draw(st, label, standard, **arguments)
        if st.session_state.get(key, standard) != standard:
            before = as_markdown(_short(standard))
            st.button(
                "↺" if takes.is_narrow else f"↺ {before}",
                key=f"back-{key}",
                type="tertiary",
                on_click=hold,
                args=(key, standard, look.get("on_change")),
                help=f"Put back what the preset has: {before}.",
            )
    return value


@dataclass
class DrawnForm:
    """What a form's widgets have, and what of it is not as where the form starts.

    Parameters
    ----------
    fields : dict of Widget
    standards : dict
        What each has at first.
    values : dict
        What each has, drawn or folded away.
    notes : list
        Places for what ratios become.
    boxes : dict
        Below each, or below the fold that hides it, for what is to be said of it.
    hidden_by : container or None
        Below the fold that hides what is drawn now.
    """

    fields: dict[str, Widget]
    standards: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    notes: list[Any] = field(default_factory=list)
    boxes: dict[str, Any] = field(default_factory=dict)
    hidden_by: Any = None

    @property
    def overrides(self) -> dict[str, Any]:
        """Return what files say for those that are not as at first."""
        stated = {
            key: (self.fields[key].stated(value), self.fields[key].stated(self.standards[key]))
            for key, value in self.values.items()
        }
        return {key: value for key, (value, standard) in stated.items() if value != standard}

    def draw(self, key: str, of: Parameter | None = None, **look: Any) -> Any:
        """Draw a widget, marked while it is not as at first, and return what it has.

        In a fold that is shut it is drawn only where a session or an address has another value for
        it than at first: widgets are what a run of a page spends most of its time on.

        Parameters
        ----------
        key : str
        of : Parameter, optional
            Whose catalogue says its label and bounds; without it the look does.
        **look
            As of `widget`.
        """
        takes, standard = self.fields[key], self.standards[key]
        is_set = key in st.query_params or st.session_state.get(key, standard) != standard
        self.boxes[key], self.values[key] = self.hidden_by, standard
        if is_set or not self.hidden_by:
            drawn = partial(parameter_field, of) if of else partial(widget, key)
            box = st.container(gap=None)
            self.boxes[key] = self.hidden_by or box
            self.values[key] = drawn(takes=takes, standard=standard, marked=True, place=box, **look)
        else:  # Streamlit goes through all that a session has for every widget
            st.session_state.pop(key, None)
        return self.values[key]


def _short(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, list):
        return "all" if len(value) > 2 else ", ".join(map(str, value))
    return truncated(f"{value:g}" if isinstance(value, float) else str(value), _LONGEST)


@contextmanager
def fold(
    label: str, key: str, *, opened: bool = False, form: DrawnForm | None = None
) -> Iterator[Callable[[str], Any]]:
    """Draw a group that folds; what is yielded writes a summary at the right of its head.

    A form's fields are drawn in it once it is open, as `DrawnForm.draw` says.
    """
    head = st.empty()
    group = st.expander(label, expanded=opened, key=key, on_change="rerun" if form else "ignore")
    form = form or DrawnForm({}, {})
    below = None if group.open else st.container(gap=None)
    outer, form.hidden_by = form.hidden_by, form.hidden_by or below
    with group:
        yield lambda text: head.html(f'<div class="nest-fold">{escape(text)}</div>')
    form.hidden_by = outer


def settle(key: str, takes: Widget | Edits) -> None:
    """Forget what the session has under a widget's key if its field cannot; before drawing it."""
    if key in st.session_state and takes.fit(st.session_state[key]) is None:
        del st.session_state[key]


def widget_value(key: str, takes: Widget | Edits) -> Any:
    """Return what a widget has, drawn or folded away; None where it is gone, or cannot have it."""
    fitted = takes.fit(form_value(key))
    return fitted[0] if fitted else None


def hold(key: str, value: Any, then: Callable[[], None] | None = None) -> None:
    """Have the session hold a value, and do what follows from it, for callbacks."""
    st.session_state[key] = value
    if then is not None:
        then()


def one_of(
    place: Any, label: str, options: Sequence[Any], default: Any, key: str, **look: Any
) -> Any:
    """Draw options in a row; the default is returned too where an address leaves its word out."""
    settle(key, OneOf(options))
    chosen = place.segmented_control(
        label, options, default=default, required=True, key=key, **look
    )
    return default if chosen is None else chosen


def upload(value: Any) -> Any:
    """Return the file of an uploader; None also where the server does not have it, or no more."""
    return value if isinstance(value, BytesIO) else None


def uploads(value: Any) -> list[Any]:
    """Return the files of an uploader that takes several, those that the server has."""
    return [file for file in value or () if upload(file) is not None]


def _same(option: Any, value: Any) -> bool:
    """Return whether two are equal and of one type: 1 is neither True nor 1.0 here."""
    return type(option) is type(value) and bool(option == value)
