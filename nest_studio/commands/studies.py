"""Commands on studies: ``sweep`` and ``design``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import nest_core as nest
from nest_core.documents import (
    csv_text,
    percent,
    percent_column,
    require,
    settings,
    table,
    write_file,
)
from nest_studio.commands.output import JsonFlag, Sets, emit, interrupts, show
from nest_studio.jobs.kernels import build_kernels

if TYPE_CHECKING:
    from nest_core.studies.design_choice import Contender
    from nest_core.studies.design_search import Planned
    from nest_core.studies.engine import WorkerPool
    from nest_core.studies.study import Study

__all__ = [
    "DaskOption",
    "WorkersOption",
    "design",
    "opened_pool",
    "progress",
    "ratios",
    "sweep",
]

WorkersOption = Annotated[
    int | None, typer.Option(min=1, max=4096, help="Processes; standard: one per core.")
]
DaskOption = Annotated[
    str | None, typer.Option(help="Scheduler of a Dask cluster instead, tcp://HOST:PORT.")
]


def sweep(
    study: Annotated[str, typer.Argument(help="Study, or with --axis a scenario: preset or file.")],
    axis: Annotated[
        list[str] | None,
        typer.Option(help="zero=[0,1]: turn a scenario's parameter, or two, in place of a study."),
    ] = None,
    sets: Sets = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    output: Annotated[
        Path | None, typer.Option(help="Result: a .parquet or .csv file; standard: STUDY.parquet.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Plan every point of a study; killed or stopped, the same command goes on where it was."""
    from nest_core.studies.engine import run
    from nest_core.studies.rows import rows_of
    from nest_core.studies.study import load_study

    if axis:
        build_kernels()
        return show(
            nest.sweep(nest.load(study, settings(sets or ())), **settings(axis, "--axis")), as_json
        )
    began = time.monotonic()
    loaded = load_study(study, Path())
    require(
        loaded.design is None,
        "study",
        "must have axes",
        study,
        "use nest-studio design for a [design]",
    )
    file = output or Path(f"{Path(study).stem}.parquet")
    write = _writer(loaded, file)
    with _running(loaded, workers, dask) as (answers, pool, tell, stop):
        ended = run(loaded.points(), answers, pool, tell=tell, stop=stop)
    rows = list(rows_of(loaded, answers))
    write(rows)
    fields = {
        "points": len(loaded),
        "computed": ended.computed,
        "reused": ended.reused,
        "failed": ended.failed,
        "rows": len(rows),
        "whole": ended.complete,
        "output": str(file),
        "wall_s": time.monotonic() - began,
    }
    line = (
        f"{len(rows):,} of {len(loaded):,} points in {file}: {ended.computed:,} computed, "
        f"{ended.reused:,} reused, {ended.failed:,} failed, {fields['wall_s']:.1f} s"
        + ("" if ended.complete else "\nStopped: the same command goes on from here.")
    )
    emit(fields, as_json, lambda _: line)


def _writer(study: Study, file: Path) -> Callable[[list[dict[str, Any]]], None]:
    """Return what writes rows to a file, once it is known that it will be able to.

    Raises
    ------
    InputError
        For another ending, or a folder that cannot be written to.
    """
    from nest_core import __version__
    from nest_core.studies.rows import to_parquet

    require(
        file.suffix in (".parquet", ".csv"),
        "--output",
        "must end in .parquet or .csv",
        str(file),
        "rename it",
    )
    require(
        file.absolute().parent.is_dir(),
        "--output",
        "must lie in a folder that exists",
        str(file),
        "make it",
    )

    def write(rows: list[dict[str, Any]]) -> None:
        if file.suffix == ".csv":
            content: str | bytes = csv_text(
                list(rows[0]) if rows else [], [list(row.values()) for row in rows]
            )
        else:
            content = to_parquet(study, rows, __version__)
        write_file(file, content, "--output")

    return write


@contextmanager
def _running(study: Study, workers: int | None, dask: str | None) -> Iterator[Any]:
    """Yield stored answers, workers, who is told how far a study is, and whether to stop."""
    import multiprocessing

    from nest_studio.session.store import Database, StoredAnswers, database_url

    shared: Any = multiprocessing.get_context("spawn").Event()
    with interrupts(shared) as stop, progress(study.name) as tell:
        yield (
            StoredAnswers(Database(database_url())),
            opened_pool(stop, workers, dask),
            tell,
            stop.is_set,
        )


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Yield who is told how far it is: a bar on the terminal with the time to its end."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None)
        yield lambda answered, total: bar.update(task, completed=answered, total=total)


def opened_pool(stop: Any, workers: int | None, dask: str | None) -> WorkerPool:
    """Return the workers that the options name."""
    from nest_core.studies.engine import WorkerPool
    from nest_studio.jobs.workers import cluster, cluster_size, cores, processes

    if dask is not None:
        return WorkerPool(partial(cluster, dask), cluster_size(dask))
    build_kernels()
    count = workers or cores()
    return WorkerPool(partial(processes, count, stop), count)


