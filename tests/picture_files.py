"""Where the content of a picture file ends."""

from __future__ import annotations

import numpy as np
from PIL import Image

__all__ = ["MARGIN", "content_end"]

MARGIN = 24
"""Rows of background that stay below the content."""
_CONTRAST = 12


def content_end(image: Image.Image) -> int:
    """Return the height to crop an image to: all rows but the background at its lower end.

    Background is what equals the row just above the lower edge, which may have a border.

    Examples
    --------
    >>> image = Image.new("RGB", (4, 100), "white")
    >>> image.putpixel((2, 30), (0, 0, 0))
    >>> content_end(image)
    55
    """
    pixels = np.asarray(image.convert("RGB")).astype(int)
    differs = (abs(pixels - pixels[-4]) > _CONTRAST).any(axis=(1, 2))[:-4]
    return min(len(pixels), int(differs.nonzero()[0].max(initial=0)) + 1 + MARGIN)
