"""A lesson as one HTML file that runs by itself: no server, no network, no other file.

All states of its controls are computed here; the file holds them beside plotly.js and switches
between them. What several states share is held once, and all of it is packed. A content security
policy in the file keeps it from fetching anything, and words that name a network address are
refused.
"""

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

from nest_core.documents.errors import InputError, require
from nest_core.report.documents import html_document
from nest_core.report.figures import Chart
from nest_core.teaching.drawings import lesson_drawing, lesson_pictures
from nest_core.teaching.lessons.lesson import Brief, Control, Lesson, Question, Reveal, Value

__all__ = ["MOST_BYTES", "SCRIPT", "STYLE", "Page", "lesson_page"]

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


Parts = dict[str, int]
"""Parts that are held once, as JSON, and their places."""


def _place(parts: Parts, part: Any) -> int:
    """Return where a part is held; the same one always there."""
    return parts.setdefault(json.dumps(part, sort_keys=True), len(parts))


def lesson_page(lesson: Lesson) -> Page:
    """Return the file of a lesson.

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


def _check(lesson: Lesson, text: str, size: int) -> None:
    address = _ADDRESS.search(text)
    if address:
        raise InputError(
            lesson.key,
            "must name no network address, for its file runs without one",
            text[max(address.start() - 10, 0) : address.end() + 20],
            "take it out of the words",
        )
    require(
        size <= MOST_BYTES,
        lesson.key,
        f"must come to at most {MOST_BYTES:,} bytes beside the plotting library",
        size,
        "list fewer values under [export] in its file",
    )


def _document(lesson: Lesson, question: Question) -> dict[str, Any]:
    parts, words = Parts(), Parts()
    controls = tuple(
        replace(
            control,
            values=lesson.exported[control.key],
            names=tuple(control.name(value) for value in lesson.exported[control.key]),
        )
        if control.key in lesson.exported
        else control
        for control in lesson.controls
    )
    states = {}
    for values in _all_settings(lesson, controls):
        reveal = lesson.reveal(values)
        places = [_place(parts, part) for part in _parts(reveal, parts)]
        name = ",".join(str(control.values.index(values[control.key])) for control in controls)
        states[name] = [places, _place(words, _words(reveal))]
    return {
        "controls": [_control(control) for control in controls],
        "states": states,
        "kept": list(map(json.loads, parts)),
        "words": list(map(json.loads, words)),
        "question": {
            "right": question.right,
            "answer": question.answer,
            "unit": question.unit,
            "tolerance": question.tolerance,
            "verdicts": {key: question.verdict(key) for key in question.choices},
        },
    }


def _all_settings(lesson: Lesson, narrowed: tuple[Control, ...]) -> list[dict[str, Value]]:
    """Every state; without those that other settings cut off."""
    count = math.prod(len(control.values) for control in narrowed)
    every = []
    for values in itertools.product(*(control.values for control in narrowed)):
        settings = dict(zip((control.key for control in narrowed), values, strict=True))
        if all(settings[control.key] in control.offered(settings) for control in lesson.controls):
            every.append(settings)
        require(
            len(every) <= MOST_STATES,
            lesson.key,
            f"must have at most {MOST_STATES:,} states of its controls",
            f"up to {count:,}",
            "list fewer values under [export] in its file",
        )
    return every


def _parts(reveal: Reveal, parts: Parts) -> list[dict[str, Any]]:
    """Return a drawing, its marks held one by one as states share most, and pictures."""
    drawn = lesson_drawing(reveal.content, DRAWING_PX, wall=False)
    pictures = [_picture(picture) for picture in lesson_pictures(reveal.content)]
    if drawn is None:
        return pictures
    words = {"title": drawn.title, "subtitle": drawn.subtitle, "reading": drawn.reading}
    marks = [_place(parts, mark) for mark in re.split(r"(?<=>)(?=<)", drawn.svg)]
    return [words | {"legend": "", "marks": marks}, *pictures]


def _control(control: Control) -> dict[str, Any]:
    return {
        "label": control.label,
        "help": control.help,
        "names": [control.name(value) for value in control.values],
        "start": control.values.index(control.standard),
        "stepped": control.stepped,
    }


def _picture(picture: Chart) -> dict[str, Any]:
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
    formulas = "".join(
        f"<div><b>{html.escape(formula.name)}</b><code>{html.escape(formula.symbols)}</code>"
        f"<code>{html.escape(formula.numbers)}</code>"
        f"<small>{html.escape(formula.source)}</small></div>"
        for formula in reveal.formulas
    )
    tables = "".join(table.to_html() for table in reveal.tables)
    return f'{tables}{texts}<div class="formulas">{formulas}</div>'


def _body(lesson: Lesson, brief: Brief) -> str:
    question, notes = brief.question, brief.notes
    choices = "".join(
        f'<label><input type="radio" name="guess" value="{html.escape(key)}"> '
        f"{html.escape(text)}</label>"
        for key, text in question.choices.items()
    )
    number = (
        f'<label>Your answer, {html.escape(question.unit)} <input type="number" name="guess" '
        f'min="0" max="{question.most:g}" step="any"></label><button type="submit">Answer</button>'
    )
    mistakes = "".join(
        f"<li><b>{html.escape(mistake.answer)}</b>: {html.escape(mistake.overlooks)}</li>"
        for mistake in notes.mistakes
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
        f"<details><summary>Teacher's notes: {lesson.minutes} minutes</summary>"
        f"{f'<p>Aims</p><ul>{aims}</ul>' if aims else ''}"
        f"<p>Expected: {html.escape(notes.expected)}</p><p>Typical wrong answers</p>"
        f"<ul>{mistakes}</ul><p>Go on with</p><ul>{discuss}</ul></details></main>"
    )


STYLE = """
html { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
body { margin: 0; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.15rem; line-height: 1.4; margin: 0 0 0.6rem; }
h3 { font-size: 1rem; line-height: 1.3; margin: 0.8rem 0 0; }
p { margin: 0 0 0.6rem; max-width: 62rem; }
form { border: 1px solid var(--line); border-radius: 0.4rem; padding: 1rem; margin: 1rem 0; }
form label { display: block; margin: 0.2rem 0; }
button, input, select { font: inherit; }
button { margin: 0.5rem 0.5rem 0 0; padding: 0.15rem 0.8rem; border: 1px solid var(--line);
  border-radius: 0.3rem; background: none; color: inherit; cursor: pointer; }
button:hover { border-color: var(--accent); }
#verdict { border-left: 0.25rem solid var(--accent); padding-left: 0.7rem; font-weight: 600; }
#controls { display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; margin: 0.8rem 0; }
fieldset { border: 0; padding: 0; margin: 0; min-width: 0; }
legend { color: var(--ink3); font-size: 0.85rem; padding: 0; }
fieldset label { margin-right: 0.8rem; white-space: nowrap; }
fieldset output { display: inline-block; min-width: 3rem; padding-left: 0.5rem; }
figure { margin: 0 0 1.2rem; }
figcaption, small { display: block; }
.formulas { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr));
  gap: 0.6rem 1.6rem; }
