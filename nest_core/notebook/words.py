"""Notes: Markdown as HTML that fetches nothing and runs nothing."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt

__all__ = ["note_html"]


def note_html(text: str) -> str:
    """A note in HTML: CommonMark with tables and strike-through.

    HTML in the note is shown as text, addresses that could run something are no links, and
    pictures become links: whoever opens a notebook must not be made to load what it names.

    Examples
    --------
    >>> note_html("*less* is <b>more</b>")
    '<p><em>less</em> is &lt;b&gt;more&lt;/b&gt;</p>\\n'
    """
    return str(_reader().render(text))


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False})
    return reader.enable(["table", "strikethrough"]).disable("image")
