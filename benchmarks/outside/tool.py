"""A tool, its environment, and what is said about it."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "outside"
INSIDE = Path(__file__).parent / "inside"
INSTALL_S, RUN_S = 1_800, 1_800


class Missing(Exception):
    """The tool cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of it: of so many things that were tried so many were accepted.

    ``tried`` is None where nothing can be counted.
    """

    tool: str
    version: str
    what: str
    tried: int | None
    accepted: int | None
    remark: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and what pip installs for it.

    Parameters
    ----------
    name, version : str
        As its package and release are called.
    requirements : tuple of str
        With their versions.
    alone : tuple of str
        Installed without what they ask for.
    python : str
        Of the environment; empty for that of the project.
    torch : bool
        Whether it imports PyTorch: that of the project's own environment, which it then shares.
    """

    name: str
    version: str
    requirements: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    python: str = ""
    torch: bool = False

    def interpreter(self) -> Path:
        """Return the Python of the tool's environment, which is made where it is missing.

        Raises
        ------
        Missing
        """
        home = BUILD / self.name
        stamp, state = home / "installed.json", json.dumps([*self.requirements, "|", *self.alone])
        python = home / "bin" / "python"
        if stamp.exists() and stamp.read_text() == state:
            return python
        base = _python(self.python) if self.python else sys.executable
        shutil.rmtree(home, ignore_errors=True)
        _run([base, "-m", "venv", str(home)])
        if self.torch:
            _share_torch(home)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        if self.requirements:
            _run([*pip, *self.requirements])
        if self.alone:
            _run([*pip, "--no-deps", *self.alone])
        stamp.write_text(state)
        return python

    def run(self, program: str, *words: object, environment: dict[str, str] | None = None) -> str:
        """Return what a program of ``inside/`` prints, run by the tool's Python."""
        command = [str(self.interpreter()), "-W", "ignore", str(INSIDE / program)]
        more = os.environ | environment if environment else None
        return _run([*command, *map(str, words)], RUN_S, environment=more)

    def row(self, what: str, tried: int | None, accepted: int | None, remark: str = "") -> Row:
        """Return a row about it."""
        return Row(self.name, self.version, what, tried, accepted, remark)


