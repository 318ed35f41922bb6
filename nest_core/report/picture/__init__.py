"""Pictures of fabrics, drawn by rule: what each kind looks like, from 8 to 131,072 devices."""

from nest_core.report.picture.frame import untitled
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Swatch, TierLabel, Words
from nest_core.report.picture.picture import picture
from nest_core.report.picture.plan import DrawOptions
from nest_core.report.picture.svg import to_svg

__all__ = [
    "Band",
    "Box",
    "DrawOptions",
    "Drawn",
    "Line",
    "Mark",
    "Swatch",
    "TierLabel",
    "Words",
    "picture",
    "to_svg",
    "untitled",
]
