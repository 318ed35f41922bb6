"""The style of reports: light, A4, one column as wide on screen as on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
@page { size: A4; margin: 16mm 14mm 18mm; }
html { color-scheme: light; font: 10pt/1.45 system-ui, "Segoe UI", Roboto,
  "Liberation Sans", Arial, sans-serif; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
body { width: 182mm; margin: 0 auto; padding: 10mm 0 16mm; }
h1 { font-size: 20pt; line-height: 1.2; margin: 0 0 1mm; }
h2 { font-size: 13.5pt; line-height: 1.25; margin: 0 0 1mm; }
h3 { font-size: 10.5pt; line-height: 1.3; margin: 0; }
p { margin: 0 0 2mm; }
a { color: var(--accent); }
.quiet { color: var(--ink3); font-size: 8.8pt; }
section { border-top: 0.3mm solid var(--line); margin-top: 8mm; padding-top: 5mm; }
.note { margin: 2mm 0 3mm; max-width: 150mm; }
.note table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.note :is(h3, h4, h5, h6) { font-size: 10.5pt; margin: 2.5mm 0 1mm; }
pre { font-size: 8.4pt; line-height: 1.3; overflow-wrap: anywhere; white-space: pre-wrap; }
.note pre { background: var(--panel); padding: 2mm 3mm; overflow-x: auto; }
.note code { font-size: 9pt; }
.note blockquote { border-left: 0.8mm solid var(--line); margin: 2mm 0; padding-left: 3mm; }
.note :is(td, th) { border: 0.2mm solid var(--line); padding: 0.6mm 2mm; }
figure { margin: 5mm 0 0; break-inside: avoid; }
figure img { display: block; max-width: 100%; height: auto; }
/* Drawn as wide as on a page of the studio, and made to fit. */
figure .plot { width: 905px; zoom: 0.76; }
h1, h2, h3 { break-after: avoid; }
@media print { body { padding: 0; width: auto; } }
"""
