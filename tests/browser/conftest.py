"""Pages that are watched: what they say on the console and whom they ask."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

PICTURE = ".nest-fabric .main > svg"
"""The fabric on Plan and Design."""
HEADLINES = 5
"""Figures of cards, or of headlines."""
FIGURES = ".nest-big, [data-testid=stMetricValue]"
AT_REST = """figures => {
  const all = selector => [...document.querySelectorAll(selector)];
  const rests = all('[data-test-script-state=notRunning]').length
    && !all('[data-testid=stStatusWidget], .stProgress, [data-testid=stSkeleton]').length
    && !all(figures).some(figure => figure.innerText.includes('…'));
  window.restsSince = rests ? window.restsSince ?? performance.now() : undefined;
  return rests && performance.now() - window.restsSince > 500;
}"""
"""Whether nothing runs or is awaited, and that for half a second.

Before, a click may be lost, and what the run before left may stand beside what replaces it.
"""
PATIENCE_MS = 90_000
READ = "one => (one.matches('.nest-big') ? one.firstChild.textContent : one.innerText).trim()"


@dataclass
class Watched:
    """The studio in a browser window."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def open(self, address: str = "") -> None:
        """Open the plan page and wait until everything is drawn."""
        self.page.goto(f"{self.url}/{address}")
        self.settle()

    def settle(self) -> None:
        """Wait until the fabric and its figures stand."""
        self.page.locator(FIGURES).first.wait_for(state="attached")
        self.stands(shown=PICTURE)

    def go(self, address: str, text: str = "", *, shown: str = "", count: int = 1) -> None:
        """Open an address and wait until it stands."""
        self.page.goto(f"{self.url}/{address}")
        self.stands(text, shown=shown, count=count)

    def stands(self, text: str = "", *, shown: str = "", count: int = 1) -> None:
        """Wait until the page is at rest with a text in sight and so many of a selector."""
        if text:
            seen = self.page.get_by_text(text).filter(visible=True).first
            seen.wait_for()
        if shown:
            self.page.locator(shown).nth(count - 1).wait_for()
        self.page.wait_for_function(AT_REST, arg=FIGURES, polling=50)
        self.page.evaluate("delete window.restsSince")
        assert not self.page.get_by_test_id("stException").count()

    def press(self, *keys: str) -> None:
        """Press keys of the page, once it listens to the first."""
        self.page.locator(f"html[data-keys~={keys[0]}]").wait_for(state="attached")
        for key in keys:
            self.page.keyboard.press(key)

    def values(self) -> list[str]:
        """The headline figures."""
        shown: list[str] = self.page.locator(FIGURES).evaluate_all(f"all => all.map({READ})")
        return shown[:HEADLINES]

    def unfold(self, group: str) -> None:
        """Open a group of the form."""
        self.page.locator(f".st-key-fold-{group} summary").first.click()

    def shows_one(self, index: int, value: str) -> None:
        """Wait until one of the headline figures is this."""
        self.page.wait_for_function(
            f"""([index, value, figures]) => {{
              const shown = document.querySelectorAll(figures)[index];
              return shown && ({READ})(shown) === value;
            }}""",
            arg=[index, value, FIGURES],
        )

    def shows(self, values: list[str]) -> None:
        """Wait until these are the headline figures: a busy server may only begin to draw."""
        from playwright.sync_api import TimeoutError as NotInTime

        with contextlib.suppress(NotInTime):
            self.page.wait_for_function(
                f"""([values, count, figures]) => values.join("|") === [
                  ...document.querySelectorAll(figures)
                ].slice(0, count).map({READ}).join("|")""",
                arg=[values[:HEADLINES], HEADLINES, FIGURES],
            )
        assert self.values() == values[:HEADLINES]


def _seeks_server(message: ConsoleMessage) -> bool:
    """Whether the front end asked at its page's address first, which has no server below it."""
    path = urlsplit(message.location["url"]).path
    sought = re.fullmatch(r".*/\w+/_stcore/(health|host-config)", path)
    return "404" in message.text and sought is not None


@pytest.fixture
def watched(browser: Browser, studio_server: str) -> Iterator[object]:
    """``watched(width, scheme)``: a window on the studio in which nothing may go wrong."""
    windows: list[Watched] = []

    def window(width: int = 1280, scheme: str = "light") -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        opened = Watched(context.new_page(), studio_server)
        context.set_default_timeout(PATIENCE_MS)
        windows.append(opened)
        opened.page.on(
            "console",
            lambda message: (
                opened.complaints.append(message.text)
                if message.type in ("error", "warning") and not _seeks_server(message)
                else None
            ),
        )
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on(
            "request",
            lambda request: (
                None
                if urlsplit(request.url).hostname in (None, "localhost")
                else opened.foreign.append(request.url)
            ),
        )
        return opened

    yield window
    for opened in windows:
        refused = opened.page.locator(".st-key-refused .stAlert").all_inner_texts()
        opened.page.context.close()
        assert not refused, "a link of the studio's own"
        assert not opened.complaints
        assert not opened.foreign
