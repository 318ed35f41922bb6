"""How pages show what the core returns: pictures, headlines, facts, and drawings.

Components of the browser draw SVG, which `streamlit.html` strips, and fabrics. A fragment that runs
by Streamlit's clock (`run_every`) may have the whole page run again, but no other fragment: only
callbacks may, and `run_again` brings one.
"""

import html
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import in_labels
from nest_core.report.explain.summary import Headline
from nest_core.report.figures import Chart

__all__ = [
    "AnswerArea",
    "download",
    "facts",
    "headline_row",
    "local_time",
    "nothing_yet",
    "run_again",
    "show_fabric",
    "show_picture",
    "show_svg",
    "shown_width",
    "told",
]

FORMATS = ("PNG", "SVG")
PNG_SCALE = 2


_UNMARKED = '<i class="nest-mark"></i>'
"""Of a style alone Streamlit would add one more, and leave the one before."""


class AnswerArea:
    """An answer in parts, of which no two that belong to different requests are seen together.

    A run is seen while it draws, and may be ended by the next one: what was drawn before stands
    until something takes its place. So every part says which request it belongs to. What does not
    belong to the request of the part that was drawn last is not seen; and all is grey, title
    included, while another request is awaited.

    Parameters
    ----------
    name : str
        Tells it from other answers of the session.
    """

    def __init__(self, name: str) -> None:
        # A session keeps them, as the screen outlasts a run; of the parts the last one at the end.
        self._requests: dict[str, object] = st.session_state.setdefault(f"parts of {name}", {})
        self._kept = f"marks of {name}"
        self._body = st.session_state.get(self._kept, _UNMARKED)
        self._place = st.html(self._body)
        self.awaited: object = None

    def awaits(self, request: object) -> None:
        """Await the answer to a request; None where what is asked is none."""
        self.awaited = request
        self._mark()

    @contextmanager
    def part(self, name: str, request: object) -> Iterator[None]:
        """Draw a part, in a container of this key, that belongs to a request."""
        with st.container(key=name):
            yield
        self._requests.pop(name, None)
        self._requests[name] = request
        self._mark()

    def _mark(self) -> None:
        drawn = next(reversed(self._requests.values()), self.awaited)
        style = "".join(
            f".st-key-{name} {{ visibility: hidden; }}"
            for name, request in self._requests.items()
            if request != drawn
        )
        if drawn != self.awaited:
            # What comes within a moment changes the page without a flicker.
            parts = ", ".join(f".st-key-{name}" for name in self._requests)
            style += f"{parts} {{ opacity: 0.35; transition: opacity 0.15s 0.35s; }}"
        body = f"{_UNMARKED}<style>{style}</style>"
        if body != self._body:
            self._place.html(body)
            st.session_state[self._kept] = self._body = body


def facts(*lines: str, kind: str = "nest-facts") -> None:
    """Lines of plain text, if there are any."""
    if lines:
        st.html(_lines(lines, kind))


def nothing_yet(title: str) -> None:
    """Stand in for an answer where a page's first request is refused, below the sentence."""
    facts(title, kind="nest-scenario nest-nothing")
    facts("The sentence above says what cannot be, and which values can.", kind="nest-quiet")


def download(label: str, data: Any, name: str, mime: str, **look: Any) -> None:
    """A quiet button that hands a file over; the page does not run again for it.

    ``data`` is a function, called on the click: a ready file's address dies with the next redraw,
    and a browser that asks for it meanwhile shows an error.
    """
    st.download_button(label, data, name, mime, on_click="ignore", type="tertiary", **look)


def local_time(text: str, pattern: str = "%d %b %Y, %H:%M") -> str:
    """Return an ISO date in the visitor's time zone; what is none as it is."""
    try:
        zone = ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):  # a browser may name one that is not known here
        zone = ZoneInfo("UTC")
    try:
        return datetime.fromisoformat(text).astimezone(zone).strftime(pattern)
    except (ValueError, OverflowError):
        return text or "at an unknown time"


@contextmanager
def told(say: Callable[[str], Any] = st.error) -> Iterator[None]:
    """Say in labels what is refused in this block, and leave it."""
    try:
        yield
    except InputError as error:
        say(as_markdown(in_labels(str(error))))


def headline_row(headlines: tuple[Headline, ...], *, spans: bool = False) -> None:
    """Show headline figures side by side, each with its formula one click away.

    Parameters
    ----------
    headlines : tuple of Headline
    spans : bool
        Whether a line beneath every figure is for its interval.
    """
    for column, headline in zip(st.columns(len(headlines)), headlines, strict=True):
        with column:
            st.metric(as_markdown(headline.name), as_markdown(headline.value))
            note = _lines([headline.note], "nest-note")
            st.html(_span(headline) + note if spans else note)
            st.popover("Formula", type="tertiary").html(
                _lines(headline.formula or (headline.note,), "nest-facts")
            )


