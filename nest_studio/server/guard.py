"""Who may ask this server, and what a browser may do with its answers.

A page elsewhere must not use the studio through its visitor's browser. Three ways lead there: a
name of its own that is pointed at this machine (so the host that is asked for must be a name of
ours), a web socket from its own address (so an origin must be the one that was asked, by scheme,
host and port), and a frame (so none may hold us). What pages show is kept from loading anything
from other hosts. Streamlit's own checks leave the port, the scheme and all but the web socket out,
and ask a public service for this machine's address.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nest_core.documents.errors import InputError

if TYPE_CHECKING:  # the command line reads this module and need not load a server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "PUBLIC_VARIABLE",
    "Guard",
    "Names",
    "beyond_this_machine",
    "http_address",
    "public_addresses",
]

PUBLIC_VARIABLE = "NEST_STUDIO_PUBLIC"
"""Addresses at which visitors reach a server that a proxy stands in front of."""

INLINE_SCRIPT = "'sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA='"
"""How a policy names the one script that stands inline in Streamlit's page."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.I)

Origin = tuple[str, str, int]
"""Scheme, host in small letters without brackets or a last dot, port."""


@dataclass(frozen=True, slots=True)
class Names:
    """Under which names a server may be asked.

    Parameters
    ----------
    scheme : str
        What the server itself speaks: ``http`` or ``https``. Headers of proxies are not believed.
    hosts : frozenset of str
        Names and addresses besides those of this machine to itself.
    public : frozenset of Origin
        Where visitors see it, as said by whoever runs it.
    """

    scheme: str = "http"
    hosts: frozenset[str] = frozenset()
    public: frozenset[Origin] = frozenset()

    @classmethod
    def of(cls, address: str, tls: bool, public: str) -> Names:
        """Return the names of a server.

        Parameters
        ----------
        address : str
            Where it listens.
        tls : bool
            Whether it has a certificate of its own.
        public : str
            `PUBLIC_VARIABLE`.

        Raises
        ------
        InputError
            If a public address is none.
        """
        hosts = frozenset(
            {address.lower(), socket.gethostname().lower()} if beyond_this_machine(address) else ()
        )
        return cls("https" if tls else "http", hosts, public_addresses(public))

    def refusal(self, hosts: list[str], origins: list[str], reached: str) -> str:
        """Return why a request is turned away, in a sentence; empty if it may pass.

        Parameters
        ----------
        hosts, origins : list of str
            The request's headers ``Host`` and ``Origin``.
        reached : str
            The address of this machine at which it arrived: nobody else's name can lead a
            browser to ask for that very address.
        """
        target = _origin(self.scheme, hosts[0]) if len(hosts) == 1 else None
        # A socket of both versions tells an address of the fourth as one of the sixth.
        here = reached.lower().removeprefix("::ffff:")
        allowed = {*_LOOPBACK, *self.hosts, *(host for _, host, _ in self.public), here}
        if target is None or target[1] not in allowed:
            return (
                "This server does not answer to that host name: "
                f"whoever runs it names the address that visitors see in {PUBLIC_VARIABLE}."
            )
        if any(_parsed(origin) not in {target, *self.public} for origin in origins):
            return (
                "Pages of another origin may not use this server: whoever runs it behind a proxy "
                f"names the address that visitors see in {PUBLIC_VARIABLE}."
            )
        return ""


class Guard:
    """ASGI middleware: turns requests away that `Names` refuses, and binds browsers.

    Parameters
    ----------
    app : ASGI application
    names : Names
    """

    def __init__(self, app: ASGIApp, names: Names) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or open a web socket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        hosts, origins = _header(scope, b"host"), _header(scope, b"origin")
        refusal = self._names.refusal(hosts, origins, (scope.get("server") or ("",))[0])
        added = self._headers("" if refusal else hosts[0])

        async def bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = [p for p in message.get("headers", ()) if p[0].lower() not in added]
                message = {**message, "headers": [*others, *added.items()]}
            await send(message)

        if refusal:
            await _refuse(refusal, scope, receive, bound)
            return
        # What was checked here is not to be asked about again, of a service elsewhere.
        headers = [pair for pair in scope["headers"] if pair[0] != b"origin"]
        await self._app({**scope, "headers": headers}, receive, bound)

    def _headers(self, host: str) -> Mapping[bytes, bytes]:
        """Return what every answer carries; ``host`` is the one asked for."""
        # Older browsers take 'self' for HTTP alone, so sockets are named; addresses of the sixth
        # version cannot be.
        sockets = [f"{kind}://{host}" for kind in ("ws", "wss") if host and "[" not in host]
        sockets += [
            f"{'wss' if scheme == 'https' else 'ws'}://{name}:{port}"
            for scheme, name, port in sorted(self._names.public)
            if ":" not in name
        ]
        policy = {
            "default-src": "'self'",
            "script-src": f"'self' {INLINE_SCRIPT}",
            "style-src": "'self' 'unsafe-inline'",
            "img-src": "'self' data: blob:",
            "font-src": "'self' data:",
            "worker-src": "'self' blob:",
            "connect-src": " ".join(["'self'", *sockets]),
            "object-src": "'none'",
            "base-uri": "'self'",
            "form-action": "'self'",
            "frame-ancestors": "'none'",
        }
        return {
            b"content-security-policy": "; ".join(map(" ".join, policy.items())).encode(),
            b"x-frame-options": b"DENY",
            b"x-content-type-options": b"nosniff",
            b"referrer-policy": b"same-origin",
            b"cross-origin-resource-policy": b"same-origin",
        }


def beyond_this_machine(address: str) -> bool:
    """Return whether others can reach a server that listens at an address."""
    try:
        addresses = socket.getaddrinfo(address, None)
    except OSError:  # no address of anyone's; the server will say so
        return True
    return not all(ipaddress.ip_address(str(entry[4][0])).is_loopback for entry in addresses)


def http_address(host: str, port: int, path: str) -> str:
    """Return the address of a server of this machine, as one types it."""
    bracketed = f"[{host}]" if ":" in host else host
    return f"http://{bracketed}:{port}/{path.strip('/')}".rstrip("/")


def public_addresses(text: str) -> frozenset[Origin]:
    """Origins of addresses between blanks, as ``https://studio.example.org``.

    Raises
    ------
    InputError
        If one is no ``http`` or ``https`` address, or has a path.
    """
    origins = set()
    for address in text.split():
        origin = _parsed(address.rstrip("/"))
        if origin is None:
            raise InputError(
                PUBLIC_VARIABLE,
                "must be addresses that visitors see, of http or https",
                address,
                "write https://studio.example.org, without a path",
            )
        origins.add(origin)
    return frozenset(origins)


def _header(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _parsed(origin: str) -> Origin | None:
    scheme, mark, host = origin.partition("://")
    return _origin(scheme.lower(), host) if mark else None


def _origin(scheme: str, host: str) -> Origin | None:
    match = _HOST.fullmatch(host)
    if match is None or scheme not in _PORTS:
        return None
    name = match[1].lower().strip("[]").rstrip(".")
    port = int(match[2]) if match[2] else _PORTS[scheme]
    return (scheme, name, port) if name and port < 65536 else None


async def _refuse(sentence: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()  # the handshake, which is answered with 403
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode()})
