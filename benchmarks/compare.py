"""Every figure that moved between two versions: ``make compare REF=<commit>``.

The version ``REF`` (standard: the last commit) and the working tree are copied into a temporary
folder, both beside the same ``../shared``, and each answers the same command lines with its own
``nest-studio``, in the same environment. So nothing in the checkout is written, and what differs
is the code. Answers are compared field by field; times of the search itself are left out.

Printed: per class of figures how many were compared and how many moved; then command by command
what moved, from what to what, and the relative change; the most per command is ``MOST``, the whole
list is the CSV file of ``--output``. Commands that one of the two lacks, and presets that only one
has, are listed. ``python benchmarks/compare.py [REF] [--output FILE]``.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from shlex import split
from shutil import copyfile

ROOT = Path(__file__).resolve().parents[1]
MOST = 12
"""Moved figures that are printed of one command."""

UNSTEADY = re.compile(r"(?:solve|search)_(?:seconds|times)$|peak_memory_bytes$")
"""Ends of the names of fields that differ from run to run."""
TOOK = re.compile(r"(?<=took |akes |most )[\d.]+ (?:s|ms|µs)\b")
"""How long searches took, where the paper's paragraphs say so."""

KEYS = ("id", "name", "algorithm", "class", "part")
"""Fields by which entries of a list are told apart; otherwise their place counts."""

LACKING = ("No such command", "No such option")

MIXED = """'"mixed"'"""
ONE_ORDER = """--set search.schedule='"1f1b"' --set 'search.order=[["tp","cp","dp","pp"]]'"""

CASES = {
    "plans": (
        "plan {scenario} --top 3",
        f"plan {{scenario}} --set search.zero=2 {ONE_ORDER}",
        f"plan {{scenario}} --set search.tp=8 --set search.stage_strategies={MIXED} {ONE_ORDER}",
        "plan {scenario} --set workload.sequence_length_tokens=32768",
        "plan {scenario} --set workload.precision='\"fp8\"'",
    ),
    "memory": ("memory {scenario} --plan {plan}",),
    "prices": ("price {scenario} --plan {plan}",),
    "exports": ("export {scenario} --to megatron", "export {scenario} --to slurm"),
    "paper rows": ("paper {paper} --costs published", "paper {paper} --costs own"),
    "instances": ("solve {instance}",),
    "validation": (
        "validate training",
        "validate {shared}/data/nccl_measured.csv",
        "validate {shared}/data/collectives_measured.csv",
    ),
    "sizing": ("levels {fabric}",),
    "bills": ("bom {fabric}",),
    "collectives": (
        "collective {fabric} --op all-reduce --bytes 1e9 --size 8",
        "collective {fabric} --op all-gather --bytes 1e6 --size 4 --stride 8 --concurrent all",
        "collective {fabric} --op all-to-all --bytes 1e8 --size 16 --concurrent all",
        "traffic {fabric} --pattern pp --replica 4 --stage 2 --bytes 1e8",
    ),
    "models": ("trace {model}", "trace {model} --strategy tp=4,sp=true"),
}
"""Command lines by class of figures, with what they are asked of in braces."""

DEGREES = ((1, 8, 1), (1, 1, 8), (0, 8, 4), (1, 4, 2), (2, 8, 4), (3, 1, 1))
"""ZeRO stage, tensor and pipeline degree of the plans that are priced; the rest is data."""

PAPER = (*(f"figure{n}" for n in (2, 5, 6, 7, 10, 11)), *(f"table{n}" for n in range(1, 8)))


@dataclass(frozen=True, slots=True)
class Moved:
    """One figure that is not the same in both versions; None where one has none."""

    kind: str
    command: str
    figure: str
    before: object
    after: object

    @property
    def relative(self) -> float | None:
        """The change as a share of the earlier figure; None where that says nothing."""
        numbers = [type(value) in (int, float) for value in (self.before, self.after)]
        if not all(numbers) or not self.before:
            return None
        return self.after / self.before - 1

    def line(self) -> str:
        change = "" if self.relative is None else f"  {self.relative:+.3%}"
        return f"  {self.figure}: {_short(self.before)} -> {_short(self.after)}{change}"


