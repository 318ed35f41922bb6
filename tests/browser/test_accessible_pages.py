"""Pages as axe sees them: names, contrast, order of headings, roles.

axe-core comes with the drawing's own tools: ``npm ci`` in ``components/drawing/frontend``, which
``make test`` runs where there is an npm; without it these tests are skipped.
"""

from __future__ import annotations

import pytest
from test_rendered_pages import STATES, bring, opened

from nest_studio.server.rail import page_names

pytestmark = pytest.mark.browser

RUN = """axe.run(document, {resultTypes: ['violations']}).then(result => {
  const dim = node =>
    node && (getComputedStyle(node).opacity === '0.35' || dim(node.parentElement));
  return result.violations.flatMap(({id, nodes}) => nodes
    .filter(({target}) => id !== 'color-contrast' || !dim(document.querySelector(target[0])))
    .map(({html, any, all, none}) =>
      `${id}: ${html.slice(0, 160)} ${[...any, ...all, ...none][0]?.message}`));
})"""
"""What axe finds; what belongs to an older request is dim and not to be read, of any contrast."""
OF_STREAMLIT = ('presentation-role-conflict: <section role="presentation"',)
"""The area of its file uploader."""


@pytest.fixture
def axe(root):
    """The script of axe-core."""
    path = root / "nest_studio/components/drawing/frontend/node_modules/axe-core/axe.min.js"
    if not path.is_file():
        pytest.skip("axe-core is not installed (npm ci in nest_studio/components/drawing/frontend)")
    return path.read_text("utf-8")


@pytest.mark.sampled(30)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("name", "title"), page_names())
def test_axe_finds_nothing(browser, studio_server, axe, name, title, state, scheme):
    page = opened(browser, 1280, scheme)
    bring(page, f"{studio_server}/{name}", title, state)
    page.evaluate(axe)
    faults = [
        fault for fault in page.evaluate(RUN) if not any(known in fault for known in OF_STREAMLIT)
    ]
    page.context.close()
    assert not faults, "\n".join(faults)
