"""What programs of this folder share: each reads the cases of a folder with its tool."""

import contextlib
import io
import json
import re
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def read_all(read: Callable[[Path, dict[str, Any]], None], *, apart: bool = False) -> None:
    """Write ``answers.json``: whether each case of ``cases.json`` is read, or why it is not.

    ``read`` is given the folder of the case and its facts, and raises where it is not. ``apart``
    gives every case a process that is forked for it, where a tool remembers the former one.
    """
    folder = Path(sys.argv[1])
    answers = []
    for case in json.loads((folder / "cases.json").read_text()):
        if apart:
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
                reason = pool.submit(_reason, read, folder, case).result()
        else:
            reason = _reason(read, folder, case)
        answers.append({"name": case["name"], "accepted": not reason, "reason": reason})
    (folder / "answers.json").write_text(json.dumps(answers))


def _reason(
    read: Callable[[Path, dict[str, Any]], None], folder: Path, case: dict[str, Any]
) -> str:
    """Return why a case is not read, or nothing."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            read(folder / case["name"], case)
    except SystemExit:
        return " ".join(re.sub(r"[^ -~]", " ", printed.getvalue()).split())[:300]
    except Exception as error:
        text = " ".join(str(error).split()) or traceback.format_exc().splitlines()[-2].strip()
        return f"{type(error).__name__}: {text}"[:300]
    return ""


def expect(**pairs: tuple[object, object]) -> None:
    """Raise where what is read differs from what is meant, given by name as a pair."""
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if wrong:
        words = [f"{name} {read!r}, meant {meant!r}" for name, (read, meant) in wrong.items()]
        raise ValueError(f"read as another plan: {', '.join(words)}")