def cases(trees: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Class and command line of everything that is asked, of the presets of either version."""
    shared = trees[0].parent / "shared"
    filled: dict[str, list[str]] = {
        "fabric": _presets(trees, "fabrics"),
        "model": _presets(trees, "models"),
        "paper": list(PAPER),
        "instance": sorted(str(path) for path in shared.glob("data/nest_instances/*.json")),
        "shared": [str(shared)] if shared.is_dir() else [],
    }
    plans = {name: list(_plans(trees, name)) for name in _presets(trees, "scenarios")}
    for kind, templates in CASES.items():
        for template in templates:
            if "{scenario}" in template:
                for name, priced in plans.items():
                    for plan in priced if "{plan}" in template else [""]:
                        yield kind, template.format(scenario=name, plan=plan)
                continue
            field = next((name for name in filled if f"{{{name}}}" in template), None)
            for value in [""] if field is None else filled[field]:
                yield kind, template if field is None else template.format(**{field: value})


def _presets(trees: Sequence[Path], kind: str) -> list[str]:
    return sorted({path.stem for tree in trees for path in tree.glob(f"presets/{kind}/*.toml")})


def _plans(trees: Sequence[Path], name: str) -> Iterator[str]:
    """Plans that fill a scenario's fabric, as many devices as its name says."""
    path = next(
        path for tree in trees if (path := tree / f"presets/scenarios/{name}.toml").exists()
    )
    fabric = tomllib.loads(path.read_text(encoding="utf-8"))["fabric"]
    size = next(
        size
        for tree in trees
        if (size := _devices(tree / f"presets/fabrics/{fabric}.toml")) is not None
    )
    for zero, tp, pp in DEGREES:
        yield f"dp={size // (tp * pp)},tp={tp},pp={pp},zero={zero},recompute=full"


def _devices(path: Path) -> int | None:
    """How many devices a fabric's file asks for; None where there is no such file."""
    if not path.exists():
        return None
    fabric = tomllib.loads(path.read_text(encoding="utf-8"))
    if "clos" in fabric:
        return int(fabric["clos"]["devices"])
    shape = fabric.get("torus", fabric.get("tpu_slice", {})).get("shape")
    return prod(shape or [level["group_size"] for level in fabric["level"]])


def figures(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a JSON value with their paths; list entries by name where they have one."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not UNSTEADY.search(key):
                yield from figures(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        names = Counter[str]()
        for place, item in enumerate(value):
            name = _name(item, place)
            names[name] += 1
            again = f" #{names[name]}" if names[name] > 1 else ""
            yield from figures(item, f"{path}[{name}{again}]")
    elif path == "paragraph" and isinstance(value, str):
        yield path, TOOK.sub("…", value)
    else:
        yield path, value


def _name(item: object, place: int) -> str:
    named = [str(item[key]) for key in KEYS if key in item] if isinstance(item, Mapping) else []
    return named[0] if named else str(place)


def moved(kind: str, command: str, before: object, after: object) -> list[Moved]:
    """What differs between two answers to one command."""
    old, new = dict(figures(before)), dict(figures(after))
    return [
        Moved(kind, command, path, old.get(path), new.get(path))
        for path in old | new
        if old.get(path) != new.get(path)
    ]


def answer(command: str, main: Callable[[], None]) -> object:
    """What one command prints: its JSON, or how it ended."""
    sys.argv = ["nest-studio", *split(command), "--json"]
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:  # a defect of that version is an answer like any other
        code, err = 1, io.StringIO(f"{type(error).__name__}: {error}")
    if code == 0:
        return json.loads(out.getvalue())
    return {"exit code": code, "error": err.getvalue().strip()}


def serve(tree: Path) -> None:
    """Answer the command lines on standard input, one JSON line each, as the version ``tree``."""
    sys.path.insert(0, str(tree))
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, name = project["project"]["scripts"]["nest-studio"].partition(":")
    main = getattr(import_module(module), name)
    if not Path(sys.modules[module].__file__ or "").is_relative_to(tree):
        raise SystemExit(f"{module} was imported from elsewhere than {tree}")
    printed = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        print(json.dumps(answer(line.strip(), main)), file=printed, flush=True)


def answers(tree: Path, commands: Sequence[str]) -> list[object]:
    """What the version ``tree`` answers, in a process of its own."""
    script = tree.parent / "compare.py"
    done = subprocess.run(
        [sys.executable, str(script), "--serve", str(tree)],
        input="\n".join(commands),
        text=True,
        stdout=subprocess.PIPE,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def copies(ref: str, folder: Path) -> tuple[Path, Path]:
    """The version ``ref`` and the working tree, as two trees beside the same ``shared``."""
    before, after = folder / "before", folder / "after"
    git = ["git", "-C", str(ROOT)]
    archive = subprocess.run([*git, "archive", ref], capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"REF must be a commit of this repository, but is {ref!r}.")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(before, filter="data")
    listed = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split(
        "\0"
    ):
        if (ROOT / name).is_file():
            (after / name).parent.mkdir(parents=True, exist_ok=True)
            copyfile(ROOT / name, after / name)
    copyfile(__file__, folder / "compare.py")
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    return before, after


def _short(value: object, most: int = 90) -> str:
    text = "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def lacks(said: object) -> bool:
    """Whether a version knows no such command, option or preset."""
    error = str(said.get("error", "")) if isinstance(said, Mapping) else ""
    return error.startswith(LACKING) or " must be a preset or a path" in error


def report(
    ref: str, asked: Sequence[tuple[str, str]], sides: Sequence[Sequence[object]]
) -> list[Moved]:
    """Print the two versions side by side; return everything that moved."""
    found: list[Moved] = []
    lacking: list[str] = []
    compared = Counter[str]()
    for (kind, command), before, after in zip(asked, *sides, strict=True):
        if lacks(before) != lacks(after):
            lacking.append(f"{'before' if lacks(before) else 'after'}: {command}")
            continue
        compared[kind] += sum(1 for _ in figures(after))
        found += moved(kind, command, before, after)
    print(f"{ref} -> working tree: {len(asked)} commands, {sum(compared.values())} figures\n")
    print(f"{'class':12} {'figures':>9} {'moved':>7}  largest relative change")
    for kind, count in compared.items():
        own = [item for item in found if item.kind == kind]
        most = max((abs(item.relative) for item in own if item.relative is not None), default=0.0)
        print(f"{kind:12} {count:9} {len(own):7}  {most:.3%}")
    if lacking:
        print("\nLacking", *lacking, sep="\n  ")
    for command in dict.fromkeys(item.command for item in found):
        own = [item for item in found if item.command == command]
        print(f"\n{command}", *(item.line() for item in own[:MOST]), sep="\n")
        if len(own) > MOST:
            print(f"  and {len(own) - MOST} more")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ref", nargs="?", default="HEAD", help="a commit; standard: the last one")
    parser.add_argument("--output", type=Path, help="CSV file for everything that moved")
    parser.add_argument("--only", default="", help="classes, with commas; standard: all")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        trees = copies(options.ref, Path(folder))
        kinds = options.only.split(",") if options.only else list(CASES)
        asked = [case for case in cases(trees) if case[0] in kinds]
        commands = [command for _, command in asked]
        with ThreadPoolExecutor(2) as pool:
            sides = list(pool.map(lambda tree: answers(tree, commands), trees))
        found = report(options.ref, asked, sides)
    if options.output:
        with options.output.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["class", "command", "figure", "before", "after", "relative"])
            for item in found:
                fields = (item.kind, item.command, item.figure, item.before, item.after)
                writer.writerow([*fields, item.relative])


if __name__ == "__main__":
    main()
