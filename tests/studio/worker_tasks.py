"""What tests have workers do. It imports next to nothing: every new worker reads it."""

from __future__ import annotations

import os
import threading
import time

from nest_core.documents.errors import InputError

LONG_S = 60.0


def squared(number, *, progress, stop):
    progress(0.5, "halfway")
    return number**2, os.getpid()


def refused(*, progress, stop):
    raise InputError("number", "must be even", 3, "take 4")


def patient(*, progress, stop):
    """Ends when it is told to."""
    progress(0.25, "a quarter")
    began = time.monotonic()
    while not stop() and time.monotonic() < began + LONG_S:
        time.sleep(0.01)
    return None if stop() else "ran to its end"


def halfway(*, progress, stop):
    """Gives what it has when it is told to end."""
    progress(0.5, "half")
    while not stop():
        time.sleep(0.01)
    return "half of it"


def deaf(*, progress, stop):
    progress(0.1, "not listening")
    time.sleep(LONG_S)
    return "ran to its end"


def unreadable(*, progress, stop):
    raise FileNotFoundError("nothing there")


def noted(file, name, *, progress, stop):
    with open(file, "a") as notes:
        notes.write(name)


def loaded_kernels(*, progress, stop):
    from nest_core.documents.compiled import KERNELS  # numba, which no other task needs

    return sum(bool(kernel.signatures) for kernel in KERNELS)


def priority(*, progress, stop):
    return os.nice(0)


def vanished(file, *, progress, stop):
    noted(file, "x", progress=progress, stop=stop)
    os._exit(3)


def early(*, progress, stop):
    os.environ["EARLY"] = "yes"


def was_early(*, progress, stop):
    return os.environ.get("EARLY")


def after(file, value, *, progress, stop):
    """A value, once a file is there."""
    progress(0.1, "waiting for the file")
    while not file.exists():
        time.sleep(0.01)
    return value


class Unwritable:
    def __reduce__(self):
        raise RuntimeError("never")


class Unreadable(Exception):
    """Written well, and not to be read: its arguments are not the ones it is made of."""

    def __init__(self, left, right):
        super().__init__(f"{left} {right}")


def deep():
    found = []
    for _ in range(100_000):
        found = [found]
    return found


AWKWARD = {
    "a function": lambda: lambda: None,
    "a lock": threading.Lock,
    "a generator": lambda: (number for number in ()),
    "an object that refuses": Unwritable,
    "a deep list": deep,
}


def awkward(kind, raised, *, progress, stop):
    value = AWKWARD[kind]()
    if raised:
        raise RuntimeError(value)
    return {"inside": [value]}


def unreadable_error(*, progress, stop):
    raise Unreadable(1, 2)


def hungry(*, progress, stop):
    """Takes memory part by part, and would hold it longer than it may compute."""
    held = [b"x" * 2**27 for _ in range(16)]
    time.sleep(LONG_S)
    return len(held)


def sized(size, *, progress, stop):
    return b"x" * size
