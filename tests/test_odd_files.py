"""Whatever a person names as a file, and whatever stands in it, ends in time and in one sentence.

Every option that takes a file, crossed with everything that is not the file it should be.
"""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import bidirectional, category

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nest_studio.cli import run

SMALL = "llama2-7b-64-h100"
FABRIC = "h100-spine-leaf-64"
PLAN = "dp=8,tp=8"
LONGEST = 2_000
STEERING = {"Cc", "Cs", "Zl", "Zp"}
TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def steering(text: str) -> list[str]:
    """What no terminal should be sent: controls, changes of direction, halves of characters."""
    return [
        sign
        for sign in text
        if sign not in "\n\t" and (category(sign) in STEERING or bidirectional(sign) in TURNING)
    ]


# What takes a file: the words before its name, the name's ending, the words after it.
READERS: dict[str, tuple[list[str], str, list[str]]] = {
    "scenario": (["plan"], ".toml", []),
    "scenario's fabric": (["plan", SMALL, "--set"], ".toml", ["fabric"]),
    "scenario's model": (["plan", SMALL, "--set"], ".json", ["workload.model"]),
    "scenario's profile": (["plan", SMALL, "--set"], ".json", ["accelerator.profile"]),
    "levels": (["levels"], ".toml", []),
    "levels of an import": (["levels"], ".graphml", []),
    "collective": (["collective"], ".conf", ["--op", "all-reduce", "--bytes", "1", "--size", "8"]),
    "traffic": (["traffic"], ".yaml", ["--pattern", "pp", "--replica", "8", "--bytes", "1"]),
    "bom": (["bom"], ".toml", []),
    "prices": (["bom", FABRIC, "--prices"], ".toml", []),
    "convert": (["convert"], ".json", ["unwritten.toml"]),
    "plan of price": (["price", SMALL, "--plan"], ".json", []),
    "placement": (["price", SMALL, "--plan", PLAN, "--placement"], ".csv", []),
    "placement of place": (["place", SMALL, "--plan", PLAN, "--placement"], ".json", []),
    "plan of memory": (["memory", SMALL, "--plan"], ".json", []),
    "plan of export": (["export", SMALL, "--to", "slurm", "--plan"], ".json", []),
    "trace": (["trace"], ".json", []),
    "profile": (["profile"], ".json", ["--device", "cpu"]),
    "profile to add to": (["profile", "bert-large", "--append", "--output"], ".json", []),
    "instance": (["solve"], ".json", []),
    "log of a cluster": (["inspect"], ".txt", []),
}
WRITERS: dict[str, tuple[list[str], str]] = {
    "convert": (["convert", FABRIC], ".toml"),
    "place": (["place", SMALL, "--plan", PLAN, "--output"], ".csv"),
    "export": (["export", SMALL, "--to", "slurm", "--plan", PLAN, "--output"], ""),
    "profile": (["profile", "bert-large", "--device", "cpu", "--output"], ".json"),
}


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _link(target: str = "") -> Callable[[Path], Path]:
    def made(path: Path) -> Path:
        path.symlink_to(target or path.name)
        return path

    return made


def _holding(content: bytes) -> Callable[[Path], Path]:
    def made(path: Path) -> Path:
        path.write_bytes(content)
        return path

    return made


def _zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.toml", "schema = 1\n" * 100)
    return path


def _packed_by_name(path: Path) -> Path:
    return _holding(gzip.compress(b"{}"))(Path(f"{path}.gz"))


