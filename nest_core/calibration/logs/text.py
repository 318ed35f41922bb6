"""What launchers and terminals put into the lines of a log, taken out again.

Forms: srun ``--label`` (``  0: ``), torchrun ``--tee`` (``[default0]:``), Open MPI
(``[1,0]<stdout>:``), PyTorch's ``[rank0]:``, and colours.
"""

from __future__ import annotations

import re

__all__ = ["plain_line"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PREFIX = re.compile(r"^(?:\s*\d+: |\[(?:default|rank)?\d+\]: ?|\[\d+,\d+\]<\w+>: ?)")


def plain_line(line: str) -> str:
    """A line as the framework printed it.

    Examples
    --------
    >>> plain_line("[default3]:step: 1"), plain_line("  0: \\x1b[32m iteration"), plain_line("  tp")
    ('step: 1', ' iteration', '  tp')
    """
    if "\x1b" in line:
        line = _COLOUR.sub("", line)
    return _PREFIX.sub("", line, count=1) if ":" in line[:40] else line
