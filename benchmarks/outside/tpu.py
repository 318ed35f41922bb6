"""Stages of plans as XLA compiles them for TPUs, beside what we say that they hold.

``tests/data/compiler/stages.csv`` has what libtpu answered; it is compiled again here, stage by
stage in a process of its own, and its answers must be the same. All of them take two hours.
"""

import csv
import json
import sys

from benchmarks.outside.tool import ROOT, Row, Tool

VERSION = "0.0.42.1"
TOOL = Tool(
    "libtpu",
    VERSION,
    (
        "jax==0.10.2", "jaxlib==0.10.2", f"libtpu=={VERSION}", "numpy>=2.4,<2.5", "numba", "scipy",
        "networkx", "pydantic", "PyYAML", "defusedxml", "filelock", "psutil",
    ),
)  # fmt: skip
FILE = ROOT / "tests" / "data" / "compiler" / "stages.csv"
NEAR = 0.02
"""Bytes within which an answer is the one that stands in the file."""


def rows() -> list[Row]:
    """Return how many stages are answered as they were, and how many that we are sure of fit."""
    stored = list(csv.DictReader(FILE.read_text().splitlines()))
    answers = {}
    for case in stored:
        print(f"tpu: {case['id']}", file=sys.stderr, flush=True)
        printed = TOOL.run("tpu_stages.py", ROOT, json.dumps(case))
        answers[case["id"]] = json.loads(printed.splitlines()[-1])
    alike, taken, sure = 0, 0, 0
    for case in stored:
        answer, total = answers[case["id"]], float(case["bytes"] or 0.0)
        same = not total or abs(answer["bytes"] / total - 1) <= NEAR
        alike += same and answer["taken"] == (case["taken"] == "yes")
        sure += answer["chance"] > 0.99
        taken += answer["chance"] > 0.99 and answer["taken"]
    ratios = sorted(answer["bytes"] / answer["ours_bytes"] for answer in answers.values())
    middle, span = ratios[len(ratios) // 2], f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    return [
        TOOL.row("stages compiled as before", len(stored), alike),
        TOOL.row(
            "plans that surely fit, taken",
            sure,
            taken,
            f"bytes over ours {span}, median {middle:.2f}",
        ),
    ]