.formulas div { border-top: 1px solid var(--line); padding-top: 0.35rem; }
.formulas b, .formulas code { display: block; font-size: 0.9rem; }
details { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: 0.6rem; }
@media print { form, #controls { display: none; } }
"""


SCRIPT = """
const at = (id) => document.getElementById(id);
const made = (tag, looks) => Object.assign(document.createElement(tag), looks);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(whole).text());
}

function run(lesson) {
  const setting = lesson.controls.map((control) => control.start);
  const follow = [];
  const ink = matchMedia('(prefers-color-scheme: dark)');

  function draw() {
    // Other settings may end a control's steps earlier.
    const walked = lesson.controls.findIndex((control) => control.stepped);
    while (!lesson.states[setting.join(',')] && setting[walked] > 0) setting[walked] -= 1;
    follow.forEach((say) => say());
    const [places, words] = lesson.states[setting.join(',')];
    at('words').innerHTML = lesson.words[words];
    while (at('pictures').children.length > places.length) at('pictures').lastChild.remove();
    places.forEach((number, index) => {
      const picture = lesson.kept[number];
      let figure = at('pictures').children[index];
      if (!figure) {
        figure = made('figure', {});
        figure.append(
          made('h3', {}), made('div', {className: 'nest-subtitle'}),
          made('div', {className: 'nest-legend'}),
          made('div', {className: 'plot'}), made('figcaption', {}));
        at('pictures').append(figure);
      }
      const [title, subtitle, key, plot, reading] = figure.children;
      title.textContent = picture.title;
      subtitle.textContent = picture.subtitle;
      key.innerHTML = picture.legend;
      reading.textContent = picture.reading;
      plot.setAttribute('role', 'img');
      plot.setAttribute('aria-label', picture.title);
      if (picture.marks) {
        plot.innerHTML = picture.marks.map((mark) => lesson.kept[mark]).join('');
        return;
      }
      const layout = JSON.parse(JSON.stringify(picture.layout));
      layout.paper_bgcolor = layout.plot_bgcolor = 'rgba(0, 0, 0, 0)';
      layout.font = Object.assign(
        {color: ink.matches ? '#e6e9ec' : '#1b1f24', family: 'system-ui, Arial, sans-serif'},
        layout.font);
      Plotly.react(plot, JSON.parse(JSON.stringify(picture.data)), layout,
        {displayModeBar: false, responsive: true});
    });
  }

  function reveal(verdict) {
    at('verdict').textContent = verdict;
    at('reveal').hidden = false;
    draw();
  }

  function judged(said) {
    const {right, answer, unit, tolerance, verdicts} = lesson.question;
    if (verdicts[said]) return verdicts[said];
    const close = Math.abs(said - right) <= tolerance * Math.abs(right);
    return close ? `Right. ${answer}` : `You said: ${+said} ${unit}. Computed: ${answer}`;
  }

  function range(control, index) {
    const shown = made('output', {textContent: control.names[control.start]});
    const input = made('input', {
      type: 'range', min: 0, max: control.names.length - 1, value: control.start, step: 1,
      ariaLabel: control.label});
    follow.push(() => {
      input.value = setting[index];
      shown.textContent = control.names[setting[index]];
      input.setAttribute('aria-valuetext', shown.textContent);
    });
    const move = () => { setting[index] = +input.value; draw(); };
    input.addEventListener('input', move);
    const step = (label, by) => {
      const button = made('button', {type: 'button', textContent: label});
      button.addEventListener('click', () => { input.value = +input.value + by; move(); });
      return button;
    };
    return control.stepped ? [step('Back', -1), step('Forward', 1), input, shown] : [input, shown];
  }

  function choices(control, index) {
    return control.names.map((name, value) => {
      const label = made('label', {});
      const input = made('input', {
        type: 'radio', name: `control-${index}`, checked: value === control.start});
      input.addEventListener('change', () => { setting[index] = value; draw(); });
      label.append(input, ` ${name}`);
      return label;
    });
  }

  lesson.controls.forEach((control, index) => {
    const box = made('fieldset', {title: control.help});
    const many = control.stepped || control.names.length > 6;
    box.append(made('legend', {textContent: control.label}),
      ...(many ? range : choices)(control, index));
    at('controls').append(box);
  });
  at('ask').addEventListener('change', (event) => {
    if (event.target.type === 'radio') reveal(judged(event.target.value));
  });
  at('ask').addEventListener('submit', (event) => {
    event.preventDefault();
    const said = new FormData(at('ask')).get('guess');
    if (said) reveal(judged(said));
  });
  at('show').addEventListener('click', () => reveal(`Answer: ${lesson.question.answer}`));
  ink.addEventListener('change', () => { if (!at('reveal').hidden) draw(); });
}

unpacked(at('lesson').textContent).then(run);
"""