NO_FILES: dict[str, Callable[[Path], Path]] = {
    "pipe": _pipe,
    "socket": _socket,
    "folder": _folder,
    "device without an end": _link("/dev/zero"),
    "empty device": _link("/dev/null"),
    "link to nothing": _link("nowhere"),
    "link to itself": _link(),
    "absent": lambda path: path,
    "beneath a file": lambda path: _holding(b"x")(path) / "under",
    "long name": lambda path: path.with_stem("n" * 300),
    "very long name": lambda path: path.with_stem("n" * 10_000),
    "NUL in its name": lambda path: path.with_stem("a\0b"),
    "bytes in its name": lambda path: path.with_stem("a\udcff"),
    "controls in its name": lambda path: path.with_stem("a\x1b[31m\u202eb\nc"),
}
NO_TEXTS: dict[str, Callable[[Path], Path]] = {
    "gzip": _holding(gzip.compress(b'{"a": 1}')),
    "gzip by its name": _packed_by_name,
    "zip": _zip,
    "latin-1": _holding("name = 'é'".encode("latin-1")),
    "utf-16": _holding("schema = 1".encode("utf-16")),
    "empty": _holding(b""),
    "NULs": _holding(bytes(100)),
    "too large": _holding(b"#" * 5_000_001),
    "controls": _holding(b"\x1b[31m\x07\x9b \xe2\x80\xae = [\n"),
}


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail rather than hang."""

    def late(number: int, frame: object) -> None:
        pytest.fail(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """The one sentence with which a command refuses, and nothing else."""
    with within(10):
        code = run(arguments)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.endswith(".\n")
    assert err.count("\n") == 1
    assert len(err) <= LONGEST
    assert not steering(err)
    return err


def _asked(reader: str, name: str) -> list[str]:
    before, _, after = READERS[reader]
    if before[-1] != "--set":
        return [*before, name, *after]
    quoted = "".join(f"\\u{ord(sign):04x}" if ord(sign) < 128 else sign for sign in name)
    return [*before, f'{after[0]}="{quoted}"']


@pytest.mark.sampled(16)
@pytest.mark.parametrize("odd", [*NO_FILES, *NO_TEXTS])
@pytest.mark.parametrize("reader", READERS)
def test_what_cannot_be_read_is_one_sentence(reader, odd, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = (NO_FILES | NO_TEXTS)[odd](Path(f"odd{READERS[reader][1]}"))
    told = refused(capsys, _asked(reader, os.path.abspath(path)))
    if "gzip" in odd and reader != "profile to add to":  # it asks for an ending first
        assert "unpack it" in told
    if odd in ("pipe", "device without an end", "empty device"):
        assert "must be a regular file" in told


@pytest.mark.parametrize(
    "odd",
    [
        "pipe",
        "socket",
        "folder",
        "beneath a file",
        "link to itself",
        "long name",
        "NUL in its name",
    ],
)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_cannot_be_written_is_one_sentence(writer, odd, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before, ending = WRITERS[writer]
    if writer == "export" and odd == "folder":
        pytest.skip("a folder is what export writes into")
    path = NO_FILES[odd](Path(f"odd{ending or '.toml'}"))
    refused(capsys, [*before, str(path)])


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (["levels", FABRIC], ">/dev/full"),
        (["levels", FABRIC, "--json"], ">&-"),
        (["--help"], ">/dev/full"),
    ],
)
@pytest.mark.sampled(3)
def test_output_that_cannot_be_printed_is_one_sentence(asked, where):
    """From the outside: what the interpreter itself complains about as it ends counts too."""
    line = f'"$0" -m nest_studio {" ".join(asked)} {where}; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(
        ["bash", "-c", line, sys.executable], capture_output=True, text=True, timeout=60
    )
    assert ended.stderr.count("\n") <= 1
    assert "Traceback" not in ended.stderr
    if asked[0] != "--help":
        assert ended.returncode == 2
        assert ended.stderr.startswith("standard output must take what is printed")


@pytest.mark.check
def test_who_reads_a_pipe_may_stop():
    """``| head``: no complaint, whether the reader left before or after what was printed."""
    line = f'"$0" -m nest_studio levels {FABRIC} --json | true; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(
        ["bash", "-c", line, sys.executable], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")


odd_text = st.text(st.characters(), max_size=60) | st.sampled_from(
    ["A" * 10_000, "a b. " * 3_000, "\x1b]0;title\x07", "\u202etxt.exe", "\x9b31m", "\ud800"]
)
LINES: list[Callable[[str], list[str]]] = [
    lambda text: [text],
    lambda text: ["levels", text],
    lambda text: ["levels", FABRIC, text],
    lambda text: ["levels", f"--{text}"],
    lambda text: ["plan", SMALL, "--set", text],
    lambda text: ["plan", SMALL, "--set", f"{text}=1"],
    lambda text: ["plan", SMALL, "--set", f"search.{text}=1"],
    lambda text: ["plan", SMALL, "--top", text],
    lambda text: ["plan", SMALL, "--set", f"workload.precision={text}"],
    lambda text: ["price", SMALL, "--plan", f"dp={text}"],
    lambda text: ["price", SMALL, "--plan", f"{text}=1"],
    lambda text: ["price", SMALL, "--plan", f"--tensor-model-parallel-size {text}"],
    lambda text: ["collective", FABRIC, "--op", text, "--bytes", "1", "--size", "8"],
    lambda text: ["traffic", FABRIC, "--pattern", text, "--replica", "8", "--bytes", "1"],
    lambda text: ["export", SMALL, "--to", text],
    lambda text: ["convert", FABRIC, text],
    lambda text: ["bom", FABRIC, "--prices", text],
    lambda text: ["trace", text],
    lambda text: ["trace", "bert-large", "--strategy", text],
    lambda text: ["paper", text],
    lambda text: ["app", "--prefix", f" {text}"],
]


def _said(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with within(10):
        code = run(arguments)
    out, err = capsys.readouterr()
    assert code in (0, 2)
    assert not steering(out + err)
    if code == 2:
        assert out == ""
        assert err.count("\n") == 1
        assert len(err) <= LONGEST


def _fuzzed(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def _words_are_repeated_briefly(capsys, line, text):
    asked = LINES[line](text)
    if "--help" in asked or "-h" in asked:
        return
    _said(capsys, asked)


@_fuzzed(60)
@example(line=0, text="A" * 10_000)
@example(line=3, text="\x1b[31m")
@given(line=st.integers(0, len(LINES) - 1), text=odd_text)
def test_words_of_a_command_line_are_repeated_briefly(capsys, tmp_path_factory, line, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())
        _words_are_repeated_briefly(capsys, line, text)
