"""How pages show what the core returns: pictures, headlines, facts."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.report.explain.summary import Headline
from nest_core.report.figures import Chart
from nest_studio.form.fields import OneOf, one_of, settle

__all__ = [
    "download",
    "facts",
    "headline_row",
    "local_time",
    "mark_results",
    "show_picture",
    "told",
]

FORMATS = ("PNG", "SVG")
PNG_SCALE = 2


def mark_results(*, earlier: bool, places: tuple[str, ...] = ("results", "results-below")) -> None:
    """Grey the results, in containers of these keys, if they belong to an earlier request."""
    chosen = ", ".join(f".st-key-{place}" for place in places)
    st.html(f"<style>{chosen} {{ opacity: {0.35 if earlier else 1}; }}</style>")


def facts(*lines: str, kind: str = "nest-facts") -> None:
    """Lines of plain text."""
    st.html(_lines(lines, kind))


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
    """Say what is refused in this block, and leave it."""
    try:
        yield
    except InputError as error:
        say(as_markdown(error))


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
            st.popover("Formula", type="tertiary").html(_formula(headline))


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
    format_key = f"figure-format-{key}"
    settle(format_key, OneOf(FORMATS))
    box = place.container()
    box.html(_head(picture))
    box.plotly_chart(
        picture.drawn(),
        key=f"plot-{key}",
        config=_plot_config(picture, st.session_state.get(format_key, FORMATS[0])),
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


def _plot_config(shown: Chart, kind: str) -> dict[str, Any]:
    """Return a camera alone, where the plot is pointed at."""
    return {
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {
            "format": kind.lower(),
            "filename": shown.file_name,
            "scale": PNG_SCALE if kind == "PNG" else 1,
        },
    }


def _lines(lines: tuple[str, ...] | list[str], kind: str) -> str:
    return "".join(f'<div class="{kind}">{html.escape(line)}</div>' for line in lines)


def _span(headline: Headline) -> str:
    title = f' title="{html.escape(headline.basis)}"' if headline.basis else ""
    return f'<div class="nest-span"{title}>{html.escape(headline.span)}</div>'


def _formula(headline: Headline) -> str:
    return _lines(headline.formula or (headline.note,), "nest-facts")


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
