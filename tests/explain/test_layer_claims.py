"""What is said of a layer names all that read alike, and counts what it says; operators made up."""

from __future__ import annotations

import random
import re
from types import SimpleNamespace

import pytest

from nest_core.report.explain.layer_summary import kept_finding, layer_finding

NAMES = ("query", "key", "value", "attention", "mlp_up", "mlp_down", "norm")
BOUNDS = {"arithmetic": "arithmetic", "memory": "memory bandwidth", "the host": "the host"}
SEEDS = 200


def layer_of(seed):
    draw = random.Random(seed)
    parts = [
        SimpleNamespace(
            name=name,
            bound=draw.choice(("arithmetic", "memory", "host")),
            runs=draw.random() < 0.9,
            seconds=draw.choice((1.0, 1.0, 1.0001, 2.0, 3.0)),
            kept_bytes=draw.choice((0.0, 2.0**20, 2.0**20, 2.0**21)),
        )
        for name in draw.sample(NAMES, draw.randint(1, len(NAMES)))
    ]
    parts[0].runs = True
    running = [part for part in parts if part.runs]
    return SimpleNamespace(
        parts=parts,
        device_s=sum(part.seconds for part in running),
        kept_bytes=sum(part.kept_bytes for part in parts),
        recompute=draw.choice(("none", "selective", "full")),
    )


def tied(names):
    """Up to two are named; of more the first, and how many others."""
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"


def three(value):
    return f"{100 * value:.3g} %"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_who_takes_and_keeps_most_of_a_layer_is_so(seed):
    layer = layer_of(seed)
    running = [part for part in layer.parts if part.runs]
    words = layer_finding(layer)
    counts = {
        text: sum(part.bound == key for part in running)
        for key, text in zip(("arithmetic", "memory", "host"), BOUNDS.values(), strict=True)
    }
    most = [name for name, count in counts.items() if count == max(counts.values())]
    if len(running) == 1:
        assert words.lower() == f"{most[0]} bounds {running[0].name}, the only operator"
    else:
        match = re.fullmatch(
            r"(.+?) bounds? (all (\d+)|(\d+) of (\d+)) operators( each)?; "
            r"(.+?) (?:takes|each take) (\S+ %) of the time",
            words,
        )
        assert set(re.split(r", | and ", match[1].lower())) == set(most)
        assert (match[6] is None) == (len(most) == 1)
        said = (match[3], match[3]) if match[3] else (match[4], match[5])
        assert tuple(map(int, said)) == (max(counts.values()), len(running))
        shares = {part.name: part.seconds / layer.device_s for part in running}
        alike = [name for name, x in shares.items() if three(x) == three(max(shares.values()))]
        assert (match[7], match[8]) == (tied(alike), three(max(shares.values())))
    kept = kept_finding(layer)
    if layer.recompute == "full":
        assert kept.startswith("Only the layer's input is kept")
    elif not layer.kept_bytes:
        assert kept == "Nothing is kept for backward"
    else:
        shares = {part.name: part.kept_bytes / layer.kept_bytes for part in layer.parts}
        alike = [name for name, x in shares.items() if three(x) == three(max(shares.values()))]
        match = re.fullmatch(r"(.+?) (?:keeps|each keep) (\S+ %) of the .+ for backward", kept)
        assert match.groups() == (tied(alike), three(max(shares.values())))
