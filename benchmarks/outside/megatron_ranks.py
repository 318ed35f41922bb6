"""Ranks of every group that Megatron-LM makes when it starts with our launch script."""

import json
from collections.abc import Iterator

from benchmarks.outside import megatron
from benchmarks.outside.plans import drawn_plans, write_plans
from benchmarks.outside.tool import Row, read_cases, reasons
from nest_core.costs import Report
from nest_core.scenario import ScenarioValues

TOOL = megatron.TOOL
PLANS = 12


def divided() -> Iterator[tuple[ScenarioValues, Report]]:
    """Give drawn plans that divide a model in two ways or more."""
    for scenario, report in drawn_plans(megatron.MODELS, seed=1):
        point = report.plan.point
        if sum(degree > 1 for degree in (point.tp, point.cp, point.pp, point.ep)) > 1:
            yield scenario, report


def rows() -> list[Row]:
    """Return how many plans have the planned ranks in every group."""
    exports = write_plans("megatron-ranks", "megatron", divided(), PLANS)
    answers = read_cases(TOOL, "ranks_megatron.py", exports.folder)
    cases = json.loads((exports.folder / "cases.json").read_text())
    axes = sorted({axis for case in cases for axis in case["groups"]})
    bad = [answer["reason"] for answer in answers if not answer["accepted"]]
    return [
        TOOL.row(
            f"ranks of groups that it makes on 64 ranks ({', '.join(axes)})",
            len(answers),
            len(answers) - len(bad),
            reasons(bad),
        )
    ]
