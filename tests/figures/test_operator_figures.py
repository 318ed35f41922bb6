"""The anatomy of a layer and its figures: words agree with figures, nothing overlaps."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from nest_core.costs import RECOMPUTE
from nest_core.costs.anatomy import anatomy
from nest_core.costs.tables import layer_table
from nest_core.documents.errors import InputError
from nest_core.hardware import load_accelerator, seconds
from nest_core.report.explain.layer_summary import (
    exchange_rows,
    kept_finding,
    layer_finding,
    layer_headlines,
    operator_rows,
    strategy_in_words,
    undivided,
)
from nest_core.report.figures.layered import layered
from nest_core.report.figures.operators import (
    BOUND_COLOURS,
    COMMUNICATION,
    graph_figure,
    short_name,
)
from nest_core.report.figures.roofline import roofline_figure
from nest_core.workload import Strategy
from nest_core.workload.model_files import load_model

_SHIPPED = load_accelerator("h100-80gb")
# The family's figures are fitted anew now and then; what the figures say of them is not.
H100 = replace(
    _SHIPPED,
    family=replace(
        _SHIPPED.family, gemm_efficiency=0.8, wave_tail=1.0, depth_tail=64.0,
        memory_efficiency=0.85, attention_efficiency=0.6, host_s=5e-6,
    ),
)  # fmt: skip
STRATEGIES = {
    "whole": {},
    "tp": {"tp": 4},
    "tp, sp, cp": {"tp": 4, "sp": True, "cp": 2},
    "tp, cp, unfused": {"tp": 2, "cp": 2, "context": "all_gather", "attention": "unfused"},
    "tp, sp, ep": {"tp": 2, "sp": True, "ep": 4, "imbalance": 1.25, "micro_batch": 2},
}
MODELS = ("bert-large", "bloom-176b", "deepseek-v3", "gpt3-175b", "llama3-70b", "mixtral-8x7b")
CASES = [
    (name, kind, strategy)
    for name in MODELS
    for kind, _ in load_model(name).runs
    for strategy in STRATEGIES
    # Other embeddings and heads are as these; one device is divided in one way only.
    if kind.endswith("block") or name in ("bert-large", "llama3-70b")
    if strategy != "whole" or name in ("gpt3-175b", "deepseek-v3")
]
every = pytest.mark.parametrize(("name", "kind", "strategy"), CASES)


@cache
def pair(name, kind, strategy, recompute="none"):
    """The layer before and after a strategy."""
    model = load_model(name)
    chosen = Strategy(sequence=512, **STRATEGIES[strategy])
    return tuple(
        anatomy(model, kind, one, H100, "bf16", recompute) for one in (undivided(chosen), chosen)
    )


# --- words ---------------------------------------------------------------------------------

PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
            "P": 1e15}  # fmt: skip
QUANTITY = re.compile(r"([\d.,]+) ?([nµmkMGTP]?)(?:FLOP/s|FLOP/B|FLOP|B/s|B|s|waves)(?![\w])")
WORDS = re.compile(r"[A-Za-z][A-Za-z,-]*")


def value(text):
    """What a piece of a formula comes to, evaluated by Python."""
    text = re.sub(r"(\d+) B ·", r"\1 ·", text)
    text = QUANTITY.sub(
        lambda found: repr(float(found[1].replace(",", "")) * PREFIXES[found[2]]), text
    )
    text = text.replace(" over ", " / ").replace("·", "*")
    text = re.sub(r"(?<=\d),(?=\d)", "", text)
    text = re.sub(r"\d[\d.]*e-?\d+", lambda found: f"{float(found[0]):.20f}", text)
    return eval(WORDS.sub(" ", text).strip(" ,;"), {"__builtins__": {}})


def claims(line):
    """Left and right of the last equality of a line: both are numbers."""
    line = line.partition(": ")[2] or line
    sides = re.split(r" = ", line.partition(", bound")[0])
    return value(sides[-2]), value(sides[-1])


def formulas(lines):
    kinds = ("FLOP: ", "bytes: ", "intensity: ", "tiles ", "arithmetic: ", "memory: ", "time: ")
    return [line for line in lines if line.startswith(kinds) and " = " in line]


@pytest.mark.sampled(6)
@every
def test_formulas_come_to_what_stands_behind_them(name, kind, strategy):
    """A failure: a factor left out, a length that is another's, a figure that is not the sum."""
    _, after = pair(name, kind, strategy)
    for part in after.parts:
        for each in (part.forward, part.backward):
            for line in formulas(each.words):
                left, right = claims(line)
                assert left == pytest.approx(right, rel=0.012), (part.name, line)


