"""All baselines by name: found, then priced like our plan."""

import time
from collections.abc import Callable
from dataclasses import replace

from nest_core.costs import REPLAYED, Problem, Report, price
from nest_core.documents.errors import InputError, require
from nest_core.planner import SearchSpace
from nest_core.planner.baselines import alpa_e, manual, mcmc, mist, nest, phaze
from nest_core.planner.baselines.baseline import NAMES, Baseline, Found, paper_space
from nest_core.planner.frontier import Frontier
from nest_core.planner.mixed import MixedFrontier
from nest_core.workload import Model

__all__ = ["evaluate_baselines"]


def evaluate_baselines(
    problem: Problem,
    space: SearchSpace,
    model: Model,
    names: tuple[str, ...],
    *,
    seed: int = 0,
    as_in_paper: bool = False,
    time_limit_s: float = float("inf"),
    ours: Report | None = None,
    frontier: Frontier | MixedFrontier | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Baseline, ...]:
    """Return what the named methods choose, priced on the true costs.

    Parameters
    ----------
    names : tuple of str
        Keys of `NAMES`; an unknown one is answered with the reason.
    seed : int
        Of the random walks.
    as_in_paper : bool
        Whether each method has the axes that it has in the paper (`paper_space`), or the whole
        space.
    time_limit_s : float
        For each exact search of a method that has one; what it has by then counts.
    ours : Report, optional
        Our plan, where it is known, for what explains NEST's; else it is searched for.
    frontier : Frontier, optional
        That our plan was searched with.
    clock : callable
        Seconds; passed in so that tests need not wait.

    Notes
    -----
    No method sees our plan, another's, or the certificate. Uneven layouts and `REPLAYED`
    schedules are not among what they choose from.
    """
    schedules = tuple(name for name in space.schedules if name not in REPLAYED)
    even = replace(space, layouts="even", schedules=schedules)
    methods: dict[str, Callable[[SearchSpace], Found]] = {
        "nest": lambda searched: nest.find(problem, searched, time_limit_s),
        "manual": lambda searched: manual.find(problem, searched, model),
        "mcmc": lambda searched: mcmc.find(problem, searched, seed),
        "phaze": lambda searched: phaze.find(problem, searched, time_limit_s),
        "alpa_e": lambda searched: alpa_e.find(problem, searched),
        "mist": lambda searched: mist.find(problem, searched, time_limit_s),
    }
    results = (
        _evaluate(
            problem,
            paper_space(name, even) if as_in_paper else even.seated_on(problem.network),
            name,
            methods.get(name),
            space.schedules,
            clock,
        )
        for name in names
    )
    return tuple(
        replace(
            entry, waterfall=nest.waterfall(problem, space, entry, ours, time_limit_s, frontier)
        )
        if entry.name == "nest"
        else entry
        for entry in results
    )


def _evaluate(
    problem: Problem,
    space: SearchSpace,
    name: str,
    method: Callable[[SearchSpace], Found] | None,
    schedules: tuple[str, ...],
    clock: Callable[[], float],
) -> Baseline:
    began = clock()
    label = NAMES.get(name, name)
    if method is None:
        return Baseline(name, label, "", None, f"evaluated are {', '.join(NAMES)}", 0.0)
    try:
        require(
            space.schedules,
            "search.schedule",
            "must allow one that has a closed form for other methods",
            list(schedules),
            "add 1f1b",
        )
        answer = method(space)
    except InputError as error:  # the limits leave this method no point; others may have some
        return Baseline(name, label, "", None, str(error), clock() - began)
    seconds = clock() - began
    if answer.plan is None:
        return Baseline(name, label, answer.origin, None, answer.reason, seconds)
    report = price(problem, answer.plan)
    return Baseline(
        name, label, answer.origin, report, report.reason, seconds, promised_s=answer.promised_s
    )
