"""Whom the server answers, and what its answers allow a browser, over its real sockets."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import socket
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import websockets
from hypothesis import given, settings
from hypothesis import strategies as st
from live_server import OURS, STREAMLITS, served

from nest_studio.cli import run

BOTH = [
    pytest.param(OURS, id="nest-studio", marks=pytest.mark.check),
    pytest.param(STREAMLITS, id="streamlit"),
]


@pytest.fixture(scope="module", params=BOTH)
def port(request, tmp_path_factory):
    with served(request.param, tmp_path_factory.mktemp("studio")) as (number, _):
        yield number


@pytest.fixture(scope="module")
def reachable(tmp_path_factory):
    """Beyond localhost, with a public address."""
    command = [*OURS, "--address", "0.0.0.0", "--public", "https://studio.example.org"]
    with served(command, tmp_path_factory.mktemp("studio")) as found:
        yield found


def status(port: int, path: str = "/_stcore/health", **headers: str) -> int:
    line = HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("GET", path, headers={"Host": f"localhost:{port}", **headers})
    found = line.getresponse().status
    line.close()
    return found


def opens(port: int, origin: str | None, host: str = "localhost") -> bool:
    """Whether the web socket opens to a page of an origin."""

    async def attempt() -> bool:
        try:
            async with websockets.connect(
                f"ws://{host}:{port}/_stcore/stream",
                host="127.0.0.1",
                origin=origin,
                subprotocols=[websockets.Subprotocol("streamlit")],
            ):
                return True
        except websockets.InvalidStatus as refused:
            return refused.response.status_code != 403

    return asyncio.run(attempt())


FOREIGN = [
    "http://localhost:9",
    "https://127.0.0.1:1",
    "http://localhost",
    "https://localhost:{port}",
    "http://127.0.0.1:{port}",
    "http://[::1]:{port}",
    "http://evil.example",
    "null",
    "http://localhost:{port}.evil.example",
    "http://localhost:{port}@evil.example",
    "chrome-extension://abc",
    "http://0.0.0.0:{port}",
    "",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("origin", FOREIGN)
def test_pages_of_another_origin_are_refused(port, origin):
    origin = origin.format(port=port)
    assert not opens(port, origin)
    assert status(port, Origin=origin) == 403


def test_pages_of_its_own_origin_are_answered(port):
    for host in ("localhost", "127.0.0.1"):
        assert opens(port, f"http://{host}:{port}", host)
        assert opens(port, f"HTTP://{host.upper()}:{port}", host)
    assert status(port, Origin=f"http://localhost:{port}") == 200
    assert status(port) == 200


def test_headers_of_proxies_are_not_believed(port):
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    assert status(port, Origin=f"https://localhost:{port}", **told) == 403
    assert status(port, Origin="https://evil.example", **told) == 403
    assert status(port, Origin=f"http://localhost:{port}", **told) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:80", "user@localhost", "", "."]
)
def test_a_rebound_name_is_refused(port, host):
    assert status(port, Host=host) == 403
    assert status(port, "/", Host=host) == 403
    if host.isascii() and host.strip(".") and "@" not in host and ":" not in host:
        assert not opens(port, f"http://{host}:{port}", host)


def test_beyond_localhost_only_own_and_public_names_are_answered(reachable):
    port, _ = reachable
    for host in ("localhost", "127.0.0.1", socket.gethostname(), "studio.example.org"):
        assert status(port, Host=f"{host}:{port}") == 200, host
    for host in ("evil.example", "10.11.12.13", "example.org", "a.studio.example.org"):
        assert status(port, Host=f"{host}:{port}") == 403, host
    assert not opens(port, f"http://evil.example:{port}", "evil.example")


def test_a_public_address_is_an_origin_by_its_scheme_and_port(reachable):
    port, _ = reachable
    public = "https://studio.example.org"
    assert status(port, Host="studio.example.org", Origin=public) == 200
    assert status(port, Origin=public) == 200, "proxies ask for the host behind them"
    assert opens(port, public)
    assert status(port, Origin=f"{public}:443") == 200
    assert status(port, Origin=f"{public}:8443") == 403
    assert status(port, Origin="http://studio.example.org") == 403


def test_whoever_serves_others_is_warned(reachable):
    port, log = reachable
    told = [line for line in log.read_text().splitlines() if line.startswith("Warning")]
    assert len(told) == 1
    assert f"reach 0.0.0.0 port {port} can read, change and delete every notebook" in told[0]


def test_an_answer_binds_the_browser(port):
    """Every path: pages, Streamlit's files, answers that refuse or do not find."""
    for path in ("/", "/design", "/_stcore/health", "/favicon.png", "/_stcore/none", "/nowhere"):
        for host in (f"localhost:{port}", "evil.example"):
            line = HTTPConnection("127.0.0.1", port, timeout=60)
            line.request("GET", path, headers={"Host": host})
            answer = line.getresponse()
            text = answer.read().decode("utf-8", "replace")
            assert answer.getheader("X-Frame-Options") == "DENY"
            assert answer.getheader("X-Content-Type-Options") == "nosniff"
            assert answer.getheader("Referrer-Policy") == "same-origin"
            assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
            policy = answer.getheader("Content-Security-Policy")
            rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
            assert rules["frame-ancestors"] == rules["object-src"] == "'none'"
            assert rules["default-src"] == "'self'"
            assert "unsafe" not in rules["script-src"]
            named = re.findall(r"(?:https?|wss?)://[^\s;]+|\*", policy)
            assert {urlsplit(one).netloc for one in named} <= {host}
            for script in re.findall(r"<script>(.*?)</script>", text, re.S):
                digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in rules["script-src"], path