@dataclass(frozen=True, slots=True)
class Debian:
    """Programs of Debian packages, unpacked and not installed.

    Parameters
    ----------
    name : str
        The package whose version is said.
    packages : tuple of str
        All that are unpacked, libraries among them.
    suite : str
        Of Debian, with its own C library among the packages; empty for that of this machine.
    """

    name: str
    packages: tuple[str, ...]
    suite: str = ""

    def root(self) -> Path:
        """Return the folder with their files, which are fetched where they are missing.

        Raises
        ------
        Missing
        """
        home = BUILD / "-".join(filter(None, ("debian", self.name, self.suite)))
        if not (home / "unpacked").exists():
            if shutil.which("apt-get") is None:
                raise Missing("there is no apt-get here")
            shutil.rmtree(home, ignore_errors=True)
            (home / "packages").mkdir(parents=True)
            words = ["apt-get", "-o", "APT::Sandbox::User=root", *self._lists(home)]
            if self.suite:
                _run([*words, "update"])
            _run([*words, "download", *self.packages], folder=home / "packages")
            for file in sorted((home / "packages").glob("*.deb")):
                _run(["dpkg", "-x", str(file), str(home / "root")])
            (home / "unpacked").touch()
        return home / "root"

    def _lists(self, home: Path) -> list[str]:
        """Return apt's options for lists of packages that are not this machine's."""
        if not self.suite:
            return []
        for folder in ("lists/partial", "cache/archives/partial"):
            (home / folder).mkdir(parents=True)
        (home / "status").touch()
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Component: main"]
        uri = _run(targets).split()[0]
        source = f"deb [signed-by={key}] {uri} {self.suite} main\n"
        (home / "sources.list").write_text(source)
        options = {
            "Dir::Etc::sourcelist": home / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": home / "lists",
            "Dir::State::status": home / "status",
            "Dir::Cache": home / "cache",
        }
        return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which the programs find each other."""
        root = self.root()
        libraries = sorted({str(file.parent) for file in root.glob("usr/lib/**/*.so*")})
        programs = [str(root / "usr" / place) for place in ("bin", "sbin")]
        return os.environ | {
            "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
            "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        }

    def run_python(self, version: str, program: str, *words: object) -> str:
        """Return what a program of ``inside/`` prints, run by the Python among the packages.

        It has its own C library, so the packages' loader starts it.
        """
        root = self.root()
        libraries = next(root.glob("usr/lib/*/ld-linux-*")).parent
        loader = next(libraries.glob("ld-linux-*"))
        command = [str(loader), "--library-path", str(libraries)]
        command += [str(root / "usr/bin" / f"python{version}"), str(INSIDE / program)]
        homes = {
            "PYTHONHOME": str(root / "usr"),
            "PYTHONPATH": str(root / "usr/lib/python3/dist-packages"),
        }
        return _run([*command, *map(str, words)], RUN_S, environment=os.environ | homes)

    def version(self) -> str:
        """Return the version of the package that gives the name."""
        file = next((self.root().parent / "packages").glob(f"{self.name}_*.deb"))
        return file.name.split("_")[1]


def read_cases(tool: Tool, program: str, folder: Path) -> list[dict[str, Any]]:
    """Return what a program says of every case of a folder: name, accepted, reason.

    It is given the folder, which holds ``cases.json``, and writes ``answers.json`` beside it.
    """
    answers = folder / "answers.json"
    answers.unlink(missing_ok=True)
    tool.run(program, folder)
    read: list[dict[str, Any]] = json.loads(answers.read_text())
    return read


def reasons(texts: Sequence[str], most: int = 4) -> str:
    """Return texts by how often they came, numbers of a case left out of the comparison.

    Examples
    --------
    >>> reasons(["pp 3 is odd", "pp 5 is odd", "no"])
    '2 x pp 3 is odd; 1 x no'
    """
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(re.sub(r"\d+", "#", text), []).append(text)
    ordered = sorted(groups.values(), key=len, reverse=True)
    said = [f"{len(group)} x {group[0]}" for group in ordered[:most]]
    rest = sum(map(len, ordered[most:]))
    return "; ".join(said + ([f"{rest} others"] if rest else []))


def _python(version: str) -> str:
    """Return a Python of a version, on the path or among those of pyenv."""
    name = f"python{version}"
    homes = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}"))
    for place in filter(None, [shutil.which(name), *map(str, homes)]):
        # A command of pyenv is there for versions that it does not start.
        if not subprocess.run([place, "--version"], capture_output=True).returncode:
            return place
    raise Missing(f"there is no {name} here")


def _run(
    words: Sequence[str],
    limit_s: int = INSTALL_S,
    folder: Path = BUILD,
    environment: dict[str, str] | None = None,
) -> str:
    BUILD.mkdir(parents=True, exist_ok=True)  # some tools write where they run
    try:
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{Path(words[0]).name} took more than {limit_s} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise Missing(" ".join(lines[-1].split())[:300])
    return done.stdout


def _share_torch(home: Path) -> None:
    """Let an environment import the project's PyTorch, which pip leaves as it is.

    The links lie outside of the environment's own packages, where pip never writes; what PyTorch
    needs pip installs like the rest.
    """
    links = home / "torch"
    links.mkdir()
    package = importlib.metadata.distribution("torch")
    tops = {Path(str(file)).parts[0] for file in package.files or ()}
    for top in tops - {"..", "__pycache__"}:
        (links / top).symlink_to(str(package.locate_file(top)))
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(_run([str(home / "bin" / "python"), "-c", code]).strip())
    (packages / "torch.pth").write_text(f"{links}\n")
    needed = [entry for entry in package.requires or () if "extra ==" not in entry]
    _run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *needed])
