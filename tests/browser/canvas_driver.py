"""The drawing canvas of any page, driven by mouse as a person would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Canvas:
    """A page with the canvas, and what went wrong on it."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    @property
    def root(self) -> Any:
        return self.page.locator(".nd-root")

    def data(self, name: str) -> str:
        return str(self.root.get_attribute(f"data-{name}"))

    def wait(self, **expected: object) -> None:
        """Until the root says so."""
        marks = "".join(f'[data-{name}="{value}"]' for name, value in expected.items())
        self.page.locator(f".nd-root{marks}").wait_for()

    def after(self, revision: str) -> None:
        """Until Python has answered something newer."""
        self.page.locator(f'.nd-root[data-revision]:not([data-revision="{revision}"])').wait_for()

    def ask(self, script: str, argument: object = None) -> Any:
        """Evaluate with the root as ``root`` and cytoscape as ``cy``."""
        wrapped = f"(root, argument) => {{ const cy = root.__cy; return ({script}); }}"
        return self.root.evaluate(wrapped, argument)

    def ids(self, selector: str = "node") -> list[str]:
        return self.ask("cy.$(argument).map(shown => shown.id()).sort()", selector)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """A place on the stage as a place on the page."""
        box = self.page.locator(".nd-stage").bounding_box()
        return box["x"] + x, box["y"] + y

    def place_of(self, key: str) -> tuple[float, float]:
        where = self.ask(
            "(s => s.isEdge() ? s.renderedMidpoint() : s.renderedPosition())"
            "(cy.getElementById(argument))",
            key,
        )
        return self.at(where["x"], where["y"])

    def tool(self, name: str) -> None:
        self.page.get_by_role("toolbar", name="Tools").get_by_role("button", name=name).click()

    def put(self, tool: str, x: float, y: float) -> None:
        before = self.data("revision")
        self.tool(tool)
        self.page.mouse.click(*self.at(x, y))
        self.after(before)
        self.tool("Select")

    def click(self, key: str, *modifiers: str) -> None:
        for modifier in modifiers:
            self.page.keyboard.down(modifier)
        self.page.mouse.click(*self.place_of(key))
        for modifier in modifiers:
            self.page.keyboard.up(modifier)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
        mouse.move(*end, steps=4)
        mouse.up()

    def link(self, start: str, end: str) -> None:
        """By the handle above the first."""
        before = self.data("revision")
        self.page.mouse.move(*self.place_of(start))
        handle = self.page.locator(".nd-handle")
        handle.wait_for()
        box = handle.bounding_box()
        self.drag((box["x"] + 7, box["y"] + 7), self.place_of(end))
        self.after(before)

    def field(self, label: str) -> Any:
        return self.page.locator(".nd-inspector").get_by_label(label, exact=True)

    def fill(self, label: str, value: str) -> None:
        self.field(label).fill(value)
        self.field(label).press("Enter")

    def says(self, text: str) -> None:
        self.page.locator(".nd-said", has_text=text).wait_for()
