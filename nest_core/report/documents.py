"""HTML documents that leave the app, and the colours that they share with its pages.

A document holds all that it needs: a content security policy in it keeps it from fetching anything,
whatever words stand in it.
"""

import base64
import html
from functools import cache
from pathlib import Path

__all__ = ["COLOURS", "DESIGN_COLOURS", "font_faces", "html_document"]

DESIGN_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377")
"""Of places in a comparison. Tol's *bright* scheme (Paul Tol, Colour Schemes,
SRON/EPS/TN/09-002, 2021), safe for colour-blind readers and none of those that mean something on
the other figures."""

COLOURS = """
:root {
  --ink: light-dark(#1B1F24, #E4E7EA); --ink2: light-dark(#4A525A, #BAC1C8);
  --ink3: light-dark(#5C656E, #9FA8B0); --line: light-dark(#DDE1E5, #343A40);
  --grid: light-dark(#E9ECEF, #272C31); --bg: light-dark(#FFFFFF, #14171A);
  --panel: light-dark(#F5F6F7, #1D2125);
  --accent: light-dark(#0072B2, #56B4E9); --accentink: light-dark(#00639B, #7CC6F0);
  --tint: light-dark(#E5F1F8, #16303F); --onacc: light-dark(#FFFFFF, #10202B);
  --compute: #0072B2; --recompute: #56B4E9; --comm: #E69F00; --idle: light-dark(#A9B0B6, #7E878F);
  --limit: #D55E00; --limitink: light-dark(#B04A00, #F08A45);
  --base: light-dark(#A3A9AF, #8D959D); --fill: light-dark(#DCE3E9, #39434C);
  --casing: #A36F00; --kern: light-dark(#74AED3, #2B7DB4);
  --h0: light-dark(#FEFAF2, #221E17); --h1: light-dark(#FCF0D9, #352A15);
  --h2: light-dark(#F9E2B3, #4E3A12); --h3: #E69F00; --hotink: #1B1F24; }
"""
"""Of pages and documents; `light-dark` follows the color scheme of what they stand in."""

_RULES = """
* { box-sizing: border-box; }
html { color-scheme: light dark; background: var(--bg); color: var(--ink);
  font-variant-numeric: tabular-nums; }
.nest-title { font-weight: 600; margin-top: 0.8em; break-after: avoid; }
.nest-subtitle, .nest-legend, figcaption, small { color: var(--ink3); font-size: 0.88em; }
.nest-legend span { white-space: nowrap; margin-right: 1em; }
.nest-legend i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.35em;
  border: 1px solid var(--line); }
.nest-table { border-collapse: collapse; font-size: 0.85em; margin: 0.3em 0 0.8em; }
.nest-table thead { display: table-header-group; }
.nest-table tr { break-inside: avoid; }
.nest-table th { font-weight: 500; color: var(--ink3); vertical-align: bottom; }
.nest-table :is(th, td) { border-bottom: 1px solid var(--line); padding: 0.2em 0.8em 0.2em 0;
  text-align: right; }
.nest-table :is(th, td).nest-words { text-align: left; }
"""


@cache
def font_faces() -> str:
    """Return rules that bring Source Sans 3 along (SIL Open Font License), Latin, two weights."""
    return "".join(
        f"@font-face {{ font-family: 'Source Sans 3'; font-weight: {weight}; "
        f"src: url(data:font/woff2;base64,{base64.b64encode(file.read_bytes()).decode()}); }}\n"
        for weight in (400, 600)
        for file in [Path(__file__).parent / "fonts" / f"source-sans-3-{weight}.woff2"]
    )


def html_document(title: str, style: str, body: str, *, scripts: bool = False) -> str:
    """Return a document that fetches nothing.

    Parameters
    ----------
    title : str
    style : str
        The rules of this kind of document, after those that all have.
    body : str
        HTML.
    scripts : bool
        Whether scripts in the body may run.
    """
    run = "; script-src 'unsafe-inline'" if scripts else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:{run}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)}</title>\n<style>{COLOURS}{_RULES}{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
