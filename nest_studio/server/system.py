"""What the studio asks of the operating system; the one module in which systems differ.

Memory is in bytes. Linux refuses a process memory beyond a limit; elsewhere the process that
started it has to look at what it holds. psutil is imported where it is used, because few
commands need it.
"""

import os
import socket
import sys
from pathlib import Path

if sys.platform != "win32":
    import resource

__all__ = [
    "PORT_OPTION",
    "REFUSES_MEMORY",
    "held_bytes",
    "peak_bytes",
    "refuse_memory_beyond",
    "yield_to_others",
]

PORT_OPTION: int = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
"""With it a port is granted that nobody listens on: Windows' SO_REUSEADDR would share others'."""

REFUSES_MEMORY = sys.platform.startswith("linux")
"""Whether `refuse_memory_beyond` works here."""


def held_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if it is gone or not ours to ask about."""
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def peak_bytes() -> int:
    """Return the most resident memory that this process has had."""
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    else:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def yield_to_others() -> None:
    """Let whatever else wants to compute go first."""
    if sys.platform == "win32":
        import psutil

        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
    else:
        os.nice(10)


def refuse_memory_beyond(more_bytes: float) -> None:
    """Have every further demand of this process for memory refused; counted is what it can write.

    Parameters
    ----------
    more_bytes : float
        How much it may take beyond what it holds now.
    """
    if sys.platform.startswith("linux"):
        data_bytes = int(Path("/proc/self/statm").read_bytes().split()[5]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = int(data_bytes + more_bytes)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
