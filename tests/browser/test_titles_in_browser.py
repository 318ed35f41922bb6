"""Back, Forward and reload in a browser: the screen shows what the address names, or mends it."""

from __future__ import annotations

import random
from urllib.parse import parse_qs, urlsplit

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.check]

OWN = "My fabric"
FIELD = """() => [...document.querySelectorAll('[data-testid=stSidebar] [role=combobox]')]
  .filter(field => field.getAttribute('aria-label') === 'Fabric')
  .map(field => field.value || field.innerText)[0]"""


def stands(window):
    """Wait until the page has a title and stays as it is."""
    page, seen = window.page, None
    for _ in range(60):
        window.stands(shown=".nest-scenario")
        now = page.url, page.locator(".nest-scenario").first.inner_text(), page.evaluate(FIELD)
        if now == seen:
            return now
        seen = now
    raise AssertionError("the page does not come to rest")


def agree(window):
    """Address, title and field name one fabric."""
    url, title, field = stands(window)
    asked = {key: values[-1] for key, values in parse_qs(urlsplit(url).query).items()}
    own = asked.get("own", "")
    assert (field == OWN) == ("drawn" in title), (url, title, field)
    assert (field == OWN) == bool(own and not own.startswith("aside.")), (url, title, field)
    assert asked.get("fabric", field) == field, (url, title, field)
    return title


def test_back_from_a_plan_to_a_drawing(watched):
    window = watched()
    page = window.page
    page.goto(f"{window.url}/design?fabric=h100-spine-leaf-64&tour=off")
    agree(window)
    page.get_by_role("button", name="Edit as my own drawing").click()
    page.get_by_text(", drawn").first.wait_for()
    agree(window)
    page.get_by_role("link", name="Plan", exact=True).click()
    window.stands("Rests on")
    assert "drawn" in agree(window)
    for _ in range(8):
        page.go_back()
        if agree(window).endswith(", drawn"):
            break
    else:
        raise AssertionError("no step back leads to the drawing")
    page.reload()
    assert agree(window).endswith(", drawn")
    page.go_forward()
    agree(window)


@pytest.mark.parametrize("seed", range(3))
def test_back_forward_and_reload_at_random(watched, seed):
    dice, window = random.Random(seed), watched()
    page = window.page
    page.goto(f"{window.url}/design?fabric=h100-spine-leaf-64&tour=off")
    agree(window)
    page.get_by_role("button", name="Edit as my own drawing").click()
    page.get_by_text(", drawn").first.wait_for()
    for _ in range(8):
        match dice.randrange(5):
            case 0 | 1:
                name = dice.choice(("Plan", "Design", "Explore"))
                page.get_by_role("link", name=name, exact=True).click()
            case 2:
                page.go_back()
            case 3:
                page.go_forward()
            case 4:
                page.reload()
        if not page.url.startswith(window.url):
            page.goto(f"{window.url}/design?tour=off")
        agree(window)
