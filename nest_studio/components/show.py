"""How pages show what the core returns: pictures, headlines, facts.

Places are made once per run and can be drawn again: what stood there stays visible until the
new content replaces it, so a page neither jumps nor goes blank while it redraws.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.explain.summary import Headline
from nest_core.report.figures import Picture
from nest_studio.form.fields import OneOf, one_of, settle

__all__ = [
    "HeadlineRow",
    "PicturePlace",
    "download",
    "facts",
    "local_time",
    "mark_results",
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
    """An ISO date in the visitor's time zone; what is none as it is."""
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


class HeadlineRow:
    """Headline figures side by side, each with its formula one click away.

    Parameters
    ----------
    headlines : tuple of Headline
    spans : bool
        Whether a line beneath every figure is kept for its interval.
    """

    def __init__(self, headlines: tuple[Headline, ...], *, spans: bool = False) -> None:
        self._shown = headlines
        self._spans = spans
        self._places: list[tuple[Any, Any, Any]] = []
        for column, headline in zip(st.columns(len(headlines)), headlines, strict=True):
            with column:
                value = st.metric(as_markdown(headline.name), as_markdown(headline.value))
                note = st.html(self._below(headline))
                formula = st.popover("Formula", type="tertiary").html(_formula(headline))
            self._places.append((value, note, formula))

    def update(self, headlines: tuple[Headline, ...]) -> None:
        """Draw those that changed again."""
        for place, before, now in zip(self._places, self._shown, headlines, strict=True):
            if now != before:
                place[0].metric(as_markdown(now.name), as_markdown(now.value))
                place[1].html(self._below(now))
                place[2].html(_formula(now))
        self._shown = headlines

    def _below(self, headline: Headline) -> str:
        note = _lines([headline.note], "nest-note")
        return _span(headline) + note if self._spans else note


class PicturePlace:
    """Where a picture stands: its finding above, below its reading help and ways to keep it.

    Parameters
    ----------
    key : str
        Tells the pictures of a page apart; the chart's key is ``plot-{key}``.
    place : container, optional
        Where on the page; without it where the page has come to.
    on_pick : callable (customdata), optional
        Called with what a clicked point carries as its ``customdata``, before the page runs again.
        A click beside the points, or on one that carries nothing, calls nobody.
    """

    def __init__(
        self, key: str, place: Any = st, on_pick: Callable[[Any], None] | None = None
    ) -> None:
        self._key = key
        self._on_pick = on_pick
        self._format = f"figure-format-{key}"
        self._place = place.container()
        self._parts: tuple[Any, Any, Any] | None = None
        self._shown: Picture | None = None
        self._draws = 0

    def draw(self, shown: Picture) -> None:
        """Draw a picture in place of what stood here."""
        # One run may draw several times, and a chart's key may occur once.
        again, self._shown = self._shown is not None, shown
        head, plot, foot = self._parts or (self._place,) * 3
        chart = f"plot-{self._key}{'-again' * self._draws}"
        self._draws += 1
        settle(self._format, OneOf(FORMATS))
        kind = st.session_state.get(self._format, FORMATS[0])
        head = head.html(_head(shown))
        plot = plot.plotly_chart(
            shown.drawn(),
            key=chart,
            config=_plot_config(shown, kind),
            alt=f"{shown.title}. {shown.subtitle}.",
            selection_mode="points",
            on_select=(lambda: self._pick(chart)) if self._on_pick else "ignore",
        )
        reading = _lines([shown.reading], "nest-reading")
        self._parts = head, plot, foot.html(reading) if again else self._foot(reading)

    def _data(self) -> str:
        """What stands here, as CSV."""
        return self._shown.to_csv() if self._shown else ""

    def _pick(self, chart: str) -> None:
        """Hand on what the clicked point carries."""
        match st.session_state.get(chart):
            case {"selection": {"points": [{"customdata": carried}, *_]}} if carried is not None:
                if self._on_pick is not None:
                    self._on_pick(carried)

    def _foot(self, reading: str) -> Any:
        """Words at the left, a quiet menu at the right; the words can be drawn again."""
        row = self._place.container(horizontal=True, gap="small", key=f"figure-foot-{self._key}")
        words = row.html(reading)
        with row.popover("Save", type="tertiary", key=f"figure-menu-{self._key}"):
            st.download_button(
                "Data (CSV)",
                self._data,
                f"{self._key}.csv",
                "text/csv",
                on_click="ignore",
                key=f"figure-csv-{self._key}",
                help="What the plot draws: one row per bar, point or cell.",
            )
            one_of(
                st,
                "Picture",
                FORMATS,
                FORMATS[0],
                self._format,
                help="What the camera saves that shows where the plot is pointed at.",
            )
        return words


def _plot_config(shown: Picture, kind: str) -> dict[str, Any]:
    """A camera alone, where the plot is pointed at."""
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
    told = f' title="{html.escape(headline.basis)}"' if headline.basis else ""
    return f'<div class="nest-span"{told}>{html.escape(headline.span)}</div>'


def _formula(headline: Headline) -> str:
    return _lines(headline.formula or (headline.note,), "nest-facts")


def _head(shown: Picture) -> str:
    legend = "".join(
        f'<span><i style="background: {colour}"></i>{html.escape(name)}</span>'
        for name, colour in shown.legend
    )
    return (
        f'<div class="nest-title">{html.escape(shown.title)}</div>'
        f'<div class="nest-subtitle">{html.escape(shown.subtitle)}</div>'
        + (f'<div class="nest-legend">{legend}</div>' if legend else "")
    )
