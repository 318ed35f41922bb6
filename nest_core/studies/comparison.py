"""Two to six scenarios solved and read against each other.

Every scenario is planned by itself, its whole bill drawn up (`nest_core.bill.ownership`), its
worst single failure found (`failures`), and its fabric scaled to a common budget where one is given
(`equal_budget`). Prices do not change plans: `Comparison.at` draws up other bills of the same ones.
Power with accelerators adds their design power; hosts, fans and cooling are not counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from nest_core.bill.ownership import Owned, owned
from nest_core.bill.prices import Prices, prices_of
from nest_core.costs.price import Report
from nest_core.documents import InputError, assign, csv_text, require
from nest_core.documents.schema import ScenarioFile, StudyTable, checked, parameter
from nest_core.network import collapse, level_blocks
from nest_core.planner.baselines import evaluate_baselines
from nest_core.report.explain.training import usual_tokens
from nest_core.scenario import (
    OF_FAILURES,
    OF_PRICES,
    Scenario,
    ScenarioValues,
    expanded,
)
from nest_core.studies.comparison_table import ComparisonLine, lines
from nest_core.studies.decision import Decision, DecisionInputs, check_jobs, decide
from nest_core.studies.equal_budget import Budget, at_budget, spent
from nest_core.studies.failures import worst_failure
from nest_core.studies.ranking import MAX_LOSS
from nest_core.studies.solving import Stop, never
from nest_core.studies.whole_bill import (
    DEVICE_USD,
    Candidate,
    WholeBill,
    bill_of_scenario,
    scenario_prices,
)

__all__ = [
    "BUDGET_OF",
    "FEWEST",
    "LONGEST_NAME",
    "MOST",
    "Comparison",
    "assumptions_of",
    "budget_of",
    "compare",
    "comparison_of",
    "differing",
    "further_figures",
    "planned_candidate",
    "settings_of",
    "with_overrides",
]

FEWEST, MOST = 2, 6
LONGEST_NAME = 60
BUDGET_OF = {
    "price": parameter("budget_usd", StudyTable),
    "power": parameter("budget_W", StudyTable),
}
_DEVICE = "ownership.device_usd.typical"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidates in the order they were given; the first is what others are read against.

    Parameters
    ----------
    candidates : tuple of Candidate
    budget : Budget or None
    assumed : DecisionInputs
        What the decision takes for granted.
    """

    candidates: tuple[Candidate, ...]
    budget: Budget | None
    assumed: DecisionInputs = field(default_factory=DecisionInputs)

    def decision(self) -> Decision:
        """Return which of them is to be built; raises as `decide`."""
        return decide(self.candidates, self.assumed)

    def lines(self) -> tuple[ComparisonLine, ...]:
        """Return the table: one line per figure, a value and a text per candidate."""
        return lines(self.candidates, self.budget)

    def at(self, changes: Mapping[str, Any], assumed: Mapping[str, Any] | None = None) -> Self:
        """Return the same plans under other prices.

        Parameters
        ----------
        changes : mapping
            Dotted keys of the price list (``ownership.pue.typical``) to values, over each
            scenario's own.
        assumed : mapping, optional
            As of `compare`; what the decision takes for granted now without it.
        """
        tokens, limits, failing = assumptions_of(assumed or {})
        moved = (
            replace(
                candidate,
                owned=_owned(values, scenario_prices(candidate.source, changes)),
                training=candidate.training
                and candidate.training.under(failures, tokens or usual_tokens(values)),
            )
            for candidate in self.candidates
            for failures in [with_overrides(candidate.source, failing).failures]
            for values in [replace(candidate.scenario, failures=failures)]
        )
        return type(self)(tuple(moved), self.budget, self.assumed if assumed is None else limits)

    def rows(self) -> list[dict[str, float | str | None]]:
        """Return one row per candidate: its name, then every figure; units stand in the names."""
        table = self.lines()
        return [
            {"scenario": candidate.name, **{line.column: line.values[place] for line in table}}
            for place, candidate in enumerate(self.candidates)
        ]

    def to_csv(self) -> str:
        """Return the table as CSV with plain numbers: part, figure, unit, then the candidates."""
        return csv_text(
            ["part", "figure", "unit", *(candidate.name for candidate in self.candidates)],
            ([line.part, line.column, line.unit, *line.values] for line in self.lines()),
        )