def ratios(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    mix: Annotated[
        list[str] | None, typer.Option(help="MODEL=SHARE of the time; the scenario's model alone.")
    ] = None,
    loss: Annotated[float, typer.Option(help="What the mix may lose, as a share.")] = 0.02,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the highest oversubscription of every tier that costs a mix of models little."""
    loaded = nest.load(scenario, settings(sets or ()))
    build_kernels()
    model_alone = [{"model": loaded.setting("workload.model"), "share": 1.0}]
    show(nest.ratios(loaded, settings(mix, "--mix") if mix else model_alone, loss), as_json)


_FATES = ("designs", "planned", "bounded", "infeasible", "left")


def design(
    study: Annotated[str, typer.Argument(help="Study with a [design]: a preset or a TOML file.")],
    workers: WorkersOption = None,
    dask: DaskOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the fabrics of a design study that no other beats in price, power and days, proven."""
    from nest_core.studies.design_search import search_designs
    from nest_core.studies.design_space import ways_to_grow
    from nest_core.studies.sensitivity import choose_design
    from nest_core.studies.study import load_study

    study_file = load_study(study, Path())
    with _running(study_file, workers, dask) as (answers, pool, tell, stop):
        search = search_designs(study_file, answers, pool, tell=tell, stop=stop)
        answer = choose_design(study_file, search, pool)
    choice, rests_on = answer.choice, answer.sensitivity
    best = [contender.planned.design for contender in choice.contenders if contender.rank == 1]
    fields = {
        "goal": choice.goal,
        "choice": choice.contenders[0].name if choice.contenders else None,
        "rule": choice.rule,
        "not_compared": choice.differs,
        "designs": search.certificate.designs,
        "certificate": asdict(search.certificate) | {"proven": search.certificate.proven},
        "pareto": [_contender(contender) for contender in choice.contenders],
        "sensitivity": asdict(rests_on) if rests_on else None,
        "sentences": list(rests_on.sentences) if rests_on else [],
        "growth": [
            asdict(path) | {"total_usd": path.total_usd, "recabled": path.recabled}
            for path in ways_to_grow(study_file, best)
        ],
        "planned": [_planned(contender) for contender in search.planned],
        "refused": list(search.refused),
    }
    emit(fields, as_json, _design_text)


def _planned(planned: Planned) -> dict[str, Any]:
    return {
        "name": planned.design.name,
        "price_usd": planned.design.price_usd,
        "power_w": planned.design.power_W,
        "days": planned.days,
        "gap": planned.gap,
        "plan": planned.plan,
    }


def _contender(contender: Contender) -> dict[str, Any]:
    worst = contender.worst_loss
    return {
        **_planned(contender.planned),
        "rank": contender.rank,
        "value": contender.value,
        "days_range": list(contender.span),
        "ties": list(contender.ties),
        "worst_failure": {"lost": worst[0], "what": worst[1]} if worst else None,
        "no_source": list(contender.planned.design.owned.missing),
    }


def _design_text(fields: Mapping[str, Any]) -> str:
    from nest_core.studies.design_choice import in_words

    by_days = fields["goal"] == "days"
    lost = percent_column(
        row["worst_failure"]["lost"] for row in fields["pareto"] if row["worst_failure"]
    )
    rows = [
        (
            str(row["rank"]),
            row["name"],
            *([] if by_days else [in_words(fields["goal"], row["value"])]),
            f"{row['price_usd'] / 1e6:,.4g}",
            f"{row['power_w'] / 1e3:,.4g}",
            f"{row['days']:.4g} ({row['days_range'][0]:.3g} to {row['days_range'][1]:.3g})",
            lost(row["worst_failure"]["lost"]) if row["worst_failure"] else "unknown",
        )
        for row in fields["pareto"]
    ]
    goal = () if by_days else ("goal",)
    proof = fields["certificate"]
    parts = [f"{proof[key]:,} {key}" for key in _FATES if proof[key] or key == "designs"]
    verdict = "no other beats these" if proof["proven"] else f"open, gap {percent(proof['gap'])}"
    sentences = [f"{', '.join(parts)}; {verdict}. One rank: the interval does not tell them apart."]
    if fields["not_compared"]:
        sentences.append(f"Bills are not compared: {fields['not_compared']}.")
    sentences += fields["sentences"]
    if proof["left"]:
        sentences.append(
            f"{proof['left']:,} are open: not asked when it was stopped, failed, or without a plan "
            "at their limit of time (search.time_limit_s). The same command goes on."
        )
    unpriced = sorted({line for row in fields["pareto"] for line in row["no_source"]})
    if unpriced:
        sentences.append(f"Without a source, and so in no price: {', '.join(unpriced)}.")
    return "\n".join(
        [
            table(("rank", "design", *goal, "M$", "kW", "days", "worst failure"), rows),
            *sentences,
            *map(_grown, filter(None, [fields["growth"]])),
        ]
    )


def _grown(ways: Sequence[Mapping[str, Any]]) -> str:
    """Return every way to grow, a line each."""
    rows = [
        (
            way["design"],
            way["how"],
            " + ".join(f"{phase['paid_usd'] / 1e6:,.4g}" for phase in way["phases"]),
            " + ".join(f"{phase['recabled']:,}" for phase in way["phases"][1:]),
            f"{way['regret_usd'] / 1e6:,.3g}",
            "–" if way["reason"] else f"{way['total_usd'] / 1e6:,.4g}",
            way["reason"],
        )
        for way in ways
    ]
    return table(("design", "built", "M$ by phase", "recabled", "regret M$", "M$ in all", ""), rows)
