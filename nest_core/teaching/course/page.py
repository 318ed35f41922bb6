"""A lesson as one HTML file that runs by itself: no server, no network, no other file.

All states of its controls are computed here; the file holds them beside plotly.js and switches
between them. What several states share is held once, and all of it is packed. A content security
policy in the file keeps it from fetching anything, and words that name a network address are
refused.
"""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.report.documents import html_document
from nest_core.report.figures import Picture
from nest_core.teaching.course.page_script import SCRIPT
from nest_core.teaching.course.page_style import STYLE
from nest_core.teaching.drawings import lesson_drawing, lesson_pictures
from nest_core.teaching.lessons.lesson import (
    Brief,
    Control,
    Formula,
    Lesson,
    Question,
    Reveal,
    Value,
)

__all__ = ["MOST_BYTES", "Page", "lesson_page"]

MOST_BYTES = 1_000_000
"""Of a file, beside the plotting library."""
MOST_STATES = 1_000
DRAWING_PX = 1000

_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,9}://|<[^<>]*\b(?:src|srcset|href|action|data)\s*=|url\(|@import", re.I
)
_DIGITS = 6
_LIBRARY = "<!-- plotly.js -->"


@dataclass(frozen=True, slots=True)
class Page:
    """A lesson's file.

    Parameters
    ----------
    text : str
    states : int
        Of its controls.
    own_bytes : int
        Without the plotting library.
    """

    text: str
    states: int
    own_bytes: int


class _Kept:
    """Parts that are held once each."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.parts: list[Any] = []

    def place(self, part: Any) -> int:
        """Where a part is; the same one always there."""
        text = json.dumps(part, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self.parts)
            self.parts.append(part)
        return self._places[text]


def lesson_page(lesson: Lesson) -> Page:
    """The file of a lesson.

    Raises
    ------
    InputError
        If its controls have too many states, they take more than 1 MB, or its words name a
        network address.
    """
    from plotly.offline import get_plotlyjs  # 5 MB of text

    brief = lesson.brief()
    document = _document(lesson, brief.question)
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    packed = base64.b64encode(gzip.compress(data.encode(), mtime=0)).decode()
    body = (
        f'{_body(lesson, brief)}\n<script type="text/plain" id="lesson">{packed}</script>\n'
        f"{_LIBRARY}<script>{SCRIPT}</script>"
    )
    text = html_document(lesson.title, STYLE, body, scripts=True)
    own_text = len(text.replace(_LIBRARY, "").encode())
    _check(lesson, text + data, own_text)
    text = text.replace(_LIBRARY, f"<script>{get_plotlyjs()}</script>\n", 1)
    return Page(text, len(document["states"]), own_text)


def _check(lesson: Lesson, own: str, size: int) -> None:
    address = _ADDRESS.search(own)
    if address:
        at = max(address.start() - 10, 0)
        raise InputError(
            lesson.key,
            "must name no network address, for its file runs without one",
            own[at : address.end() + 20],
            "take it out of the words",
        )
    if size > MOST_BYTES:
        raise InputError(
            lesson.key,
            f"must come to at most {MOST_BYTES:,} bytes beside the plotting library",
            size,
            "list fewer values under [export] in its file",
        )


def _document(lesson: Lesson, question: Question) -> dict[str, Any]:
    parts, words = _Kept(), _Kept()
    controls = _narrowed(lesson)
    states = {}
    for values in _all_settings(lesson, controls):
        reveal = lesson.reveal(values)
        places = [parts.place(part) for part in _parts(reveal, parts)]
        name = ",".join(str(control.values.index(values[control.key])) for control in controls)
        states[name] = [places, words.place(_words(reveal))]
    return {
        "controls": [_control(control) for control in controls],
        "states": states,
        "kept": parts.parts,
        "words": words.parts,
        "question": {
            "right": question.right,
            "answer": question.answer,
            "unit": question.unit,
            "tolerance": question.tolerance,
            "verdicts": {choice.key: question.verdict(choice.key) for choice in question.choices},
        },
    }


def _narrowed(lesson: Lesson) -> tuple[Control, ...]:
    """The controls with the values that the file holds."""
    return tuple(
        replace(
            control,
            values=lesson.exported[control.key],
            names=tuple(control.name(value) for value in lesson.exported[control.key]),
        )
        if control.key in lesson.exported
        else control
        for control in lesson.controls
    )


def _all_settings(lesson: Lesson, shown: tuple[Control, ...]) -> list[dict[str, Value]]:
    """Every state; without those that other settings cut off."""
    count = math.prod(len(control.values) for control in shown)
    every = []
    for values in itertools.product(*(control.values for control in shown)):
        settings = dict(zip((control.key for control in shown), values, strict=True))
        if all(settings[control.key] in control.offered(settings) for control in lesson.controls):
            every.append(settings)
        if len(every) > MOST_STATES:
            raise InputError(
                lesson.key,
                f"must have at most {MOST_STATES:,} states of its controls",
                f"up to {count:,}",
                "list fewer values under [export] in its file",
            )
    return every


def _parts(reveal: Reveal, kept: _Kept) -> list[dict[str, Any]]:
    """A drawing, and pictures; a drawing's marks are kept one by one, as states share most."""
    drawn = lesson_drawing(reveal.content, DRAWING_PX, wall=False)
    pictures = [_picture(picture) for picture in lesson_pictures(reveal.content)]
    if drawn is None:
        return pictures
    words = {"title": drawn.title, "subtitle": drawn.subtitle, "reading": drawn.reading}
    marks = [kept.place(mark) for mark in re.split(r"(?<=>)(?=<)", drawn.svg)]
    return [words | {"legend": "", "marks": marks}, *pictures]


