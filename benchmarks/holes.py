"""Clusters with holes, planned with ranks on consecutive devices and with any seating.

``python -m benchmarks.holes`` prints one row of a Markdown table per cluster of ``holes.toml``;
``python -m benchmarks.holes NAME`` those whose name contains it. Times of searches are wall time.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from nest_core.planner import SearchResult, search
from nest_core.scenario import load_scenario


def planned(cluster: dict[str, Any], seating: str) -> SearchResult:
    """The best plan of a cluster under one of the values of ``search.seating``."""
    sets = [*cluster["sets"], f"search.seating='{seating}'"]
    scenario = load_scenario(cluster["scenario"], sets)
    return search(scenario.problem(), scenario.space, time_limit_s=scenario.time_limit_s)


def row(cluster: dict[str, Any]) -> str:
    """Iteration, search time and proof before and after, the gain and the seating."""
    before, after = (planned(cluster, seating) for seating in ("consecutive", "any"))
    cells = [cluster["name"]]
    for result in (before, after):
        seconds = f"{result.best.iteration_s:.4f}" if result.best else result.reason
        proof = "proven" if result.certificate.proven else f"gap {result.certificate.gap:.1%}"
        cells += [seconds, f"{result.solve_seconds:.2f}", proof]
    if before.best and after.best:
        point = after.best.plan.point
        gain = before.best.iteration_s / after.best.iteration_s - 1
        cells += [f"{gain:.1%}", f"{point.device_order}, {point.devices_used} devices"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    wanted = " ".join(sys.argv[1:])
    told = tomllib.loads(Path(__file__).with_name("holes.toml").read_text(encoding="utf-8"))
    titles = ["cluster"]
    for name in ("consecutive", "any"):
        titles += [f"{name}, s", "search, s", "proof"]
    titles += ["slower without", "ranks"]
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for cluster in told["cluster"]:
        if wanted in cluster["name"]:
            print(row(cluster), flush=True)


if __name__ == "__main__":
    main()
