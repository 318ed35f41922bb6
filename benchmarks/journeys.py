"""Decisions as an architect would take them: clicks and seconds to a sheet that holds.

``python benchmarks/journeys.py [committee] [planes] [leaves] [--shots FOLDER]`` starts the studio
and Debian's Chromium and takes each decision by mouse and keyboard alone, from an empty session to
the downloaded decision sheet:

* ``committee``: 2:1 beside 1:1 and 4:1 for 1,024 H100, with the tokens of a run and a quotation.
* ``planes``: one plane beside two for 16,384 GB200, 64 of the 72 of each rack at work, with a
  quotation and $140 M for the network, of which one plane does not pay all devices.
* ``leaves``: 768 A100 as ``ibnetdiscover`` reads them (``--fabric FILE``), and without two of their
  leaves, which are taken away by mouse. Skipped where the file is not there.

Printed are the clicks, the keys and the seconds, searches and all, and then whether
``nest-studio compare SHEET --json`` reads the same title, the same designs and the same table out
of the downloaded file; where it does not, the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.app_latency import free_port, wait_for
from nest_studio.jobs.kernels import build_kernels

ROOT = Path(__file__).resolve().parents[1]
FABRIC = ROOT.parent / "shared" / "inputs" / "ib_768_a100.txt"
PATIENCE_MS = 900_000
TAKEN_UP_MS = 400
TAKEN_UP = """() => document.querySelector('[data-test-script-state=notRunning]')
  || document.querySelector('.stProgress')"""
AT_REST = """() => {
  const all = selector => [...document.querySelectorAll(selector)];
  const rests = all('[data-test-script-state=notRunning]').length
    && !all('[data-testid=stStatusWidget], .stProgress, [data-testid=stSkeleton]').length;
  window.restsSince = rests ? window.restsSince ?? performance.now() : undefined;
  return rests && performance.now() - window.restsSince > 700;
}"""


PLACE = """(root, name) => {
  // Groups that the canvas makes, of what is alike, have an invisible sign before their name.
  const shown = root.__cy.nodes().filter(node => node.id().replace("\\u2063", "") === name);
  if (shown.empty()) throw new Error(`${name} is not drawn`);
  return [shown.renderedPosition().x, shown.renderedPosition().y];
}"""


@dataclass
class Architect:
    """A person at a browser window, whose clicks and keys are counted.

    Parameters
    ----------
    page : Page
    name : str
        Of the journey.
    shots : Path
        Folder of screenshots.
    fabric : Path
        What ``ibnetdiscover`` printed.
    """

    page: Page
    name: str
    shots: Path
    fabric: Path
    clicks: int = 0
    keys: int = 0
    pictures: int = 0

    def rest(self, text: str = "") -> None:
        """Wait until nothing runs, with a text in sight."""
        if text:
            self.page.get_by_text(text).filter(visible=True).first.wait_for()
        self.page.wait_for_function(AT_REST, polling=100)
        self.page.evaluate("delete window.restsSince")
        if self.page.get_by_test_id("stException").count():
            sys.exit(f"{self.name}: the page failed")

    def click(self, target: Locator) -> None:
        """Click with the mouse."""
        target.click()
        self.clicks += 1

    def press(self, key: str) -> None:
        """Press a key."""
        self.page.keyboard.press(key)
        self.keys += 1

    def write(self, label: str, text: str) -> None:
        """Type over what a field of the rail has, and Enter."""
        rail = self.page.get_by_test_id("stSidebar")
        self.over(rail.get_by_label(label, exact=True).first, text)

    def over(self, field: Locator, text: str) -> None:
        """Type over what a field has, and Enter; what is planned meanwhile is not waited for."""
        self.click(field)
        self.press("Control+a")
        self.page.keyboard.type(text)
        self.keys += len(text)
        self.press("Enter")
        self.drawn()

    def choose(self, label: str, option: str) -> None:
        """Choose from a list by typing the beginning of what is wanted."""
        self.click(self.page.get_by_role("combobox", name=label, exact=True).first)
        self.page.keyboard.type(option)
        self.keys += len(option)
        self.click(self.page.get_by_role("option", name=option).first)
        self.drawn()

    def unfold(self, key: str) -> None:
        """Open a fold of the rail."""
        fold = self.page.locator(f".st-key-{key} details").first
        if fold.get_attribute("open") is None:
            self.click(fold.locator("summary").first)
            self.drawn()

    def drawn(self) -> None:
        """Wait until what was asked is taken up; searches may go on."""
        self.page.wait_for_timeout(TAKEN_UP_MS)
        self.page.wait_for_function(TAKEN_UP, polling=100)

    def button(self, label: str) -> None:
        """Press a button of the page."""
        self.click(self.page.get_by_role("button", name=label, exact=True).first)
        self.rest()

    def go(self, title: str, text: str) -> None:
        """Go to another page."""
        self.click(self.page.get_by_role("link", name=title, exact=True))
        self.page.wait_for_url(f"**/{title.lower() * (title != 'Plan')}*")
        self.rest(text)

    def point(self, name: str, *modifiers: str, times: int = 1) -> None:
        """Click an element ("e:leaf0") or a group ("g:leaf0") of the canvas, where it is drawn."""
        root = self.page.locator(".nd-root")
        root.scroll_into_view_if_needed()
        x, y = root.evaluate(PLACE, name)
        box = self.page.locator(".nd-stage").bounding_box()
        if box is None:
            sys.exit(f"{self.name}: there is no canvas")
        for modifier in modifiers:
            self.page.keyboard.down(modifier)
        self.page.mouse.click(box["x"] + x, box["y"] + y, click_count=times)
        for modifier in modifiers:
            self.page.keyboard.up(modifier)
        self.clicks += times
        self.keys += len(modifiers)

    def picture(self) -> None:
        """Keep what is seen."""
        self.pictures += 1
        path = self.shots / f"{self.name}_{self.pictures}.png"
        self.page.screenshot(path=path, full_page=True)

    def answer(self) -> None:
        """Wait until Compare's title is the last that it has."""
        head = self.page.locator("h1.nest-answer")
        head.wait_for()
        self.page.wait_for_function(
            "() => !document.querySelector('h1.nest-answer')?.innerText.startsWith('So far')",
            polling=200,
        )
        self.rest()

    def sheet(self) -> Path:
        """Download the decision sheet."""
        with self.page.expect_download() as download:
            self.click(self.page.get_by_role("button", name="Decision sheet"))
        path = self.shots / f"{self.name}.html"
        download.value.save_as(path)
        return path


