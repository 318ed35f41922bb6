"""Whether every pinned dependency has a wheel for Linux, macOS and Windows: `make wheels`.

pip is asked, with the hashes of requirements.lock, what it would install on each system; nothing
is built and nothing installed. A package without a wheel would ask for a compiler there. Prints a
table and ends with 1 where a wheel is missing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
NONE = "no wheel"


class System(NamedTuple):
    """A system as wheels and environment markers name it."""

    name: str
    platforms: tuple[str, ...]
    markers: dict[str, str]


SYSTEMS = (
    System(
        "Linux x86_64",
        # glibc 2.28 is RHEL 8's and older than that of any Debian still cared for.
        (
            *(f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1)),
            *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
        ),
        {
            "os_name": "posix",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": "x86_64",
        },
    ),
    System(
        "macOS arm64",
        ("macosx_14_0_arm64",),  # pip adds the versions before
        {
            "os_name": "posix",
            "sys_platform": "darwin",
            "platform_system": "Darwin",
            "platform_machine": "arm64",
        },
    ),
    System(
        "Windows x86_64",
        ("win_amd64",),
        {
            "os_name": "nt",
            "sys_platform": "win32",
            "platform_system": "Windows",
            "platform_machine": "AMD64",
        },
    ),
)


def pinned(lock: Path) -> list[str]:
    """The lines of a lock file, each with its hashes."""
    joined = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in joined.splitlines() if "==" in line]


def needed(lines: Sequence[str], system: System, python: str) -> list[str]:
    """Lines whose markers hold on a system, without their markers: pip would judge by its own."""
    there = {
        **system.markers,
        "python_version": python,
        "python_full_version": f"{python}.8",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    found = []
    for line in lines:
        text, _, hashes = line.partition(" --hash")
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate(there):
            found.append(f"{wanted.name}{wanted.specifier} --hash{hashes}")
    return found


def wheels(lines: Sequence[str], system: System, python: str) -> dict[str, str]:
    """File by package; a package that pip finds no wheel for is left out."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text("\n".join(lines), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]
        command += ["--require-hashes", "--python-version", python, "--implementation", "cp"]
        command += [f"--platform={name}" for name in system.platforms]
        command += ["--target", folder, "--report", "-", "--requirement", str(wanted)]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        chosen = json.loads(asked.stdout)["install"]
        files = [one["download_info"]["url"].rsplit("/", 1)[-1] for one in chosen]
        return {parse_wheel_filename(file)[0]: file for file in files}
    if len(lines) == 1:
        return {}
    half = len(lines) // 2
    return wheels(lines[:half], system, python) | wheels(lines[half:], system, python)


def _kind(file: str) -> str:
    """What a wheel is made for, in short: ``any`` or its platform."""
    return re.sub(r"\.manylinux.*$", "", file.removesuffix(".whl").rsplit("-", 1)[-1])


def main() -> int:
    """Print the table; 1 if a wheel is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default="3.11", help="version of Python on the three systems")
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements.lock")
    asked = parser.parse_args()
    lines = pinned(asked.lock)
    wanted = {system.name: needed(lines, system, asked.python) for system in SYSTEMS}
    with ThreadPoolExecutor() as threads:
        found = dict(
            zip(
                wanted,
                threads.map(lambda one: wheels(wanted[one.name], one, asked.python), SYSTEMS),
                strict=True,
            )
        )
    names = sorted({Requirement(line.partition(" --hash")[0]).name for line in lines})
    title, missing = f"Python {asked.python}", 0
    width = max(map(len, [title, *names])) + 2
    print(f"{title:{width}}" + "".join(f"{one.name:28}" for one in SYSTEMS).rstrip())
    for name in names:
        row = ""
        for system in SYSTEMS:
            needs = any(line.startswith(f"{name}==") for line in wanted[system.name])
            file = found[system.name].get(name, "")
            missing += needs and not file
            row += f"{_kind(file) if file else NONE if needs else 'not needed':28}"
        print(f"{name:{width}}{row}".rstrip())
    print(f"{missing} missing of {sum(map(len, wanted.values()))}")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
