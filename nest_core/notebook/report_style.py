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
ol.contents { margin: 4mm 0 0; padding-left: 6mm; }
ol.contents a { text-decoration: none; }
section { border-top: 0.3mm solid var(--line); margin-top: 8mm; padding-top: 5mm; }
.note { margin: 2mm 0 3mm; max-width: 150mm; }
.note table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.note :is(h1, h2, h3, h4, h5, h6) { font-size: 10.5pt; margin: 2.5mm 0 1mm; }
.note pre { background: var(--panel); padding: 2mm 3mm; overflow-x: auto; }
.note code { font-size: 9pt; }
.note blockquote { border-left: 0.8mm solid var(--line); margin: 2mm 0; padding-left: 3mm; }
.note :is(td, th) { border: 0.2mm solid var(--line); padding: 0.6mm 2mm; }
dl.headlines { display: grid; grid-template-columns: repeat(5, 1fr); gap: 0 3mm; margin: 3mm 0; }
dl.headlines div { border-left: 0.6mm solid var(--accent); padding-left: 2mm; }
dl.headlines dt { color: var(--ink3); font-size: 8.2pt; }
dl.headlines dd { margin: 0; font-size: 8.2pt; }
dl.headlines dd.value { font-size: 12.5pt; font-weight: 600; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.formulae { font-size: 8.4pt; margin: 2mm 0; break-inside: avoid; }
.formulae summary { font-weight: 600; }
.formulae div { font-variant-numeric: tabular-nums; padding-left: 3mm; }
.formulae b { display: block; margin-top: 1mm; font-weight: 600; }
figure { margin: 5mm 0 0; break-inside: avoid; }
figure svg.fabric { display: block; max-width: 100%; height: auto; }
/* Drawn as wide as on a page of the studio, and made to fit. */
figure .plot { width: 905px; zoom: 0.76; }
figcaption { font-size: 8.8pt; }
.nest-table { width: 100%; font-size: 8.4pt; margin: 1mm 0 3mm; }
.nest-table td { vertical-align: top; }
.changed { border-left: 0.8mm solid var(--limit); padding-left: 3mm; margin: 2mm 0; }
h2, h3, .nest-subtitle { break-after: avoid; }
@media print { body { padding: 0; width: auto; } section.apart { break-before: page; } }
"""