def committee(person: Architect) -> None:
    """Defend 2:1 before a committee: with the tokens of the run and a quoted accelerator."""
    person.go("Compare", "Compared")
    person.write("Tokens of the training run", "15e12")
    person.write("Accelerator with server share, $", "37500")
    person.answer()
    person.picture()


def planes(person: Architect) -> None:
    """Take one plane or two for 16,384 GB200 where a network may cost $140 M."""
    person.go("Design", "Collective explorer")
    person.choose("Fabric", "gb200-nvl72-rails")
    for fold in ("fold-fabric-0", "fold-fabric-1"):
        person.unfold(fold)
    for label, text in (
        ("Switch tiers, number", "3"),
        ("Node size, devices", "64"),
        ("NICs per node, number", "64"),
        ("Rails, number", "16"),
        ("Size, devices", "16384"),
    ):
        person.write(label, text)
    person.rest("16,384")
    person.picture()
    person.go("Plan", "Rests on")
    person.unfold("fold-workload")
    person.choose("Model", "llama3.1-405b")
    proposed = person.page.locator(".st-key-proposed button")
    person.click(proposed)
    person.drawn()
    person.write("Global batch, sequences", "2048")
    person.rest("Rests on")
    person.picture()
    person.go("Compare", "Compared")
    for _ in ("2:1", "4:1"):
        person.click(
            person.page.locator(".st-key-compare-rows").get_by_role("button", name="×").last
        )
        person.drawn()
    person.choose(_adds(person), "dual-plane")
    names = person.page.locator(".st-key-compare-rows").get_by_role("textbox")
    for place, name in enumerate(("one plane", "two planes")):
        person.over(names.nth(place), name)
    person.write("Accelerator with server share, $", "55000")
    person.unfold("fold-find")
    person.choose("Equal budget", "network price")
    person.write("Budget, k$", "140000")
    person.answer()
    person.picture()


def _adds(person: Architect) -> str:
    """Return the label of the list that adds a topology of the same size."""
    field = person.page.locator(".st-key-compare-add-as input")
    field.wait_for(state="attached")
    return str(field.get_attribute("aria-label"))


