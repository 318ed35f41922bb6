"""What programs of this folder share: each reads the cases of a folder with its tool."""

import contextlib
import io
import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_all(read: Callable[[Path, dict[str, Any]], None]) -> None:
    """Write ``answers.json``: whether each case of ``cases.json`` is read, or why it is not.

    ``read`` is given the folder of the case and its facts, and raises where it is not.
    """
    folder = Path(sys.argv[1])
    answers = []
    for case in json.loads((folder / "cases.json").read_text()):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stderr(printed):
                read(folder / case["name"], case)
        except SystemExit:
            reason = " ".join(re.sub(r"[^ -~]", " ", printed.getvalue()).split())[:300]
        except Exception as error:
            text = " ".join(str(error).split()) or traceback.format_exc().splitlines()[-2].strip()
            reason = f"{type(error).__name__}: {text}"[:300]
        else:
            reason = ""
        answers.append({"name": case["name"], "accepted": not reason, "reason": reason})
    (folder / "answers.json").write_text(json.dumps(answers))


def expect(**pairs: tuple[object, object]) -> None:
    """Raise where what is read differs from what is meant, given by name as a pair."""
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if wrong:
        words = [f"{name} {read!r}, meant {meant!r}" for name, (read, meant) in wrong.items()]
        raise ValueError(f"read as another plan: {', '.join(words)}")
