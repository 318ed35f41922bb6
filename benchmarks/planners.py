"""All planners on every scenario preset and on clusters with holes, as a page with a picture.

``python -m benchmarks.planners`` writes ``docs/planners.md`` and ``docs/images/planners.svg``;
``python -m benchmarks.planners NAME`` prints the rows whose name contains it and writes nothing.
Clusters with holes are those of ``holes.toml``.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from nest_core.documents.presets import preset_names
from nest_core.planner import search
from nest_core.planner.baselines import NAMES, Baseline, Waterfall, evaluate_baselines
from nest_core.scenario import load_scenario

DOCS = Path(__file__).parent.parent / "docs"
LIMIT_S = 60.0
"""Of our search, and of every search of a baseline."""

ALIKE = 1e-3
"""Relative difference up to which two plans are told as equally fast."""

CAUSES = {
    "schedule": "1F1B alone",
    "memory_rule": "its memory rule",
    "objective": "its objective",
    "levels": "levels for links",
    "widths": "unequal widths",
}

HEAD = """# Planners side by side

Every scenario preset, and clusters with holes (`benchmarks/holes.toml`): the exact search's
iteration in seconds, and how many times as long the plan of each other planner takes on the same
costs and the true fabric (`nest`: the paper's level-wise program). All may choose whatever the
scenario allows; the level-wise program has 1F1B alone, as in the paper. Written by
`python -m benchmarks.planners`.

![Iterations of all planners over those of the exact search](images/planners.svg)

"""


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario: our seconds (None where nothing fits), and the baselines."""

    name: str
    ours_s: float | None
    proven: bool
    baselines: tuple[Baseline, ...]

    def ratio(self, entry: Baseline) -> float | None:
        """Its iteration over ours; None where either has no plan that fits."""
        if self.ours_s is None or entry.report is None or not entry.feasible:
            return None
        return entry.report.iteration_s / self.ours_s


def cases() -> Iterator[tuple[str, str, list[str]]]:
    """Name, scenario preset and overrides."""
    for name in preset_names("scenarios"):
        yield name, name, []
    holes = tomllib.loads(Path(__file__).with_name("holes.toml").read_text(encoding="utf-8"))
    for cluster in holes["cluster"]:
        yield cluster["name"], cluster["scenario"], cluster["sets"]


def solved(name: str, preset: str, sets: list[str]) -> Row:
    """One case, planned by all."""
    scenario = load_scenario(preset, sets)
    problem = scenario.problem()
    found = search(problem, scenario.space, time_limit_s=LIMIT_S)
    ours_s = found.best.iteration_s if found.best else None
    baselines = evaluate_baselines(
        problem,
        scenario.space,
        scenario.model,
        tuple(NAMES),
        time_limit_s=LIMIT_S,
        ours=found.best,
    )
    return Row(name, ours_s, found.certificate.proven, baselines)


def why(row: Row) -> str:
    """What makes the level-wise program's plan slower or faster than ours."""
    nest = next(entry for entry in row.baselines if entry.name == "nest")
    ratio = row.ratio(nest)
    if ratio is None:
        return nest.reason
    if abs(ratio - 1.0) <= ALIKE:
        return "equal"
    return _causes(nest.waterfall, row.ours_s or 1.0)


def _causes(waterfall: Waterfall | None, ours_s: float) -> str:
    if waterfall is None:
        return ""
    shares = {cause: getattr(waterfall, cause) / ours_s for cause in CAUSES}
    told = sorted(CAUSES, key=lambda cause: -abs(shares[cause]))
    return ", ".join(
        f"{CAUSES[cause]} {shares[cause]:+.1%}" for cause in told if abs(shares[cause]) > ALIKE
    )


def cells(row: Row) -> list[str]:
    """A line of the table."""
    ours = "none fits" if row.ours_s is None else f"{row.ours_s:.4g}"
    proof = "" if row.proven else " (not proven)"
    ratios = [row.ratio(entry) for entry in row.baselines]
    return [row.name, ours + proof, *("–" if r is None else f"{r:.3f}" for r in ratios), why(row)]


def table(rows: Sequence[Row]) -> str:
    """All rows as Markdown."""
    titles = ["scenario", "exact search, s", *NAMES, "why `nest` differs"]
    lines = [titles, ["---"] * len(titles), *map(cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_LINE, _LEFT, _WIDE, _TOP, _MOST = 20, 300, 560, 54, 3.0
_COLOURS = dict(
    zip(NAMES, ("#D55E00", "#999999", "#56B4E9", "#009E73", "#CC79A7", "#E69F00"), strict=True)
)


def picture(rows: Sequence[Row]) -> str:
    """A dot per planner and scenario, left to right by its iteration over ours."""
    high = _TOP + _LINE * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDE + 40} {high}" '
        'role="img" font-family="sans-serif" font-size="11" fill="#767b82">',
        "<title>Iterations of all planners over those of the exact search</title>",
    ]
    for place, (name, label) in enumerate(NAMES.items()):
        x = 12 + 130 * place if place == 0 else 90 + 130 * place
        parts.append(f'<circle cx="{x}" cy="14" r="4" fill="{_COLOURS[name]}"/>')
        parts.append(f'<text x="{x + 9}" y="18">{escape(label)}</text>')
    for tick in (1.0, 1.5, 2.0, 2.5, 3.0):
        x = _across(tick)
        parts.append(
            f'<path d="M{x:.1f} {_TOP - 12}V{high - 26}" stroke="#80848855"/>'
            f'<text x="{x:.1f}" y="{high - 10}" text-anchor="middle">{tick:g}x</text>'
        )
    for number, row in enumerate(rows):
        y = _TOP + _LINE * number
        parts.append(
            f'<text x="{_LEFT - 14}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>'
        )
        for entry in reversed(row.baselines):
            ratio = row.ratio(entry)
            if ratio is not None:
                parts.append(
                    f'<circle cx="{_across(ratio):.1f}" cy="{y}" r="4" '
                    f'fill="{_COLOURS[entry.name]}"><title>{escape(entry.label)} {ratio:.3f}x'
                    "</title></circle>"
                )
    return "\n".join([*parts, "</svg>", ""])


def _across(ratio: float) -> float:
    return _LEFT + _WIDE * (min(ratio, _MOST) - 0.95) / (_MOST - 0.95)


def main() -> None:
    """Write the page, or print some of its rows."""
    wanted = " ".join(sys.argv[1:])
    rows = []
    for name, preset, sets in cases():
        if wanted in name:
            rows.append(solved(name, preset, sets))
            print(" | ".join(cells(rows[-1])), flush=True)
    if not wanted:
        (DOCS / "planners.md").write_text(HEAD + table(rows), encoding="utf-8")
        (DOCS / "images" / "planners.svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