def compare(
    entries: Sequence[tuple[str, Scenario]],
    *,
    budget: Mapping[str, Any] | None = None,
    failures: bool = True,
    level_wise: bool = False,
    device_usd: float | None = None,
    prices: Mapping[str, Any] | None = None,
    assumed: Mapping[str, Any] | None = None,
    one_job: bool = False,
) -> Comparison:
    """Solve and compare scenarios.

    Parameters
    ----------
    entries : sequence of (str, Scenario)
        Two to six, by their names.
    budget : mapping, optional
        ``{"kind": "price" | "power", "value"}`` with US dollars or watts for the network; a value
        of None is what the first network costs or draws.
    failures : bool
        Whether the worst single failure is sought.
    level_wise : bool
        Whether NEST's level-wise program plans beside the exact search.
    device_usd : float, optional
        US dollars of an accelerator with its share of the server; the listed server's without it.
    prices : mapping, optional
        Dotted keys of the price list to values, over each scenario's own.
    assumed : mapping, optional
        ``hours`` and ``max_loss`` of `DecisionInputs`, ``tokens`` of the training run, and
        overrides of every scenario's failures: ``failures``, by name, and keys that start so.
    one_job : bool
        Whether scenarios that do not train the same are refused, before any is planned.

    Raises
    ------
    InputError
        For what is no comparison; for a scenario that is none, with its name in front.
    """
    _check_names([name for name, _ in entries])
    *_, failing = assumptions_of(assumed or {})
    entries = [(name, with_overrides(scenario, failing)) for name, scenario in entries]
    values = [_values(name, scenario) for name, scenario in entries]
    if one_job:
        check_jobs(values)
    device = {} if device_usd is None else {_DEVICE: DEVICE_USD.checked(device_usd)}
    listed = {**(prices or {}), **device}
    limit = budget_of(budget, values[0], listed)
    candidates = []
    for name, scenario in entries:
        candidate = planned_candidate(name, scenario, listed)
        more = further_figures(
            scenario,
            candidate.report,
            limit,
            listed,
            failures=failures,
            level_wise=level_wise,
        )
        candidates.append(replace(candidate, **more))
    result = comparison_of([scenario for _, scenario in entries], candidates, limit)
    return result.at(listed, assumed or {})


def assumptions_of(
    assumed: Mapping[str, Any],
) -> tuple[float | None, DecisionInputs, dict[str, Any]]:
    """Return tokens of the training run, what a decision takes for granted, overrides of failures.

    Raises
    ------
    InputError
        For other names, or a value out of its range.
    """
    given = {name: value for name, value in assumed.items() if value is not None}
    failures = {name: given.pop(name) for name in list(given) if f"{name}.".startswith(OF_FAILURES)}
    highs = {"hours": 1.0, "max_loss": 1.0, "tokens": 1e18}
    for name, value in given.items():
        high = highs.get(name)
        require(high, "assumed", "must name hours, max_loss, tokens or failures", name, "change it")
        require(
            isinstance(value, int | float) and high is not None and 0 <= value <= high,
            name.replace("_", "-"),
            f"must be from 0 to {high:g}",
            value,
            "change it",
        )
    limits = DecisionInputs(given.get("hours", 1.0), given.get("max_loss", MAX_LOSS))
    return given.get("tokens"), limits, failures


def with_overrides(scenario: Scenario, overrides: Mapping[str, Any]) -> Scenario:
    """Return a scenario under more overrides."""
    return replace(scenario, overrides={**scenario.overrides, **overrides})


def planned_candidate(
    name: str, scenario: Scenario, prices: Mapping[str, Any] | None = None, *, stop: Stop = never
) -> Candidate:
    """Plan one scenario, and draw up its bill; parameters as of `compare`, ``stop`` of `search`.

    What cannot be planned has the sentence as its reason.
    """
    values, listed = scenario.values, scenario_prices(scenario, prices)
    network = collapse(values.fabric)
    try:
        bill = bill_of_scenario(
            name, scenario, prices=listed, problem=values.problem(network=network), stop=stop
        )
    except InputError as error:
        bill = WholeBill(name, _owned(values, listed), values, reason=str(error))
    return Candidate(
        **{field.name: getattr(bill, field.name) for field in fields(bill)},
        source=scenario,
        levels=network.levels,
        blocks=level_blocks(network),
    )


def further_figures(
    scenario: Scenario,
    report: Report | None,
    budget: Budget | None = None,
    prices: Mapping[str, Any] | None = None,
    *,
    failures: bool = False,
    level_wise: bool = False,
    stop: Stop = never,
) -> dict[str, Any]:
    """Return fields of a candidate that take searches of their own; parameters as of `compare`.

    Parameters
    ----------
    report : Report or None
        Its best plan.
    """
    values, listed = scenario.values, scenario_prices(scenario, prices)
    more: dict[str, Any] = {}
    if failures and report is not None:
        spares = _owned(values, listed).spare_nodes
        more["failure"] = worst_failure(values, report.plan, spares, stop=stop)
    if budget is not None:
        more["at_budget"] = at_budget(scenario, budget, listed, stop=stop)
    if level_wise:
        (more["nest"],) = evaluate_baselines(
            values.problem(),
            values.space,
            values.model,
            ("nest",),
            as_in_paper=values.baseline_space == "paper",
            time_limit_s=values.time_limit_s,
            ours=report,
        )
    return more


def comparison_of(
    scenarios: Sequence[Scenario], candidates: Sequence[Candidate], budget: Budget | None
) -> Comparison:
    """Return candidates of scenarios beside each other, each with the settings that differ."""
    settings = [settings_of(scenario) for scenario in scenarios]
    keys = differing(settings)
    return Comparison(
        tuple(
            replace(candidate, settings=tuple((key, setting.get(key, "")) for key in keys))
            for candidate, setting in zip(candidates, settings, strict=True)
        ),
        budget,
    )


