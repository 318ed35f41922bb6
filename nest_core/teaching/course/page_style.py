"""The style of a lesson's file: the page's light and dark theme, as the reader's system asks."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
html { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
body { margin: 0; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.15rem; line-height: 1.4; margin: 0 0 0.6rem; }
h3 { font-size: 1rem; line-height: 1.3; margin: 0.8rem 0 0; }
p { margin: 0 0 0.6rem; max-width: 62rem; }
form { border: 1px solid var(--line); border-radius: 0.4rem; padding: 1rem; margin: 1rem 0; }
form label { display: block; margin: 0.2rem 0; }
button, input, select { font: inherit; }
button { margin: 0.5rem 0.5rem 0 0; padding: 0.15rem 0.8rem; border: 1px solid var(--line);
  border-radius: 0.3rem; background: none; color: inherit; cursor: pointer; }
button:hover { border-color: var(--accent); }
#verdict { border-left: 0.25rem solid var(--accent); padding-left: 0.7rem; font-weight: 600; }
#controls { display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; margin: 0.8rem 0; }
fieldset { border: 0; padding: 0; margin: 0; min-width: 0; }
legend { color: var(--ink3); font-size: 0.85rem; padding: 0; }
fieldset label { margin-right: 0.8rem; white-space: nowrap; }
fieldset output { display: inline-block; min-width: 3rem; padding-left: 0.5rem; }
figure { margin: 0 0 1.2rem; }
figcaption, small { display: block; }
.formulas { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr));
  gap: 0.6rem 1.6rem; }
.formulas div { border-top: 1px solid var(--line); padding-top: 0.35rem; }
.formulas b, .formulas code { display: block; font-size: 0.9rem; }
details { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: 0.6rem; }
@media print { form, #controls { display: none; } }
"""
