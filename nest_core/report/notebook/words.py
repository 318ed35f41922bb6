"""Notes: Markdown that fetches nothing and runs nothing, as HTML and for Jupyter."""

import html
import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

__all__ = ["note_html", "note_markdown"]

_DATA = re.compile(r"data:image/(?:png|gif|jpeg|webp);base64,[A-Za-z0-9+/=]+")


def note_html(text: str) -> str:
    """Return a note in HTML: CommonMark with tables and strike-through.

    HTML in the note is shown as text, addresses that could run something are no links, and of
    pictures only those stand that the note holds as data; the others become links: whoever opens a
    notebook must not be made to load what it names.

    Examples
    --------
    >>> note_html("*less* is <b>more</b>")
    '<p><em>less</em> is &lt;b&gt;more&lt;/b&gt;</p>\\n'
    >>> note_html("![a rack](//elsewhere.example/x.png)")
    '<p>!<a href="//elsewhere.example/x.png">a rack</a></p>\\n'
    """
    return str(_reader().render(text))


def note_markdown(text: str) -> str:
    """A note for a Markdown cell of Jupyter, which takes HTML, loads pictures and draws diagrams.

    As it was written, unless there is something in it that could be one of these: then as
    `note_html` in one block, which a blank line would end.

    Examples
    --------
    >>> note_markdown("*less* is more")
    '*less* is more'
    >>> note_markdown("![x](//elsewhere.example/x.png)")
    '<p>!<a href="//elsewhere.example/x.png">x</a></p>'
    """
    if not any(mark in text for mark in ("<", "![", "```", "~~~")):
        return text
    return re.sub(r"\n(?=\n)", "&#10;", note_html(text).strip())


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False})
    reader.add_render_rule("image", _picture)
    return reader.enable(["table", "strikethrough"])


def _picture(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """Return a picture that is data as one; another as a link to it."""
    address = str(tokens[index].attrs["src"])
    words = renderer.renderInlineAsText(tokens[index].children, options, env)
    if _DATA.fullmatch(address):
        return f'<img src="{html.escape(address)}" alt="{html.escape(words)}">'
    return f'!<a href="{html.escape(address)}">{html.escape(words)}</a>'