@every
def test_formulas_speak_of_the_kernels(name, kind, strategy):
    _, after = pair(name, kind, strategy)
    for part in after.parts:
        for each in (part.forward, part.backward):
            said = {
                key: [claims(line)[1] for line in each.words if line.startswith(f"{key}: ")]
                for key in ("FLOP", "bytes")
            }
            assert sum(said["FLOP"]) == pytest.approx(each.flops, rel=0.01)
            assert sum(said["bytes"]) == pytest.approx(each.bytes, rel=0.01)
            took = [
                value(
                    re.search(r"the longer, ([\d.,]+ \w+)|= ([\d.,]+ \w+), bound", line)[0]
                    .partition(", bound")[0]
                    .partition("= ")[2]
                    or re.search(r"the longer, ([\d.,]+ \w+)", line)[1]
                )
                for line in each.words
                if line.startswith("time: ")
            ]
            assert sum(took) == pytest.approx(each.seconds, rel=0.01)


@every
def test_lengths_in_symbols_are_the_lengths_of_the_kernel(name, kind, strategy):
    _, after = pair(name, kind, strategy)
    for part in after.parts:
        if not part.runs or part.forward.kernels[0].unit == "memory":
            continue
        said = {
            line[0]: float(re.findall(r" = ([\d.,]+)", line)[-1].replace(",", ""))
            for line in part.where
        }
        order = "gqsd" if "attention" in part.forward.kernels[0].unit else "gmnk"
        for symbol, length in zip(order, part.forward.kernels[0].shape, strict=True):
            if symbol in said:
                assert said[symbol] == pytest.approx(length, rel=1e-5)
        assert set(said) >= set(order) - {"g", "s", "d"}


def test_a_known_operator_in_words():
    model = load_model("llama3-70b")
    found = anatomy(model, "block", Strategy(tp=8, sequence=8192), H100, "bf16")
    down = next(part for part in found.parts if part.name == "mlp.down")
    assert down.where == (
        "m = micro batch · sequence = 8,192",
        "n = hidden = 8,192",
        "k = ffn / 8 (tp) = 3,584",
    )
    assert down.words[3] == "FLOP: 2 · m · n · k = 2 · 8,192 · 8,192 · 3,584 = 481 GFLOP"
    assert down.words[5] == "intensity: 481 GFLOP / 252 MB = 1,911 FLOP/B"
    assert any(
        line.startswith("tiles of 128 x 128: 64 · 64 over 132 units = 31") for line in down.words
    )
    assert down.words[-1] == "keeps for backward: mlp.activation 56.0 MiB"


def test_a_mask_is_counted_by_the_byte():
    found = anatomy(load_model("gpt3-175b"), "block", Strategy(sequence=16), H100, "bf16")
    residual = next(part for part in found.parts if part.name == "mlp_residual")
    cells = 16 * 12288
    assert residual.forward.words[0].startswith(
        f"bytes: 2 B · ({2 * cells:,} read + {cells:,} written) + 1 B · {cells:,} of the mask"
    )


# --- anatomy -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt3-175b", "llama3-70b"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_parts_add_up_to_the_table_that_plans_are_priced_from(name, strategy, recompute):
    model = load_model(name)
    chosen = Strategy(sequence=512, **STRATEGIES[strategy])
    table = layer_table(model, chosen, H100, "bf16")
    row, layer = RECOMPUTE.index(recompute), 0
    for kind, times in model.runs:
        found = anatomy(model, kind, chosen, H100, "bf16", recompute)
        replay = table.replay_s[row, layer]
        assert found.device_s == pytest.approx(table.compute_s[layer] + replay)
        assert found.forward_s == pytest.approx(table.forward_s[layer])
        assert found.replay_s == pytest.approx(replay)
        assert found.host_s == pytest.approx(table.launch_s[row, layer])
        assert found.kept_bytes == pytest.approx(table.kept_bytes[row, layer])
        held = table.parameters[layer] + table.expert_parameters[layer]
        assert found.parameters == pytest.approx(held)
        layer += times