def leaves(person: Architect) -> None:
    """Find out whether 768 A100 are worth keeping without the two leaves that failed."""
    page = person.page
    person.choose("Scenario preset", "gpt3-175b-512-a100")
    person.go("Design", "Collective explorer")
    person.click(page.get_by_role("button", name="Import a file"))
    page.get_by_test_id("stPopoverBody").locator("input[type=file]").set_input_files(person.fabric)
    page.get_by_text("As read: ibnetdiscover output").wait_for()
    person.press("Escape")
    person.rest("As read: ibnetdiscover output")
    person.picture()
    person.go("Plan", "Rests on")
    person.unfold("fold-fabric")
    if page.get_by_text("Changed: fabric My fabric").count() == 0:
        person.choose("Fabric", "My fabric")
    person.rest("Changed: fabric My fabric")
    person.picture()
    person.go("Design", "Collective explorer")
    person.rest()
    for leaf in ("leaf16", "leaf17"):
        person.point(f"g:{leaf}", times=2)  # which opens it
        page.wait_for_timeout(TAKEN_UP_MS)
    for place, leaf in enumerate(("leaf16", "leaf17")):
        person.point(f"e:{leaf}", *["Control"] * place)
    person.press("Delete")
    person.click(page.get_by_role("button", name="Take away the"))
    person.rest("As read: ibnetdiscover output")
    person.picture()
    person.click(page.get_by_role("button", name="Compare", exact=True))
    page.wait_for_url("**/compare*")
    person.answer()
    person.picture()


JOURNEYS: dict[str, Callable[[Architect], None]] = {
    "committee": committee,
    "planes": planes,
    "leaves": leaves,
}


class _Sheet(HTMLParser):
    """The title of a sheet and the rows of its first table of differences."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.rows: list[list[str]] = []
        self.inside: list[str] = []
        self.is_head = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("title", "td", "th"):
            self.inside.append(tag)
        self.is_head = self.is_head and tag != "svg"
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1] == "title":
            self.title += data if self.is_head else ""
        elif self.inside and self.rows:
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data}".strip()


def unsupported(sheet: Path) -> list[str]:
    """Return what a sheet says that the command does not compute from what the sheet holds."""
    parser = _Sheet()
    parser.feed(sheet.read_text())
    command = [sys.executable, "-m", "nest_studio", "compare", str(sheet), "--json"]
    done = subprocess.run(command, cwd=ROOT, env=_surroundings(), capture_output=True, text=True)
    if done.returncode:
        return [done.stderr]
    decision = json.loads(done.stdout)["decision"]
    wrong = []
    if parser.title != decision["title"]:
        wrong.append(f"title {parser.title!r}, computed {decision['title']!r}")
    rows = {row[0]: [_plain(cell) for cell in row[1:]] for row in reversed(parser.rows) if row}
    names = [entry["name"] for entry in decision["order"]]
    if names not in list(rows.values()):
        wrong.append(f"no table of {names}")
    for name, *cells in decision["table"]:
        if rows.get(name) != [_plain(cell) for cell in cells]:
            wrong.append(f"{name}: {rows.get(name)}, computed {cells}")
    return wrong


def _plain(text: str) -> str:
    return " ".join(text.split())


def _surroundings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def _studio() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = [sys.executable, "-m", "nest_studio", "app", "--headless", "--port", str(port)]
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=_surroundings(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(f"http://localhost:{port}/_stcore/health", PATIENCE_MS / 1000)
            yield f"http://localhost:{port}"
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Take the decisions and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("journeys", nargs="*", default=list(JOURNEYS))
    parser.add_argument("--fabric", type=Path, default=FABRIC)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--shots", type=Path, default=ROOT / "build" / "journeys")
    arguments = parser.parse_args()
    arguments.shots.mkdir(parents=True, exist_ok=True)
    build_kernels()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed (apt-get install chromium)")
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in arguments.journeys:
            if name == "leaves" and not arguments.fabric.exists():
                print(f"leaves: skipped, for there is no {arguments.fabric}: name one by --fabric")
                continue
            with _studio() as url:
                context = browser.new_context(
                    viewport={"width": 1440, "height": 900},
                    reduced_motion="reduce",
                    color_scheme="dark" if arguments.dark else "light",
                )
                context.set_default_timeout(PATIENCE_MS)
                person = Architect(context.new_page(), name, arguments.shots, arguments.fabric)
                began = time.monotonic()
                person.page.goto(url)
                person.rest("Rests on")
                if person.page.get_by_role("button", name="Skip", exact=True).count():
                    person.button("Skip")
                JOURNEYS[name](person)
                sheet = person.sheet()
                seconds = time.monotonic() - began
                context.close()
            problems = unsupported(sheet)
            wrong += len(problems)
            held = "; ".join(problems) or "all that the sheet says is computed again to the digit"
            print(
                f"{name}: {person.clicks} clicks, {person.keys} keys, {seconds:.0f} s; {held}",
                flush=True,
            )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
