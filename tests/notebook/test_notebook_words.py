"""Notes: Markdown that runs nothing and fetches nothing."""

from __future__ import annotations

import pytest

from nest_core.report.notebook.report import note_html


@pytest.mark.parametrize(
    ("note", "html"),
    [
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("![x](https://example.com/x.png)", '<p>!<a href="https://example.com/x.png">x</a></p>'),
        ("|a|\n|-|\n|1|", "<table>"),
    ],
)
def test_a_note_runs_nothing_and_fetches_nothing(note, html):
    assert note_html(note).startswith(html)
