"""Pages that are watched: what they say on the console and whom they ask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURE = ".nest-fabric .main > svg"
"""The fabric on Plan and Design."""
HEADLINES = 5
"""Figures of cards, or of headlines."""
FIGURES = ".nest-big, [data-testid=stMetricValue]"
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
        """Wait until the figures stand, and have stood for half a second."""
        self.page.locator(PICTURE).wait_for(timeout=60_000)
        self.page.wait_for_function(
            """figures => {
              const all = selector => [...document.querySelectorAll(selector)];
              const values = all(figures);
              const drawn = values.length && values.every(value => !value.innerText.includes('…'))
                && !all('[data-testid=stStatusWidget], .stProgress').length
                && all('[data-test-script-state=notRunning]').length;
              window.drawnSince = drawn ? window.drawnSince ?? performance.now() : undefined;
              return drawn && performance.now() - window.drawnSince > 500;
            }""",
            arg=FIGURES,
            polling=50,
            timeout=60_000,
        )
        self.page.evaluate("delete window.drawnSince")

    def values(self) -> list[str]:
        """The headline figures."""
        shown: list[str] = self.page.locator(FIGURES).evaluate_all(f"all => all.map({READ})")
        return shown[:HEADLINES]

    def unfold(self, group: str) -> None:
        """Open a group of the form."""
        self.page.locator(f".st-key-fold-{group} summary").click()

    def shows_one(self, index: int, value: str) -> None:
        """Wait until one of the headline figures is this."""
        self.page.wait_for_function(
            f"""([index, value, figures]) => {{
              const shown = document.querySelectorAll(figures)[index];
              return shown && ({READ})(shown) === value;
            }}""",
            arg=[index, value, FIGURES],
            timeout=20_000,
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
                timeout=20_000,
            )
        assert self.values() == values[:HEADLINES]


@pytest.fixture
def watched(browser: Browser, studio_server: str) -> Iterator[object]:
    """``watched(width, scheme)``: a window on the studio in which nothing may go wrong."""
    windows: list[Watched] = []

    def window(width: int = 1280, scheme: str = "light") -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        opened = Watched(context.new_page(), studio_server)
        windows.append(opened)
        opened.page.on(
            "console",
            lambda message: (
                opened.complaints.append(message.text)
                if message.type in ("error", "warning")
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