def show_picture(
    picture: Chart, key: str, place: Any = st, on_pick: Callable[[int], None] | None = None
) -> None:
    """Show a picture: its finding above, below its reading help and ways to save it.

    Parameters
    ----------
    picture : Chart
    key : str
        Tells the pictures of a page apart; the chart's key is ``plot-{key}``.
    place : container, optional
        Where on the page; without it where the page has come to.
    on_pick : callable (int), optional
        Called with the number that a clicked point carries as its ``customdata``, or first in it,
        before the page runs again. A click beside the points, or on one without, calls nobody.
    """
    from nest_studio.form.fields import OneOf, one_of, settle  # forms draw with what is here

    format_key = f"figure-format-{key}"
    settle(format_key, OneOf(FORMATS))
    kind = st.session_state.get(format_key, FORMATS[0])
    box = place.container()
    box.html(_head(picture))
    box.plotly_chart(
        picture.drawn(),
        key=f"plot-{key}",
        config={  # a camera alone, where the plot is pointed at
            "displaylogo": False,
            "modeBarButtons": [["toImage"]],
            "toImageButtonOptions": {
                "format": kind.lower(),
                "filename": picture.file_name,
                "scale": PNG_SCALE if kind == "PNG" else 1,
            },
        },
        alt=f"{picture.title}. {picture.subtitle}.",
        selection_mode="points",
        on_select=(lambda: _pick(key, on_pick)) if on_pick else "ignore",
    )
    foot = box.container(horizontal=True, gap="small", key=f"figure-foot-{key}")
    foot.html(_lines([picture.reading], "nest-reading"))
    with foot.popover("Save", type="tertiary", key=f"figure-menu-{key}"):
        st.download_button(
            "Data (CSV)",
            picture.to_csv,
            f"{key}.csv",
            "text/csv",
            on_click="ignore",
            key=f"figure-csv-{key}",
            help="What the plot draws: one row per bar, point or cell.",
        )
        one_of(
            st,
            "Picture",
            FORMATS,
            FORMATS[0],
            format_key,
            help="What the camera saves that shows where the plot is pointed at.",
        )


def _pick(key: str, on_pick: Callable[[int], None]) -> None:
    """Hand on the number that the clicked point carries."""
    match st.session_state.get(f"plot-{key}"):
        case {"selection": {"points": [{"customdata": [number, *_] | number}, *_]}} if isinstance(
            number, int | float
        ):
            on_pick(int(number))


def _lines(lines: tuple[str, ...] | list[str], kind: str) -> str:
    return "".join(f'<div class="{kind}">{html.escape(line)}</div>' for line in lines)


def _span(headline: Headline) -> str:
    title = f' title="{html.escape(headline.basis)}"' if headline.basis else ""
    return f'<div class="nest-span"{title}>{html.escape(headline.span)}</div>'


def _head(shown: Chart) -> str:
    legend = "".join(
        f'<span><i style="background: {colour}"></i>{html.escape(name)}</span>'
        for name, colour in shown.legend
    )
    return (
        f'<div class="nest-title">{html.escape(shown.title)}</div>'
        f'<div class="nest-subtitle">{html.escape(shown.subtitle)}</div>'
        + (f'<div class="nest-legend">{legend}</div>' if legend else "")
    )


WIDTHS = (300.0, 2400.0)
USUAL_PX = 520.0

_calls = itertools.count()


@cache
def _component(name: str, *, isolate_styles: bool = True) -> ComponentRenderer:
    """Registered when it is first shown: outside a running Streamlit that fails."""
    return st.components.v2.component(
        f"nest-studio.{name}", js=f"{name}.js", isolate_styles=isolate_styles
    )


def show_svg(svg: str, *, key: str) -> None:
    """Show a drawing of our own; a newer one under the same key takes its place.

    Parameters
    ----------
    svg : str
        Text that names and words of people stand in escaped.
    key : str
        Names the place within the session.
    """
    _component("svg", isolate_styles=False)(key=key, data={"svg": svg})


def shown_width(key: str, usual: float = USUAL_PX) -> float:
    """Pixels that a picture has room for, as the browser last said; ``usual`` before it has."""
    sent: Any = st.session_state.get(key)
    width = sent.get("width") if isinstance(sent, Mapping) else None
    return (
        float(width)
        if isinstance(width, int | float) and WIDTHS[0] <= width <= WIDTHS[1]
        else usual
    )


def show_fabric(data: dict[str, Any], *, key: str) -> None:
    """Show a picture, and its matrix at the right.

    Parameters
    ----------
    data : dict
        As `nest_core.report.picture.matrix.pointed_picture` returns it.
    key : str
        Names the place within the session.
    """
    _component("fabric")(key=key, data=data, on_width_change=_nothing)


def _nothing() -> None:
    """Streamlit knows a component's values by their callbacks."""


@st.fragment
def run_again(fragment: str, jobs: Sequence[Future[Any]], *, every_s: float, key: str) -> None:
    """Have a fragment run again once one of some jobs has ended; the page around it stands.

    Parameters
    ----------
    fragment : str
        Its key; this is called within it.
    jobs : sequence of Future
    every_s : float
        Seconds after which they are looked at, again and again.
    key : str
        Names the place within the session.
    """

    def look() -> None:
        if any(job.done() for job in jobs):
            st.rerun(fragment)

    # The browser calls a component anew when its data are others.
    data = {"after_ms": 1e3 * every_s, "call": next(_calls)}
    _component("again")(key=key, data=data, height=1, on_due_change=look)