@every
def test_a_bound_is_what_relaxing_it_would_help(name, kind, strategy):
    """Memory bounds what takes a thousandth less time at a thousandth more bandwidth."""
    _, after = pair(name, kind, strategy)
    step = 1e-3
    faster = replace(H100, memory_bandwidth_Bps=(1 + step) * H100.memory_bandwidth_Bps)
    for part in after.parts:
        if not part.runs or part.bound == "host":
            continue
        kernels = part.forward.kernels + part.backward.kernels
        took = part.forward.seconds + part.backward.seconds
        gained = took - sum(seconds(kernel, faster, "bf16") for kernel in kernels)
        assert (gained > 0.5 * step * took) == (part.bound == "memory"), part.name


def test_the_host_bounds_only_layers_that_wait_for_it():
    model = load_model("bert-large")
    slow = replace(H100, family=replace(H100.family, host_s=1e-4))
    small = anatomy(model, "block", Strategy(sequence=8), slow, "bf16")
    assert small.host_s > small.device_s
    assert {part.bound for part in small.parts if part.runs} == {"host"}
    assert layer_finding(small).startswith("The host bounds all ")
    large = anatomy(model, "block", Strategy(sequence=512, micro_batch=256), slow, "bf16")
    assert large.host_s < large.device_s
    assert not [part for part in large.parts if part.bound == "host"]
    at_once = replace(H100, family=replace(H100.family, host_s=0.0))
    assert not [
        part
        for part in anatomy(model, "block", Strategy(sequence=8), at_once, "bf16").parts
        if part.bound == "host"
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "moe_block"}, "layer must be one that Llama 3 70B has, but is 'moe_block'"),
        (
            {"recompute": "some"},
            "recompute must be none, selective, full, modules joined by +, uniform:n or block:n, "
            "but is 'some'",
        ),
        ({"precision": "fp4"}, "precision must be one that H100 SXM 80 GB computes in"),
        ({"precision": "fp32"}, "strategy.width must be the bytes of an element in fp32, but is"),
        ({"strategy": Strategy(tp=7)}, "tp must divide the model's 64 heads, but is 7"),
    ],
)
def test_what_cannot_be_taken_apart_says_why(change, sentence):
    asked = {"kind": "block", "strategy": Strategy(), "precision": "bf16", "recompute": "none"}
    asked |= change
    with pytest.raises(InputError, match=re.escape(sentence)):
        anatomy(
            load_model("llama3-70b"),
            asked["kind"],
            asked["strategy"],
            H100,
            asked["precision"],
            asked["recompute"],
        )


@pytest.mark.check
def test_it_works_without_torch():
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from nest_core.costs.anatomy import anatomy\n"
        "from nest_core.report.figures.operators import graph_figure\n"
        "from nest_core.workload.model_files import load_model\n"
        "from nest_core.hardware import load_accelerator\n"
        "from nest_core.workload import Strategy\n"
        "found = anatomy(load_model('deepseek-v3'), 'moe_block', Strategy(sequence=64),"
        " load_accelerator('h100-80gb'), 'bf16')\n"
        "print(graph_figure(found, found).title)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "operators" in done.stdout


# --- the graph -----------------------------------------------------------------------------


@cache
def drawn(name, kind, strategy, recompute="none"):
    """The graph's figure, as plain values."""
    return graph_figure(*pair(name, kind, strategy, recompute)).plot.to_plotly_json()


def panels(name, kind, strategy, recompute="none"):
    """Anatomy, edges, boxes, diamonds and outlines of every side of the figure."""
    before, after = pair(name, kind, strategy, recompute)
    figure = drawn(name, kind, strategy, recompute)
    sides = [after] if before.graph == after.graph else [before, after]
    return [
        (
            side,
            *figure["data"][3 * number : 3 * number + 3],
            [
                shape
                for shape in figure["layout"]["shapes"]
                if shape["xref"] == ("x", "x2")[number] and shape["line"]["width"]
            ],
        )
        for number, side in enumerate(sides)
    ]


