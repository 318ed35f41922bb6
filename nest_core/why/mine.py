"""A person's own plan, typed or pasted, priced on a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from nest_core.costs.checks import check_plan
from nest_core.costs.megatron_job import Setting
from nest_core.costs.parse import Pasted, read_pasted
from nest_core.costs.plan import Plan
from nest_core.costs.price import Report, price
from nest_core.costs.tables import state_bytes
from nest_core.errors import InputError
from nest_core.layout.placement import read_placement
from nest_core.scenario import Scenario
from nest_core.workload import Model

__all__ = ["Mine", "OtherJob", "check_heads", "check_job", "price_pasted", "withheld"]


@dataclass(frozen=True, slots=True)
class Mine:
    """A pasted plan and its price."""

    pasted: Pasted
    report: Report


class OtherJob(InputError):
    """A command that trains something else than the scenario, or with other software.

    Parameters
    ----------
    settings : dict
        What the command says, by the keys of scenario files, where the scenario differs.
    found : dict
        The scenario's values for the same keys.
    """

    def __init__(self, settings: Mapping[str, Setting], found: Mapping[str, object]) -> None:
        told, here = (_words(values) for values in (settings, found))
        sets = " ".join(f"--set {key}={json.dumps(value)}" for key, value in settings.items())
        super().__init__(
            "your command", f"must train what is planned, {here}", told,
            f"take its values over ({sets}), or give the plan's flags alone",
        )  # fmt: skip
        self.settings = dict(settings)
        self.found = dict(found)

    def __reduce__(self) -> tuple[type[OtherJob], tuple[object, ...]]:
        return OtherJob, (self.settings, self.found)


def _words(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in values.items())


def price_pasted(asked: Scenario, text: str, placement: str = "") -> Mine:
    """Read fields or a Megatron-LM command, and price what it says.

    Parameters
    ----------
    placement : str
        Where the ranks sit, by hand (`nest_core.layout.placement.read_placement`); empty: as the
        plan's device order says.

    Raises
    ------
    InputError
        If the text is no plan, or not one on this problem, or the placement does not seat it;
        `OtherJob` if the text is a command for another job. Not fitting is an answer.
    """
    problem = asked.problem()
    devices = problem.network.devices
    pasted = read_pasted(text, problem.layers, devices)
    check_job(asked, pasted.settings)
    check_heads(asked.model, pasted.plan)
    if placement.strip():
        check_plan(problem, pasted.plan)
        order = read_placement(placement, pasted.plan, devices, "placement")
        point = replace(pasted.plan.point, device_order=order)
        pasted = replace(pasted, plan=replace(pasted.plan, point=point))
    return Mine(pasted, price(problem, pasted.plan))


def check_job(asked: Scenario, settings: Mapping[str, Setting]) -> None:
    """Refuse a command that trains another model, sequence, batch or precision, or otherwise.

    Raises
    ------
    OtherJob
        With every setting in which the command and the scenario differ.
    """
    told = dict(settings)
    if not asked.model.ffn and "workload.model.ffn" in told:  # the width of every MLP: experts
        told.setdefault("workload.model.expert_ffn", told.pop("workload.model.ffn"))
        told.pop("workload.model.ffn", None)
    here = {key: _here(asked, key) for key in told}
    apart = {key: value for key, value in told.items() if not _same(key, value, here[key])}
    if apart:
        raise OtherJob(apart, {key: here[key] for key in apart})


def _here(asked: Scenario, key: str) -> object:
    """What a scenario has under a key of its file."""
    name = key.rpartition(".")[2]
    if key.startswith("workload.model."):
        return getattr(asked.model, name)
    if name == "gradient_bytes":
        return state_bytes(asked.precision, asked.optimizer, asked.gradient_bytes).gradients
    renamed = {"sequence_length_tokens": "sequence", "global_batch_sequences": "batch"}
    return getattr(asked, renamed.get(name, name))


def _same(key: str, told: Setting, here: object) -> bool:
    """Whether a scenario has what a command says; Megatron-LM's flags say less of two things."""
    if key == "workload.overlap":
        return here != "none"
    if key == "workload.optimizer" and told == "adam":
        return str(here).startswith("adam")
    return told == here


def withheld(pasted: Pasted) -> str | None:
    """Why no verdict stands beside a pasted plan; None where one does."""
    if not pasted.unpriced:
        return None
    flags = ", ".join(pasted.unpriced)
    many = len(pasted.unpriced) > 1
    return (
        f"No verdict: {flags} may change time or memory, and {'have' if many else 'has'} no price "
        f"here. The figures are those of the command without {'them' if many else 'it'}."
    )


def check_heads(model: Model, plan: Plan) -> None:
    """Refuse tensor-parallel degrees that do not divide the heads."""
    for tp in (plan.point.tp, *(strategy.tp for strategy in plan.strategies)):
        if model.heads % tp:
            raise InputError(
                "plan.tp", f"must divide the model's {model.heads} heads", tp, "choose another tp"
            )
