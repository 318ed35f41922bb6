"""A browser on pages full of pictures that strangers named asks nobody but the studio.

`watched` fails on any request to another host, and on any that the browser was kept from making.
"""

from __future__ import annotations

import json
import secrets
from urllib.parse import quote

import pytest

from nest_core.report.notebook import new_notebook, pin_cells
from nest_studio.session.store import Database, Notebooks, StoredLinks, database_url

pytestmark = pytest.mark.browser

SMALL = "llama2-7b-64-h100"
ELSEWHERE = "elsewhere.example"
PICTURE = f"![a](https://{ELSEWHERE}/a)"
STYLED = f"<span style='background:url(//{ELSEWHERE}/b);cursor:url(//{ELSEWHERE}/c),auto'>b</span>"
FEW = {"search.pp": 1, "search.zero": 1, "search.recompute": "none", "search.schedule": "1f1b"}
LEVELS = {
    "schema": 1, "name": f"{PICTURE} {STYLED}", "kind": "hierarchical", "source": PICTURE,
    "level": [
        {"name": f"{PICTURE} node", "group_size": 8, "uplink_per": "device",
         "bandwidth_GBps": 450.0, "latency_us": 0.5},
        {"name": f"{STYLED} {PICTURE}", "group_size": 8, "uplink_per": "device",
         "bandwidth_GBps": 50.0, "latency_us": 2.0, "oversubscription": 2.0},
    ],
}  # fmt: skip
FETCHES = f"""() => [...document.querySelectorAll('*')].filter(one =>
  [...one.attributes].some(held => !['href', 'title', 'value', 'aria-label', 'alt',
    'placeholder', 'data-unformatted', 'aria-description'].includes(held.name)
    && held.value.includes('{ELSEWHERE}'))).map(one => one.outerHTML.slice(0, 300))"""


def test_nobody_else_is_asked(watched):
    window = watched()
    page = window.page
    key = StoredLinks(Database(database_url())).put({"document": LEVELS, "notes": []})
    store = Notebooks(Database(database_url()))
    note = f"{PICTURE}\n\n{STYLED}\n\n[![c][r]](https://{ELSEWHERE})\n\n[r]: //{ELSEWHERE}/r\n"
    # A run that failed has left its notebook in the store.
    name = f"{secrets.token_hex(4)} {PICTURE} <img src=//{ELSEWHERE}/n>"
    store.save(name, new_notebook(pin_cells("note", f"{PICTURE} {STYLED}", note, {})))

    window.open(f"?scenario={SMALL}&own={key}&fabric=My+fabric&search.tp=1&tour=off")
    page.get_by_text(PICTURE).filter(visible=True).first.wait_for()
    labels = page.locator(".nest-fabric text", has_text=ELSEWHERE)
    labels.first.wait_for()
    labels.first.hover(force=True)  # a pointer's picture is fetched where it points
    assert not page.evaluate(FETCHES)

    entries = [[PICTURE, SMALL, FEW], [STYLED, SMALL, FEW], ["c", SMALL, {PICTURE: PICTURE}]]
    page.goto(f"{window.url}/compare?compare.failures=false&compare={quote(json.dumps(entries))}")
    page.get_by_text("is left out").wait_for()
    compared = page.get_by_test_id("stMain").get_by_text(ELSEWHERE).filter(visible=True)
    compared.first.wait_for()
    assert not page.evaluate(FETCHES)

    page.goto(f"{window.url}/notebook?notebook={quote(name)}")
    page.locator(".nest-notes").wait_for()
    page.get_by_role("radio", name=ELSEWHERE).first.wait_for(state="attached")
    assert not page.locator(".nest-notes img").count()
    assert not page.evaluate(FETCHES)


def test_the_front_ends_own_csv_is_not_offered(watched):
    """It would leave formulae in names as they are."""
    window = watched()
    window.open(f"?scenario={SMALL}&tab=Stages&tour=off")
    page = window.page
    frame = page.get_by_test_id("stDataFrame").first
    frame.hover()
    toolbar = page.get_by_test_id("stElementToolbar").first
    toolbar.get_by_role("button", name="Search").wait_for()
    assert not toolbar.get_by_role("button", name="Download as CSV").is_visible()