def _check_names(names: Sequence[str]) -> None:
    require(
        FEWEST <= len(names) <= MOST,
        "entries",
        f"must list {FEWEST} to {MOST} scenarios",
        len(names),
        "add or remove some",
    )
    for number, name in enumerate(names):
        require(
            name not in names[:number],
            "entries.name",
            "must name each scenario once",
            name,
            "rename one",
        )
        require(
            0 < len(name.strip()) <= LONGEST_NAME,
            f"entries[{number}].name",
            f"must be text of 1 to {LONGEST_NAME} characters",
            name,
            "rename it",
        )


def _values(name: str, scenario: Scenario) -> ScenarioValues:
    try:
        return scenario.values
    except InputError as error:
        raise InputError(f"{name}: {error.field}", error.rule, error.value, error.remedy) from error


def _owned(values: ScenarioValues, prices: Prices) -> Owned:
    return owned(values.fabric, prices, values.accelerator.name, failures=values.failures)


def budget_of(
    budget: Mapping[str, Any] | None, first: ScenarioValues, prices: Mapping[str, Any] | None
) -> Budget | None:
    """Return what networks may take, where that is asked; parameters as of `compare`."""
    if budget is None:
        return None
    require(
        isinstance(budget, Mapping) and budget.get("kind") in BUDGET_OF,
        "budget.kind",
        "must be price or power",
        budget,
        "pick one",
    )
    value = budget.get("value")
    if value is None:
        return Budget(
            budget["kind"],
            spent(_owned(first, prices_of(None, prices or {})).network, budget["kind"]),
        )
    return Budget(budget["kind"], BUDGET_OF[budget["kind"]].checked(value, "budget.value"))


_LEFT_OUT = ("schema", "name", "description", "source")
_MODEL = "workload.model"
_LISTED = 16
"""Longer lists of tables are given by their length."""


def settings_of(scenario: Scenario) -> dict[str, str]:
    """Return dotted keys of a scenario, which must be one, and their values as text.

    Examples
    --------
    >>> from nest_core.scenario import scenario_document
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> found = settings_of(Scenario(document, {"accelerator.memory_GiB": 40.0}))
    >>> found["accelerator.memory_GiB"], found["workload.model"], found["search.idle_devices"]
    ('40', 'llama2-7b', 'true')
    """
    merged, changes = expanded(scenario.document, scenario.overrides, scenario.folder)
    in_parts = (f"{_MODEL}.", OF_FAILURES, OF_PRICES)  # of what may be a name in the document
    parts = {key: changes.pop(key) for key in list(changes) if key.startswith(in_parts)}
    for key, value in changes.items():
        assign(merged, key, value)
    table = checked(ScenarioFile, merged).model_dump(by_alias=True, exclude_none=True)
    del table["baselines"]
    settings: dict[str, str] = {}
    _flatten("", table, settings)
    model = table["workload"]["model"]
    settings[_MODEL] = str(model["name"] if isinstance(model, dict) else model)
    return settings | {key: _text(value) for key, value in parts.items()}


def differing(every: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Keys whose values are not the same in all, in the order of the first.

    A key that some lack counts if all have the table it stands in: a torus has no
    ``fabric.clos``, which ``fabric.kind`` says already.
    """
    return tuple(
        key
        for key in dict.fromkeys(key for settings in every for key in settings)
        if len({settings.get(key) for settings in every}) > 1
        and all(
            any(name == key or name.startswith(f"{key.rpartition('.')[0]}.") for name in settings)
            for settings in every
        )
    )


def _flatten(path: str, value: Any, settings: dict[str, str]) -> None:
    if isinstance(value, dict) and set(value) != {"min", "max"}:
        for key, inner in value.items():
            if key not in _LEFT_OUT:
                _flatten(f"{path}.{key}" if path else key, inner, settings)
    elif isinstance(value, list) and value and isinstance(value[0], dict | float):
        if isinstance(value[0], dict) and len(value) > _LISTED:
            settings[path] = f"{len(value):,} entries"
            return
        for index, inner in enumerate(value):
            _flatten(f"{path}.{index}", inner, settings)
    else:
        settings[path] = _text(value)


def _text(value: Any) -> str:
    """Return a value as a person reads it.

    Examples
    --------
    >>> [_text(value) for value in (1.0, True, [0, 1], {"min": 1, "max": 16}, [])]
    ['1', 'true', '0, 1', '1 to 16', 'none']
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, dict):
        most = value.get("max", 10_000_000)
        return (
            f"{value.get('min', 1)} or more"
            if most == 10_000_000
            else (f"{value.get('min', 1)} to {most}")
        )
    return (
        ", ".join(_text(entry) for entry in value) or "none"
        if isinstance(value, list)
        else str(value)
    )
