"""One-line defects that the tests have to notice.

``python benchmarks/mutants.py [NUMBER ...]`` puts every mutant of `mutants.toml`, or those of these
numbers, into a checkout of the last commit, one at a time, and runs tests until one fails: first
those of the mutant's package, which mirror it, then all that `make test` runs without a browser.
Prints a row per mutant (Markdown) and how many were killed; 1 if a line of the list is not found
once in its file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LISTED = "tests/test_house.py::test_the_line_of_every_mutant_is_there_once"
"""Fails under every mutant, whatever it is."""

USUAL = ("-q", "-x", "-n", "auto", "--dist", "worksteal", "-m", "not check and not browser")


def main(numbers: list[int]) -> int:
    """Try the mutants, and print what became of them."""
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    chosen = numbers or list(range(1, len(mutants) + 1))
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "nest-studio")
        _git("worktree", "add", "--detach", "--quiet", str(tree), "HEAD")
        try:
            if (ROOT.parent / "shared").exists():
                Path(folder, "shared").symlink_to(ROOT.parent / "shared")
            return _tried([(number, mutants[number - 1]) for number in chosen], tree)
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _tried(mutants: list[tuple[int, dict[str, str]]], tree: Path) -> int:
    print("| # | file | instead | killed by | s |\n|---|---|---|---|---|", flush=True)
    killed = 0
    for number, mutant in mutants:
        path = tree / mutant["file"]
        text = path.read_text()
        if text.count(mutant["line"]) != 1:
            print(f"{mutant['file']}: not there once: {mutant['line']}", file=sys.stderr)
            return 1
        path.write_text(text.replace(mutant["line"], mutant["instead"]))
        began = time.monotonic()
        test = _killer(tree, mutant["file"])
        path.write_text(text)
        killed += bool(test)
        took = time.monotonic() - began
        print(
            f"| {number} | {mutant['file']} | `{mutant['instead']}` | {test or '**none**'} | "
            f"{took:.0f} |",
            flush=True,
        )
    print(f"\n{killed} of {len(mutants)} killed")
    return 0


def _killer(tree: Path, file: str) -> str:
    """The first test that fails; empty if none does."""
    mirror = tree / "tests" / Path(file).parts[1]
    for tests in ([str(mirror)] if mirror.is_dir() else [], []):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *USUAL, "--deselect", LISTED, *tests],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
        )
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode:
            return failed[0].split()[1] if failed else f"pytest ended with {done.returncode}"
    return ""


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]]))
