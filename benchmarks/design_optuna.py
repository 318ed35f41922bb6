"""Whether Optuna finds a better set of fabrics with as many plans as a design study's proof takes.

``python benchmarks/design_optuna.py [STUDY] [--seeds 20] [--workers 2] [--picture FILE.svg]``
searches a study with a ``[design]``, then plans all of its designs, so that a trial of Optuna is a
lookup. Its parameters are the study's choices; NSGA-II and the multi-objective TPE make price,
power and days least. They may ask for as many designs as the search planned, with one more for each
non-blocking fabric that it planned as a bound. A design asked for again, and a combination that
does not exist, cost nothing, up to 10 trials for each plan.

Sets are compared by hypervolume, from the worst price, power and days of the space times 1.01.
Prints JSON: which shares of the proven set's hypervolume the seeds reach, and the median of the
plans after which those that reach all of it had it, which only the proof can tell them. Ends in a
sentence if a seed has more, or if the proven set is not that of all plans. ``--picture`` draws all
plans, as `docs/images/designs.svg` has those of the preset; Chromium must be there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from statistics import median
from urllib.parse import unquote

import optuna
import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

from nest_core.documents.errors import InputError
from nest_core.documents.schema import Parameter
from nest_core.report.explain.training import DAY_S
from nest_core.report.figures.designs import designs_picture
from nest_core.report.figures.style import Chart
from nest_core.studies.design_choice import weigh
from nest_core.studies.design_search import Planned, pareto, search_designs, tokens_of
from nest_core.studies.design_space import Design, design_space
from nest_core.studies.engine import WorkerPool, run
from nest_core.studies.rows import RowCache, StudyRow, row_of
from nest_core.studies.study import Study, load_study
from nest_studio.jobs.workers import cores, processes

Point = tuple[float, float, float]
"""Price, power and days."""

TRIALS = 10
"""For each plan, at most."""
ROUNDING = 1e-9
ROOM = 1.01
"""Between the worst of the space and the point that hypervolumes are counted from."""
SAMPLERS: Mapping[str, Callable[[int, int], optuna.samplers.BaseSampler]] = {
    "NSGA-II": lambda seed, plans: optuna.samplers.NSGAIISampler(
        population_size=max(4, plans // 4), seed=seed
    ),
    "TPE": lambda seed, plans: optuna.samplers.TPESampler(seed=seed),
}
"""By seed and plans: NSGA-II gets four generations."""


class ExactRows(RowCache):
    """Rows of this run; one that was given up within a limit is none."""

    def put(self, rows: Mapping[str, StudyRow]) -> None:
        """See `RowCache`."""
        super().put({key: row for key, row in rows.items() if row.status != "beyond"})


def plan_all(study: Study, cache: ExactRows, pool: WorkerPool) -> list[Planned]:
    """Every design that has a plan and meets the constraints, with its exact days."""
    designs, _ = design_space(study)
    changes = tuple(one.changes for one in designs)
    places = tuple(range(len(designs)))
    axis = Parameter("design", "design", values=places, changes=changes.__getitem__)
    asked = replace(study, axes=(axis,), metrics=("tokens_per_s",))
    run(asked.points(), cache, pool)
    found = []
    for number, design in enumerate(designs):
        keys = [asked.key(member, design.changes) for member in asked.members]
        known = cache.get(keys)
        row = row_of(asked, number, [known[key] for key in keys])
        if row["meets"]:
            rate = row["tokens_per_s"]
            days = tokens_of(study) / rate / DAY_S
            found.append(Planned(design, rate, days, row["plan"], row["gap"]))
    return found


def point_of(one: Planned) -> Point:
    """What is made least."""
    return one.design.price_usd, one.design.power_W, one.days


def hypervolume(points: Iterable[Point], worst: Point) -> float:
    """What the points beat of the box that ends at the worst: slices of power, each of them swept.

    Examples
    --------
    >>> hypervolume([(1.0, 1.0, 1.0), (0.0, 2.0, 1.0)], (2.0, 3.0, 2.0))
    3.0
    """
    inside = sorted(one for one in set(points) if all(map(float.__lt__, one, worst)))
    heights = [*sorted({power for _, power, _ in inside}), worst[1]]
    volume = 0.0
    for low, high in pairwise(heights):
        area, days = 0.0, worst[2]
        for price, power, mine in inside:  # from the cheapest on
            if power <= low and mine < days:
                area += (worst[0] - price) * (days - mine)
                days = mine
        volume += area * (high - low)
    return volume


def choices(designs: Sequence[Design]) -> dict[tuple[str, ...], str]:
    """Names of designs by their choices: family, ratio, and whatever else tells them apart."""
    parts = []
    for one in designs:
        head, *rest = one.name.split(", ")
        family, _, ratio = head.partition(" ")
        parts.append((family, ratio, *rest))
    columns = zip(*zip_longest(*parts, fillvalue=""), strict=True)
    return dict(zip(columns, (one.name for one in designs), strict=True))


def optimise(
    sampler: optuna.samplers.BaseSampler,
    named: Mapping[tuple[str, ...], str],
    points: Mapping[str, Point],
    plans: int,
    worst: Point,
) -> list[str]:
    """The designs that Optuna asks for, in order."""
    values = [sorted(set(column)) for column in zip(*named, strict=True)]
    space = {
        str(number): optuna.distributions.CategoricalDistribution(column)
        for number, column in enumerate(values)
    }
    study = optuna.create_study(directions=["minimize"] * 3, sampler=sampler)
    asked: list[str] = []
    for _ in range(TRIALS * plans):
        if len(asked) == plans:
            break
        trial = study.ask(space)
        name = named.get(tuple(trial.params[key] for key in space), "")
        if name and name not in asked:
            asked.append(name)
        study.tell(trial, points.get(name, worst))
    return asked


def draw(picture: Chart, file: Path) -> None:
    """Write a plot as SVG whose greys can be read on light and dark pages."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is missing: nothing is drawn.")
    figure = go.Figure(picture.drawn())
    figure.update_layout(
        showlegend=True,
        width=760,
        margin_t=36,
        font={"color": "#767b82"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        page.set_content(figure.to_html(include_plotlyjs=True))
        page.wait_for_selector(".main-svg")
        found = page.evaluate(
            "Plotly.toImage(document.querySelector('.js-plotly-plot'),"
            f"{{format: 'svg', width: 760, height: {figure.layout.height}}})"
        )
    file.write_text(unquote(found.partition(",")[2]) + "\n", encoding="utf-8")


def main() -> None:
    """Print what the seeds reach."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", nargs="?", default="fabric-for-64-h100")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    try:
        study = load_study(asked.study, Path())
        pool = WorkerPool(partial(processes, asked.workers), asked.workers)
        cache = ExactRows()
        found = search_designs(study, cache, pool)
        every = plan_all(study, cache, pool)
    except InputError as error:
        sys.exit(str(error))
    if {one.design.name for one in found.pareto} != {one.design.name for one in pareto(every)}:
        sys.exit("The set of the search is not that of all plans.")
    if asked.picture:
        draw(designs_picture(found, weigh(study, found, pool), every), asked.picture)
    designs, _ = design_space(study)
    points = {one.design.name: point_of(one) for one in every}
    worst = tuple(ROOM * max(column) for column in zip(*points.values(), strict=True))
    exact = hypervolume(map(point_of, found.pareto), worst)
    plans = found.certificate.planned + len({one.bought for one in designs})
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    reached: dict[str, list[float]] = {name: [] for name in SAMPLERS}
    needed: dict[str, list[int]] = {name: [] for name in SAMPLERS}
    for name, sampler in SAMPLERS.items():
        for seed in range(asked.seeds):
            tried = optimise(sampler(seed, plans), choices(designs), points, plans, worst)
            shares = [
                hypervolume((points[one] for one in tried[:count] if one in points), worst) / exact
                for count in range(len(tried) + 1)
            ]
            reached[name].append(shares[-1])
            needed[name] += [n for n, one in enumerate(shares) if one >= 1.0 - ROUNDING][:1]
    print(
        json.dumps(
            {
                "study": study.name,
                "designs": len(designs),
                "planned": found.certificate.planned,
                "bounds": plans - found.certificate.planned,
                "pareto": len(found.pareto),
                "hypervolume": exact,
                "samplers": {
                    name: {
                        "best": max(shares),
                        "median": median(shares),
                        "worst": min(shares),
                        "seeds": len(shares),
                        "equal": len(needed[name]),
                        "plans_until_equal": median(needed[name]) if needed[name] else None,
                    }
                    for name, shares in reached.items()
                },
            },
            indent=1,
        )
    )
    for name, shares in reached.items():
        if max(shares) > 1.0 + ROUNDING:
            seed = shares.index(max(shares))
            sys.exit(f"{name} beats the proven set's hypervolume with seed {seed}.")


if __name__ == "__main__":
    main()
