"""Pictures of fabrics, drawn by rule: what each kind looks like, from 8 to 131,072 devices."""

from nest_core.report.picture.ask import Ask
from nest_core.report.picture.frame import untitled
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Said, Swatch, Words
from nest_core.report.picture.picture import drawn, picture
from nest_core.report.picture.svg import to_svg

__all__ = [
    "Ask",
    "Band",
    "Box",
    "Drawn",
    "Line",
    "Mark",
    "Said",
    "Swatch",
    "Words",
    "drawn",
    "picture",
    "to_svg",
    "untitled",
]
