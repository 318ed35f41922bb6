"""What HTML would fetch, by Python's own parser; no part of the studio is asked."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

__all__ = ["Parts", "loads", "texts"]

FETCHING = {"src", "srcset", "style", "poster", "background", "data", "xlink:href"}
ACTING = {"script", "style", "iframe", "object", "embed", "link", "svg", "video", "base", "meta"}


class Parts(HTMLParser):
    """The tags of a text with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def loads(text: str) -> list[str]:
    """What opening a text of HTML would fetch; pictures that are data are not fetched."""
    found = []
    for tag, attributes in Parts(text).tags:
        as_data = tag == "img" and str(attributes.get("src")).startswith("data:image/")
        if tag in ACTING or set(attributes) & (FETCHING - ({"src"} if as_data else set())):
            found.append(f"{tag} {attributes}")
    return found


def texts(value: object) -> Iterator[str]:
    """Every text in plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from texts(entry)
