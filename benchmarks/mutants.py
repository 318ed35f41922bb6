"""One-line defects that the tests have to notice.

``python benchmarks/mutants.py`` puts every mutant of `mutants.toml`, or those of ``--number``, into
a checkout of the last commit, one at a time, and runs tests until one fails: first those of the
mutant's package, which mirror it, then all that `make test` runs without a browser.
``--drawn 120 --seed 1`` takes instead 120 changes of one operator, bound or number, drawn at random
from every package in proportion to its candidates. ``--tests REF`` takes the tests of another
commit, which shows what a suite has lost or gained; ``--mirror`` stops after the package's tests.
``--limit`` ends a run of tests that has taken so many seconds, which decides nothing: a defect may
make a loop endless, or no test of many may notice it.
Prints a row per mutant (Markdown) and how many were killed; 1 if a line of the list is not found
once in its file.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LISTED = "tests/test_house.py::test_the_line_of_every_mutant_is_there_once"
"""Fails under every mutant, whatever it is."""

TOO_LONG = "more than"

USUAL = ("-q", "-x", "--dist", "worksteal", "-m", "not check and not browser")

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Text ``start`` to ``end`` (bytes) of a file, replaced by ``instead``."""

    file: str
    start: int
    end: int
    instead: str


def listed(tree: Path) -> list[Mutant]:
    """Return the mutants of `mutants.toml`."""
    mutants = []
    for entry in tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]:
        text = (tree / entry["file"]).read_bytes()
        line = entry["line"].encode()
        if text.count(line) != 1:
            raise ValueError(f"{entry['file']}: not there once: {entry['line']}")
        start = text.index(line)
        mutants.append(Mutant(entry["file"], start, start + len(line), entry["instead"]))
    return mutants


def drawn(tree: Path, count: int, seed: int) -> list[Mutant]:
    """Return about ``count`` mutants drawn from every package in proportion to its candidates."""
    packages: dict[str, list[Mutant]] = {}
    for top in ("nest_core", "nest_studio"):
        for path in sorted((tree / top).rglob("*.py")):
            parts = path.relative_to(tree).parts
            packages.setdefault("/".join(parts[:2]), []).extend(_candidates(tree, path))
    total = sum(map(len, packages.values()))
    generator = random.Random(seed)
    return [
        mutant
        for candidates in packages.values()
        for mutant in generator.sample(candidates, round(count * len(candidates) / total))
    ]


def _candidates(tree: Path, path: Path) -> Iterator[Mutant]:
    text = path.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _expressions(ast.parse(text)):
        changed = _changed(node)
        if changed is not None:
            yield Mutant(
                str(path.relative_to(tree)),
                starts[node.lineno - 1] + node.col_offset,
                starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0),
                f"({ast.unparse(changed)})",
            )


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Walk over expressions that are computed: not annotations, not the words of an f-string."""
    for name, field in ast.iter_fields(node):
        if name in {"annotation", "returns", "format_spec"} or isinstance(field, ast.JoinedStr):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                if isinstance(child, ast.expr):
                    yield child
                yield from _expressions(child)


def _changed(node: ast.expr) -> ast.expr | None:
    """Return the expression with one defect; None where it has no operator, bound or number."""
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[first, *rest]) if type(first) in SWAPPED:
            changed.ops = [SWAPPED[type(first)](), *rest]  # type: ignore[list-item]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            changed.op = SWAPPED[type(op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            changed.func = ast.Name("max" if name == "min" else "min")
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            changed.value = number + 1
        case _:
            return None
    return changed


def main() -> int:
    """Try the mutants, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, nargs="*", help="only those, counted from 1")
    parser.add_argument("--drawn", type=int, help="how many to draw at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", help="a commit whose tests are taken")
    parser.add_argument("--mirror", action="store_true", help="only the tests of the package")
    parser.add_argument("--limit", type=float, help="seconds that a run of tests may take")
    parser.add_argument("--workers", default="auto", help="processes; 0 is this one alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "nest-studio")
        _git("worktree", "add", "--detach", "--quiet", str(tree), "HEAD")
        try:
            if (ROOT.parent / "shared").exists():
                Path(folder, "shared").symlink_to(ROOT.parent / "shared")
            if options.tests:
                subprocess.run(["git", "rm", "-rq", "tests"], cwd=tree, check=True)
                subprocess.run(
                    ["git", "checkout", options.tests, "--", "tests"], cwd=tree, check=True
                )
            mutants = drawn(tree, options.drawn, options.seed) if options.drawn else listed(tree)
            numbers = options.number or range(1, len(mutants) + 1)
            return _tried({number: mutants[number - 1] for number in numbers}, tree, options)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _tried(mutants: dict[int, Mutant], tree: Path, options: argparse.Namespace) -> int:
    print("| # | file | line | instead | killed by | s |\n|---|---|---|---|---|---|", flush=True)
    killed = undecided = 0
    for number, mutant in mutants.items():
        path = tree / mutant.file
        text = path.read_bytes()
        path.write_bytes(text[: mutant.start] + mutant.instead.encode() + text[mutant.end :])
        began = time.monotonic()
        test = _killer(tree, mutant.file, options)
        path.write_bytes(text)
        undecided += test.startswith(TOO_LONG)
        killed += bool(test) and not test.startswith(TOO_LONG)
        took = time.monotonic() - began
        line = text[: mutant.start].count(b"\n") + 1
        print(
            f"| {number} | {mutant.file} | {line} | `{mutant.instead}` | {test or '**none**'} | "
            f"{took:.0f} |",
            flush=True,
        )
    print(f"\n{killed} of {len(mutants)} killed, {undecided} undecided")
    return 0


def _killer(tree: Path, file: str, options: argparse.Namespace) -> str:
    """Return the first test that fails; empty if none does."""
    parts = Path(file).parts
    folders = [tree / "tests" / part for part in (*parts[1:-1][::-1], parts[0])]
    near = next((folder for folder in folders if folder.is_dir()), None)
    runs = [[str(near)]] if near else []
    for tests in runs if options.mirror and runs else [*runs, []]:
        words = [*USUAL, "-n", options.workers, "--deselect", LISTED, *tests]
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", *words],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = run.communicate(timeout=options.limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return f"{TOO_LONG} {options.limit:.0f} s"
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if run.returncode:
            return failed[0].split()[1] if failed else f"pytest ended with {run.returncode}"
    return ""


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


if __name__ == "__main__":
    sys.exit(main())
