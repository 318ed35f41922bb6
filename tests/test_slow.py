"""Small questions about large or odd input are answered, or refused, and do not hang.

How long they take is measured by ``benchmarks/test_odd_input.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import pytest

from nest_studio.cli import run

HANGS_S = 60.0
"""Of the processor, not of the clock: other tests run beside these. Ten times what any takes."""

ALONE = ("--set", "baselines.names=[]")
Pairs = list[tuple[int, int]]
SHAPES: dict[str, tuple[int, Callable[[int], Pairs]]] = {
    "line": (1_000, lambda n: [(i, i + 1) for i in range(n - 1)]),
    "ring": (1_000, lambda n: [(i, (i + 1) % n) for i in range(n)]),
    "star": (1_000, lambda n: [(0, i) for i in range(1, n)]),
    "tree": (1_000, lambda n: [((i - 1) // 2, i) for i in range(1, n)]),
    "two sides": (200, lambda n: [(i, n // 2 + j) for i in range(n // 2) for j in range(n // 2)]),
    "clique": (200, lambda n: list(combinations(range(n), 2))),
}
SCENARIO = """
schema = 1
name = "s"
fabric = "h100-spine-leaf-64"
accelerator = "h100-80gb"
[workload]
model = "llama2-7b"
sequence_length_tokens = 4096
global_batch_sequences = 1024
"""


def _drawing(devices: int, pairs: Pairs) -> str:
    elements = ", ".join(f'{{id="{i}", role="device"}}' for i in range(devices))
    links = ", ".join(f'{{a="{a}", b="{b}", bandwidth_GBps=50.0}}' for a, b in pairs)
    return f'schema=1\nname="f"\nkind="graph"\nelement=[{elements}]\nlink=[{links}]\n'


@pytest.mark.sampled(24)
@pytest.mark.parametrize("command", ["levels", "bom", "collective"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_drawing_does_not_hang(shape, command, tmp_path, capsys):
    devices, pairs = SHAPES[shape]
    file = tmp_path / "f.toml"
    file.write_text(_drawing(devices, pairs(devices)))
    run(["levels", "h100-spine-leaf-64"])  # what is loaded and compiled once is not counted
    more = (
        ["--op", "all-reduce", "--bytes", "1e6", "--size", "8"] if command == "collective" else []
    )
    began = time.process_time()
    assert run([command, str(file), *more]) == 0
    assert time.process_time() - began < HANGS_S
    capsys.readouterr()


@pytest.mark.check
@pytest.mark.parametrize("shape", ["clique", "two sides"])
def test_a_plan_on_a_large_drawing_does_not_hang(shape, tmp_path, capsys):
    """A device has hundreds of links, but a flow takes few: bounds that know it exclude most."""
    devices, pairs = {**SHAPES, "clique": (300, SHAPES["clique"][1])}[shape]
    (tmp_path / "f.toml").write_text(_drawing(devices, pairs(devices)))
    (tmp_path / "s.toml").write_text(SCENARIO.replace("h100-spine-leaf-64", "f.toml"))
    run(["plan", "llama2-7b-64-h100", "--set", "search.tp=8"])
    began = time.process_time()
    assert run(["plan", str(tmp_path / "s.toml")]) == 0
    assert time.process_time() - began < HANGS_S
    assert "proven optimal" in capsys.readouterr().out


@pytest.mark.parametrize(
    "beside", [ALONE, pytest.param((), marks=pytest.mark.check)], ids=["alone", "baselines"]
)
def test_a_batch_of_many_divisors_is_planned(beside, capsys):
    """No number up to a million has more than 720,720, which has 240."""
    small = ["plan", "llama2-7b-64-h100", *beside, "--set"]
    run([*small, "search.tp=8"])
    began = time.process_time()
    assert run([*small, "workload.global_batch_sequences=720720"]) == 0
    assert time.process_time() - began < HANGS_S
    assert "proven optimal" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [
        ["--size", "64", "--concurrent", "all"],
        pytest.param(["--size", "1040000"], marks=pytest.mark.check),
    ],
)
@pytest.mark.check
def test_a_collective_of_a_million_devices_is_a_sentence(more, tmp_path, capsys):
    """Which algorithm is the fastest is not said of those alone that are quickly counted."""
    file = tmp_path / "f.toml"
    file.write_text(
        'schema=1\nname="f"\nkind="torus"\n[torus]\nshape=[100,100,104]\nwrap=[true,true,true]\n'
        "link_bandwidth_GBps=50.0\nhop_latency_us=1.0\n"
    )
    began = time.process_time()
    assert run(["collective", str(file), "--op", "all-reduce", "--bytes", "1e9", *more]) == 2
    assert time.process_time() - began < HANGS_S
    assert "collective must not cross more than" in capsys.readouterr().err


@pytest.mark.parametrize(("routers", "global_links"), [(1_000, 1), (1, 1_000_000)])
def test_a_dragonfly_of_more_links_than_memory_is_a_sentence(
    routers, global_links, tmp_path, capsys
):
    """A million devices are allowed; a link between every two of them would fill terabytes."""
    file = tmp_path / "f.toml"
    file.write_text(
        f'schema=1\nname="f"\nkind="dragonfly"\n[dragonfly]\nrouters_per_group={routers}\n'
        f"nodes_per_router=1\nglobal_links_per_router={global_links}\n"
        "local_bandwidth_GBps=50.0\nglobal_bandwidth_GBps=50.0\nhop_latency_us=0.6\n"
    )
    for command in ("levels", "bom"):
        assert run([command, str(file)]) == 2
        assert "dragonfly must have at most 20,000,000 links" in capsys.readouterr().err


def test_a_baseline_named_twice_is_a_sentence(tmp_path, capsys):
    """Each would be searched again."""
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO + '[baselines]\nnames = ["mcmc", "mist", "mcmc"]\n')
    assert run(["plan", str(file)]) == 2
    assert "baselines.names must name every baseline once" in capsys.readouterr().err


def test_one_device_has_no_collective(tmp_path, capsys):
    """It is said of the fabric, not as a range that is empty."""
    file = tmp_path / "f.toml"
    file.write_text(_drawing(1, []).replace("link=[]\n", ""))
    asked = ["collective", str(file), "--op", "all-reduce", "--bytes", "1", "--size"]
    for size in ("1", "2"):
        assert run([*asked, size]) == 2
        assert "fabric must have two devices or more" in capsys.readouterr().err