def _control(control: Control) -> dict[str, Any]:
    return {
        "label": control.label,
        "help": control.help,
        "names": [control.name(value) for value in control.values],
        "start": control.values.index(control.standard),
        "stepped": control.stepped,
    }


def _picture(picture: Picture) -> dict[str, Any]:
    plot = json.loads(picture.drawn().to_json())
    legend = "".join(
        f'<span><i style="background: {html.escape(colour)}"></i>{html.escape(label)}</span>'
        for label, colour in picture.legend
    )
    return {
        "title": picture.title,
        "subtitle": picture.subtitle,
        "reading": picture.reading,
        "legend": legend,
        "data": _short(plot["data"]),
        "layout": _short(plot["layout"]),
    }


def _short(value: Any) -> Any:
    """Numbers with as many digits as a plot can show."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(inner) for key, inner in value.items()}
    return [_short(inner) for inner in value] if isinstance(value, list) else value


def _words(reveal: Reveal) -> str:
    texts = "".join(f"<p>{html.escape(text)}</p>" for text in reveal.texts)
    formulas = "".join(map(_formula, reveal.formulas))
    tables = "".join(table.to_html() for table in reveal.tables)
    return f'{tables}{texts}<div class="formulas">{formulas}</div>'


def _formula(one: Formula) -> str:
    return (
        f"<div><b>{html.escape(one.name)}</b><code>{html.escape(one.symbols)}</code>"
        f"<code>{html.escape(one.numbers)}</code><small>{html.escape(one.source)}</small></div>"
    )


def _body(lesson: Lesson, brief: Brief) -> str:
    question, notes = brief.question, brief.notes
    choices = "".join(
        f'<label><input type="radio" name="guess" value="{html.escape(choice.key)}"> '
        f"{html.escape(choice.text)}</label>"
        for choice in question.choices
    )
    number = (
        f'<label>Your answer, {html.escape(question.unit)} <input type="number" name="guess" '
        f'min="0" max="{question.most:g}" step="any"></label><button type="submit">Answer</button>'
    )
    mistakes = "".join(
        f"<li><b>{html.escape(wrong)}</b>: {html.escape(why)}</li>" for wrong, why in notes.mistakes
    )
    discuss = "".join(f"<li>{html.escape(text)}</li>" for text in notes.discuss)
    aims = "".join(f"<li>{html.escape(aim)}</li>" for aim in lesson.aims)
    return (
        f"<main><header><h1>{html.escape(lesson.title)}</h1>"
        f"<p>{html.escape(lesson.lead)}</p></header>"
        f'<form id="ask"><h2>{html.escape(question.text)}</h2>{choices or number}'
        '<button type="button" id="show">Show me</button></form>'
        '<section id="reveal" hidden><p id="verdict" role="status"></p><div id="controls"></div>'
        '<div id="pictures"></div><div id="words"></div></section>'
        f"<details><summary>Teacher's notes: {notes.minutes} minutes</summary>"
        f"{f'<p>Aims</p><ul>{aims}</ul>' if aims else ''}"
        f"<p>Expected: {html.escape(notes.expected)}</p><p>Typical wrong answers</p>"
        f"<ul>{mistakes}</ul><p>Go on with</p><ul>{discuss}</ul></details></main>"
    )
