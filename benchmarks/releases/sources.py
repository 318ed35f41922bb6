"""Parts of a release's sources, and stand-ins for what they read."""

import ast
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

FOLDER = Path("build/releases")
TIMES = (31.0, 6.1, 5.6, *[5.5] * 9)
"""Of the steps that are printed."""
DEGREES = {"pp": 1, "dp_replicate": 1, "dp_shard": 8, "cp": 1, "tp": 4, "ep": 1, "etp": 1}


class Source:
    """A module of a release, whose parts are run one by one."""

    def __init__(self, release: Path, path: str) -> None:
        self.name = Path(path).name
        self.tree = ast.parse((release / path).read_text())

    def functions(self, *names: str, **surroundings: Any) -> SimpleNamespace:
        """Return functions and classes of these names, that see the surroundings as globals."""
        nodes = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names
        ]
        for node in nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef):
                    inner.returns = None
                    inner.decorator_list = [
                        decorator
                        for decorator in inner.decorator_list
                        if ast.unparse(decorator).rpartition(".")[2]
                        in ("property", "staticmethod", "setter")
                    ]
                    for argument in (*inner.args.args, *inner.args.kwonlyargs):
                        argument.annotation = None
        module = ast.Module(list(nodes), [])
        exec(compile(ast.fix_missing_locations(module), self.name, "exec"), surroundings)
        return SimpleNamespace(**{name: surroundings[name] for name in names})

    def text(self, begin: str, values: Mapping[str, Any]) -> str:
        """Return what the call with a text that begins so is given to print."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and node.args and begin in ast.unparse(node.args[0]):
                expression = ast.Expression(node.args[0])
                return str(eval(compile(expression, self.name, "eval"), dict(values)))
        raise LookupError(begin)


def unpacked(name: str, version: str) -> Path:
    """Return the folder of a release's files, which is filled once."""
    folder = FOLDER / f"{name}-{version}"
    if not folder.exists():
        archives = FOLDER / "archives" / folder.name
        kind = ":all: --python-version 3.12" if name != "deepspeed" else "none"
        words = f"-m pip download --no-deps --only-binary {kind} -q".split()
        asked = ["-d", str(archives), f"{name}=={version}"]
        subprocess.run([sys.executable, *words, *asked], check=True, capture_output=True)
        (archive,) = archives.iterdir()
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as files:
                files.extractall(folder)
        else:
            with tarfile.open(archive) as files:
                files.extractall(FOLDER, filter="data")
    return folder


class Args(SimpleNamespace):
    """Arguments, of which those that are not given are None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class Loss(float):
    """What a tensor of one number does here."""

    def __add__(self, other: float) -> "Loss":
        return Loss(float(self) + other)

    def item(self) -> float:
        return float(self)


def torch_of(**memory_bytes: int) -> MagicMock:
    """Return a torch whose device holds this much memory."""
    torch = MagicMock()
    torch.tensor = lambda *_, **__: Loss(0)
    torch.distributed.get_rank = lambda **_: 0
    torch.cuda.memory_stats = lambda: {
        "allocated_bytes.all.peak": 61_500_000_000,
        "reserved_bytes.all.peak": 66_020_000_000,
        "num_alloc_retries": 0,
    }
    for name, amount in memory_bytes.items():
        setattr(torch.cuda, name, lambda amount=amount: amount)
    return torch