@pytest.mark.sampled(6)
@every
def test_every_operator_has_a_box_and_every_collective_a_diamond(name, kind, strategy):
    for side, _, boxes, diamonds, outlines in panels(name, kind, strategy):
        assert len(boxes["x"]) == len(side.parts) + 1  # and the input
        assert len(diamonds["x"]) == len(side.exchanges)
        assert diamonds["marker"]["color"] == COMMUNICATION
        assert diamonds["marker"]["symbol"] == "diamond"
        assert len(outlines) == len(side.parts)
        for part, outline, text in zip(side.parts, outlines, boxes["customdata"], strict=False):
            assert text.startswith(f"<b>{part.name}".replace("_", " "))
            if part.runs:
                assert outline["line"]["color"] == BOUND_COLOURS[part.bound]
                assert "time: " in text
        assert all("buffer: " in words for words in diamonds["customdata"])


@every
@pytest.mark.sampled(3)
def test_nothing_stands_on_anything_else(name, kind, strategy):
    for _, lines, _, diamonds, outlines in panels(name, kind, strategy):
        x0, x1, y0, y1 = (
            np.array([box[key] for box in outlines]) for key in ("x0", "x1", "y0", "y1")
        )
        for one, other in combinations(range(len(outlines)), 2):
            apart = x1[one] < x0[other] or x1[other] < x0[one]
            assert apart or y1[one] < y0[other] or y1[other] < y0[one]
        for at, row in zip(diamonds["x"], diamonds["y"], strict=True):
            beside = (y0 < row) & (row < y1)
            assert not (beside & (x0 < at + 0.7) & (at - 0.05 < x1)).any()
        points = np.array(
            [point for point in zip(lines["x"], lines["y"], strict=True) if point[0] is not None]
        )
        x, y = points[:, :1], points[:, 1:]
        inside = (x0 < x) & (x < x1) & (y0 + 0.01 < y) & (y < y1 - 0.01)
        assert not inside.any()


@every
def test_edges_are_those_of_the_graph(name, kind, strategy):
    after, lines, boxes, diamonds, _ = panels(name, kind, strategy)[-1]
    gaps = [at for at, x in enumerate(lines["x"]) if x is None]
    graph = after.graph

    def shown(node):
        return shown(graph[node.inputs[0]]) if node.op == "reshape" else node.name

    expected = {
        (shown(graph[entry]), node.name)
        for node in graph.nodes
        if node.op != "reshape"
        for entry in node.inputs
    }
    assert len(gaps) == len(expected)
    # Every end of a line is the place of a box or a diamond.
    places = {round(x, 6) for trace in (boxes, diamonds) for x in trace["x"]}
    starts = [0, *(gap + 1 for gap in gaps[:-1])]
    for start, gap in zip(starts, gaps, strict=True):
        assert round(lines["x"][start], 6) in places
        assert round(lines["x"][gap - 1], 6) in places
        assert lines["y"][start] < lines["y"][gap - 1]


@pytest.mark.parametrize("strategy", ["tp", "tp, sp, cp", "tp, sp, ep"])
def test_both_sides_have_the_same_places(strategy):
    left, right = (side[2] for side in panels("deepseek-v3", "moe_block", strategy))
    assert list(left["x"]) == list(right["x"])
    assert list(left["y"]) == list(right["y"])


def test_what_runs_again_is_outlined():
    before, after = pair("llama3-70b", "block", "tp", "selective")
    picture = graph_figure(before, after)
    assert ("outlined: run again in backward", "#56B4E9") in picture.legend
    *_, outlines = panels("llama3-70b", "block", "tp", "selective")[-1]
    again = [
        part.name
        for part, outline in zip(after.parts, outlines, strict=True)
        if outline["line"]["color"] == "#56B4E9"
    ]
    assert again == ["attention.core"]


@pytest.mark.sampled(6)
@every
def test_titles_are_findings(name, kind, strategy):
    before, after = pair(name, kind, strategy)
    for title in (
        graph_figure(before, after).title,
        roofline_figure(after).title,
        kept_finding(after),
    ):
        assert title
        assert not title.endswith(".")
        assert len(title) < 110