USUAL = st.tuples(
    st.sampled_from(["localhost", "127.0.0.1", "[::1]", "studio.example.org", "evil.example"]),
    st.sampled_from(["", ":80", ":443", ":8501", ":9"]),
)
ANY = st.tuples(
    st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True) | st.text(max_size=12),
    st.integers(0, 70_000).map(":{}".format) | st.text(max_size=4),
)
SCHEMES = st.sampled_from(["http", "https", "ws", "file", "HTTP", ""])


@settings(max_examples=300)
@given(
    st.lists(USUAL, min_size=1, max_size=1) | st.lists(USUAL | ANY, max_size=2),
    st.lists(st.tuples(SCHEMES, USUAL | ANY), max_size=2),
)
def test_who_passes_asked_a_name_of_ours_from_that_very_place(hosts, origins):
    """By the standard library's reading of addresses, which shares no code with the guard."""
    from nest_studio.server.guard import Names

    public = "https://studio.example.org"
    asked = [f"{name}{port}" for name, port in hosts]
    came = [f"{scheme}://{name}{port}" for scheme, (name, port) in origins]
    if Names.of("localhost", False, public).refusal(asked, came, "127.0.0.1"):
        return
    assert len(asked) == 1

    def place(address: str) -> tuple[str, str | None, int]:
        parts = urlsplit(address)
        usual = {"http": 80, "https": 443}[parts.scheme]
        name = (parts.hostname or "").rstrip(".")
        return parts.scheme, name, usual if parts.port is None else parts.port

    own = place(f"http://{asked[0]}")
    assert own[1] in {"localhost", "127.0.0.1", "::1", "studio.example.org"}
    assert all(place(one) in {own, ("https", "studio.example.org", 443)} for one in came)


@pytest.mark.parametrize(
    "text", ["studio.example.org", "ftp://a", "https://a/nest", "https://", "*"]
)
def test_a_public_address_that_is_none_is_one_sentence(text, capsys):
    assert run(["app", "--headless", "--public", text]) == 2
    said = capsys.readouterr().err
    assert "NEST_STUDIO_PUBLIC must be addresses that visitors see" in said
    assert len(said.strip().splitlines()) == 1
