"""What a browser lets other pages do with the studio, and the studio with other hosts."""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.browser

PAGE = """<!DOCTYPE html><title>elsewhere</title>
<iframe src="STUDIO/?tour=off"></iframe>
<script>
  window.opened = new Promise(told => {
    const line = new WebSocket("STUDIO/_stcore/stream".replace("http", "ws"), ["streamlit"]);
    line.onopen = () => told("open");
    line.onerror = () => told("refused");
  });
  window.read = fetch("STUDIO/_stcore/host-config").then(() => "read", () => "refused");
</script>
"""


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another origin, which notes what it is asked for."""

    def __init__(self, text: str, asked: list[str], *arguments):
        self.text, self.asked = text, asked
        super().__init__(*arguments)

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def elsewhere(text: str = ""):
    """Its address, and what it was asked for."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Elsewhere, text, asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_elsewhere_neither_frames_nor_reads_nor_opens_the_socket(page, studio_server):
    with elsewhere(PAGE.replace("STUDIO", studio_server)) as (address, _):
        page.goto(address)
        assert page.evaluate("window.opened") == "refused"
        assert page.evaluate("window.read") == "refused"
        (frame,) = page.frames[1:]
        assert not frame.url.startswith(studio_server)
        assert not frame.locator("#root").count()


def test_the_studios_pages_load_nothing_from_elsewhere(page, studio_server):
    page.goto(f"{studio_server}/learn?tour=off")
    page.get_by_text("esson 1 of 14").first.wait_for()
    with elsewhere() as (address, asked):
        refused = page.evaluate(
            """async address => {
              const refused = [];
              document.addEventListener(
                "securitypolicyviolation", event => refused.push(event.effectiveDirective));
              const add = (kind, values) =>
                document.body.append(Object.assign(document.createElement(kind), values));
              add("img", {src: address + "/picture"});
              add("script", {src: address + "/script"});
              add("link", {rel: "stylesheet", href: address + "/style"});
              add("iframe", {src: address + "/frame"});
              add("script", {textContent: "window.ran = true"});
              await fetch(address + "/data").catch(() => {});
              new Image().src = address + "/pixel";
              await new Promise(done => setTimeout(done, 500));
              return [refused.sort(), window.ran ?? false];
            }""",
            address,
        )
        assert not asked
    assert refused == [
        [
            "connect-src",
            "frame-src",
            "img-src",
            "img-src",
            "script-src-elem",
            "script-src-elem",
            "style-src-elem",
        ],
        False,
    ]


@pytest.mark.check
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_is_taken_along_under_the_policy(watched, scheme):
    window = watched(1280, scheme)
    window.page.goto(f"{window.url}/paper?tour=off")
    chart = window.page.locator(".stPlotlyChart:has(.main-svg)").first
    chart.wait_for()
    chart.hover()
    with window.page.expect_download() as download:
        chart.locator("[data-title*=ownload]").first.click(force=True)
    assert download.value.suggested_filename.endswith(".png")
