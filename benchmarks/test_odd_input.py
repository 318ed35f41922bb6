"""How long large or odd input takes, from the command line's arguments to its answer or refusal."""

from __future__ import annotations

from itertools import combinations

import pytest

from nest_studio.cli import run

TORUS = """
schema = 1
name = "f"
kind = "torus"
[torus]
shape = [100, 100, 104]
wrap = [true, true, true]
link_bandwidth_GBps = 50.0
hop_latency_us = 1.0
"""
ALL_REDUCE = ("--op", "all-reduce", "--bytes", "1e9", "--size", "64", "--concurrent", "all")


def clique(devices: int) -> str:
    """A drawing with a link between every two devices."""
    elements = ", ".join(f'{{id="{i}", role="device"}}' for i in range(devices))
    links = ", ".join(
        f'{{a="{a}", b="{b}", bandwidth_GBps=50.0}}' for a, b in combinations(range(devices), 2)
    )
    return f'schema=1\nname="f"\nkind="graph"\nelement=[{elements}]\nlink=[{links}]\n'


@pytest.mark.parametrize(
    ("fabric", "arguments", "ends"),
    [
        (clique(300), ("levels", "f.toml"), 0),
        (clique(300), ("bom", "f.toml"), 0),
        (TORUS, ("collective", "f.toml", *ALL_REDUCE), 2),
        ("", ("plan", "llama2-7b-64-h100", "--set", "workload.global_batch_sequences=720720"), 0),
    ],
    ids=["levels of a clique", "bill of a clique", "a million devices", "many divisors"],
)
def test_odd_input(benchmark, tmp_path, monkeypatch, capsys, fabric, arguments, ends):
    (tmp_path / "f.toml").write_text(fabric)
    monkeypatch.chdir(tmp_path)
    benchmark.pedantic(lambda: run(list(arguments)), rounds=3, warmup_rounds=1)
    assert run(list(arguments)) == ends
    capsys.readouterr()
