"""Words of lessons: numbers are computed, and what they name is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from nest_core.teaching.course.exercise import draw
from nest_core.teaching.lessons import LESSONS
from nest_core.teaching.lessons.walk import _PASS_TEXTS, _TEXTS
from nest_studio.server.rail import page_names

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"\{[^{}]*\}")
NUMBER = re.compile(
    r"\d|\b(twice|thrice|half|halves|a third|thirds|quarters?|eighth|tenth|doubled?|\w+fold|two|"
    r"three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand)\b",
    re.IGNORECASE,
)
NAMES = re.compile(
    r"1F1B|H100|bf16|fp16|7B model|Figure 5|Appendix B\.2|ZeRO [0-3]|ep 1|1 MB = 1e6 bytes|"
    r"[Ss]tages? [1-3]( (and|to) [1-3])?|[Ll]ayers? [1-4]( (and|to) [1-4])?|Tree \(double binary\)|"
    r"[Ww]hich of the two schedules|Double the devices|two trees|half of the time is collectives|"
    r"manual run as 1|counted from 1"
)
"""Names, years, ordinals of what a text has just introduced, units, and one hypothesis."""
FORMULA = re.compile(
    r"(?<=[-+] )1\b|\b2(?= [×·(x])|(?<=/ )2\b|\(n - 1\) / n against 2 buffers|2 \(n - 1\) / n|"
    r"\b2 \(\{\} · "
)
"""Constants of formulas that stand in symbols, or beside them."""


def _words(value, where=""):
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _words(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _words(inner, f"{where}[{number}]")


def _texts(key):
    """All that people read of a lesson's file; what is no sentence left out."""
    file = tomllib.loads((ROOT / "presets" / "lessons" / f"{key}.toml").read_text("utf-8"))
    for name in ("figure", "schema", "export", "minutes"):
        file.pop(name, None)
    for part in ("question", "exercise"):
        file[part].pop("given", None)
    for name in ("mistakes", "answer"):
        file["exercise"].pop(name)  # names of numbers
    for formula in file.get("formula", ()):
        formula.pop("symbols")  # is symbols and constants alone
        formula.pop("source")  # names and years
    return list(_words(file))


@pytest.mark.parametrize("shown", LESSONS, ids=lambda one: one.key)
def test_every_number_in_a_lesson_is_computed(shown):
    for where, text in _texts(shown.key):
        plain = FORMULA.sub("", NAMES.sub("", PLACE.sub("{}", text)))
        assert not NUMBER.search(plain), f"{where}: {text}"


@pytest.mark.parametrize("text", [*_TEXTS.values(), *_PASS_TEXTS.values()])
def test_every_number_below_a_walk_is_computed(text):
    assert not NUMBER.search(NAMES.sub("", PLACE.sub("{}", text)))


def _names_of(shown):
    """What quoted names may be: controls of the lesson, and headings of pages."""
    labels = {control.label for control in shown.controls}
    headings = {
        found
        for path in (ROOT / "nest_studio").rglob("*.py")
        for found in re.findall(r'subheader\(\s*"([^"]+)"', path.read_text("utf-8"))
    }
    return labels | headings


@pytest.mark.parametrize("shown", LESSONS, ids=lambda one: one.key)
def test_every_page_lesson_and_control_that_a_lesson_names_is_there(shown):
    pages = {title for _, title in page_names()}
    lessons = {one.short for one in LESSONS}
    question, notes = shown.brief().question, shown.brief().notes
    reveal = shown.reveal({})
    computed = [
        shown.lead,
        question.text,
        question.answer,
        *question.choices.values(),
        notes.expected,
        *notes.discuss,
        *(mistake.overlooks for mistake in notes.mistakes),
        *reveal.texts,
        *(sheet.text + sheet.solution for sheet in draw(shown, 1, 3)),
    ]
    for text in [*computed, *(words for _, words in _texts(shown.key))]:
        assert not re.search(r"\bslider|\bcheckbox|\bdrop-?down|\btick\b|\bmenu\b", text), text
        pattern = r"\b([A-Z]\w+) page\b|\bpage ([A-Z]\w+)"
        named = re.findall(pattern, text.replace("The page", "page"))
        assert {first or second for first, second in named} <= pages, text
        assert set(re.findall(r"\b[Ll]essons? ([A-Z0-9][\w'-]*)", text)) <= lessons, text
        assert set(re.findall(r'"([^"]+)"', text)) <= _names_of(shown), text


def test_the_double_of_devices_moves_the_crossing_as_its_formula_says():
    """(2 (n - 1) - 2 log2 n) latency · n B / 2: 4.73 times for 32 devices in place of 16."""
    (collectives,) = (one for one in LESSONS if one.key == "collectives")
    (text,) = (words for words in collectives.brief().notes.discuss if words.startswith("Double"))
    at_16, at_32 = ((2 * (n - 1) - 2 * power) * n for n, power in ((16, 4), (32, 5)))
    assert f", {at_32 / at_16:.2g} times as far" in text


def test_what_the_pipeline_says_of_a_message_is_what_it_draws():
    (passes,) = (one for one in LESSONS if one.key == "passes")
    for nic, schedule in ((25, "1F1B"), (50, "1F1B"), (200, "interleaved")):
        reveal = passes.reveal({"nic": nic, "schedule": schedule, "step": 9})
        steps = reveal.content.steps
        drawn = 1e3 * (steps.received_s - steps.begins_s)
        said = re.findall(r"([\d.]+) (m|µ)s", reveal.texts[1])
        (hop,) = (float(number) * {"m": 1, "µ": 1e-3}[unit] for number, unit in said)
        assert hop == pytest.approx(64e6 / (nic * 1e6) + 5e-3, rel=0.01)
        assert drawn[drawn > 0].min() == pytest.approx(hop, rel=0.01)
    said = [re.findall(r"[\d.]+ ms", text)[2] for text in (passes.lead,)]
    assert said[0] in passes.reveal({}).texts[1]