def test_the_finding_counts_what_it_says():
    _, after = pair("llama3-70b", "block", "tp")
    shown = layer_finding(after)
    bounds = [part.bound for part in after.parts if part.runs]
    longest = max(after.parts, key=lambda part: part.seconds)
    assert shown.startswith(f"Memory bandwidth bounds {bounds.count('memory')} of {len(bounds)} ")
    assert f"; {longest.name} takes " in shown


@pytest.mark.parametrize("kind", ["block", "moe_block"])
def test_specs_of_graphs_stay_small(kind):
    """They travel to the browser with every change."""
    before, after = pair("deepseek-v3", kind, "tp, sp, ep")
    assert len(graph_figure(before, after).plot.to_json()) < 200_000
    assert len(roofline_figure(after).plot.to_json()) < 80_000


def test_labels_fit_their_boxes():
    names = {
        part.name for name, kind, strategy in CASES for part in pair(name, kind, strategy)[1].parts
    }
    assert max(len(short_name(name)) for name in names) <= 12


def test_rows_follow_the_longest_path():
    drawn = layered(
        {"d": ["b", "c", "a"], "a": [], "c": ["b"], "b": ["a"]}, dict.fromkeys("abcd", (0.5, 0.5))
    )
    assert {name: row for name, (_, row) in drawn.places.items()} == {
        "a": 0,
        "b": 1,
        "c": 2,
        "d": 3,
    }
    long = next(way for start, end, way in drawn.ways if (start, end) == ("a", "d"))
    assert [row for _, row in long] == [0, 1, 2, 3]
    assert abs(long[1][0] - drawn.places["b"][0]) >= 0.5


# --- the roofline --------------------------------------------------------------------------


@pytest.mark.sampled(6)
@every
def test_the_roofline_has_one_point_per_operator_and_pass_below_the_roofs(name, kind, strategy):
    _, after = pair(name, kind, strategy)
    data = roofline_figure(after).plot.data
    running = [part for part in after.parts if part.runs]
    points = [trace for trace in data if trace.customdata is not None]
    assert [len(trace.x) for trace in points] == [len(running)] * 2
    for trace, which in zip(points, ("forward", "backward"), strict=True):
        for x, y, colour, words, part in zip(
            trace.x, trace.y, trace.marker.color, trace.customdata, running, strict=True
        ):
            assert x > 0
            assert y <= 1.001 * min(H100.peak("bf16"), x * H100.memory_bandwidth_Bps)
            assert colour == BOUND_COLOURS[part.bound]
            assert f"{part.name}, {which}" in words
            done = getattr(part, which)
            if done.flops:
                assert x == pytest.approx(done.flops / done.bytes)
                assert y == pytest.approx(done.flops / done.seconds)


def test_an_operator_without_arithmetic_stands_at_the_left_edge():
    _, after = pair("llama3-70b", "embedding", "whole")
    picture = roofline_figure(after)
    forward = next(trace for trace in picture.plot.data if trace.customdata is not None)
    assert forward.marker.symbol == ("triangle-left",)
    assert np.log10(forward.x[0]) == pytest.approx(picture.plot.layout.xaxis.range[0])
    assert "no arithmetic" in forward.customdata[0]


# --- tables and headlines ------------------------------------------------------------------


@every
def test_rows_and_headlines_say_what_the_anatomy_has(name, kind, strategy):
    _, after = pair(name, kind, strategy)
    rows = operator_rows(after)
    assert [row["operator"] for row in rows] == [part.name for part in after.parts]
    shares = [float(row["of the layer, %"]) for row in rows if row["of the layer, %"] != "–"]
    assert sum(shares) == pytest.approx(100.0, abs=0.05 * len(rows) + 0.05)
    calls = exchange_rows(after)
    assert {row["axis"] for row in calls} <= {"tp", "cp", "ep"}
    assert len(calls) == len(after.exchanges)
    assert [headline.name for headline in layer_headlines(after)] == [
        "Device time",
        "Of the peak",
        "Host time",
        "Kept for backward",
        "Communication buffers",
    ]


def test_a_strategy_in_words():
    chosen = Strategy(tp=4, sp=True, cp=2, ep=8)
    assert strategy_in_words(chosen, "moe_block") == "tp 4, sp, cp 2, ep 8"
    assert strategy_in_words(chosen, "block") == "tp 4, sp, cp 2"
    assert strategy_in_words(undivided(chosen), "block") == "one device"
