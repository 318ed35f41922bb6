"""Plans in the words of other programs: launch arguments, rank order and host files.

Each target is a pure function of a scenario and a priced plan that gives `ExportFiles`, or raises
`ExportRefused` with one sentence where the program cannot express the plan. Modules name the
version that their options were checked against.
"""

from collections.abc import Callable, Mapping

from nest_core.costs import NO_OFFLOAD, Report
from nest_core.documents import require
from nest_core.interop.exporters.astra_sim import export_astra_sim
from nest_core.interop.exporters.deepspeed import export_deepspeed
from nest_core.interop.exporters.megatron import export_megatron
from nest_core.interop.exporters.nemo import export_nemo
from nest_core.interop.exporters.slurm import export_slurm
from nest_core.interop.exporters.torchtitan import export_torchtitan
from nest_core.interop.exporters.values import ExportFiles, ExportRefused, refuse_first
from nest_core.scenario import ScenarioValues

__all__ = ["TARGETS", "ExportFiles", "ExportRefused", "export_plan"]

TARGETS: Mapping[str, Callable[[ScenarioValues, Report], ExportFiles]] = {
    "megatron": export_megatron,
    "nemo": export_nemo,
    "deepspeed": export_deepspeed,
    "torchtitan": export_torchtitan,
    "slurm": export_slurm,
    "astra-sim": export_astra_sim,
}
"""Every target by the name that ``nest-studio export --to`` takes."""

_OFFLOADING = ("megatron", "deepspeed", "slurm")
"""Those that say what is on the host; Slurm starts any program."""


def export_plan(target: str, scenario: ScenarioValues, report: Report) -> ExportFiles:
    """Return the files of a priced plan for one target.

    Raises
    ------
    Refused
        If the target cannot express the plan.
    InputError
        If there is no such target.
    """
    require(target in TARGETS, "to", "must be a known target", target, "pick " + ", ".join(TARGETS))
    refuse_first(
        (
            report.plan.ragged,
            "plan.stage_strategies",
            "must give every stage as many devices, as no framework launches others",
            ", ".join(map(str, report.plan.widths)),
            "plan without unequal widths",
        ),
        (
            report.plan.offload != NO_OFFLOAD and target not in _OFFLOADING,
            "plan.offload",
            f"must be none for {target}, whose export has nothing on the host",
            report.plan.offload.spelled,
            "pin search.offload",
        ),
    )
    return TARGETS[target](scenario, report)
