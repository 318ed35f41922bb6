"""What a plan is taken along as: scenario, plan, command, files of frameworks and schedulers."""

import json
from dataclasses import replace
from functools import partial

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs import Report
from nest_core.documents import as_markdown, plain
from nest_core.scenario import Scenario, file_stem
from nest_studio.components.show import download, facts
from nest_studio.jobs.tasks.exports import plan_exports, zipped
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.plan.certainty import shown_recommendation
from nest_studio.plan.state import OtherPlans
from nest_studio.session.open_plan import over_preset
from nest_studio.session.scenario_file import command_line, scenario_toml

__all__ = ["export_popover", "framework_exports"]

PATIENCE_S = 60.0
"""How long a file waits for the baselines that stand in it."""


def export_popover(scenario: Scenario, answer: Answer) -> None:
    """Draw downloads, the command that asks for the same, and files for who launches it."""
    box = st.popover("Export", key="export", on_change="rerun")
    if not box.open:
        return
    title = scenario.title
    preset, overrides = over_preset(scenario)
    file = file_stem(title) if overrides else preset
    with box:
        download(
            "↓ Scenario (TOML)",
            lambda: scenario_toml(scenario.document, scenario.overrides, title),
            f"{file}.toml",
            "application/toml",
            help="The scenario file that asks for this.",
        )
        download(
            "↓ Plan (JSON)",
            lambda: _plan_json(scenario, answer),
            f"{file}-plan.json",
            "application/json",
            help="What the command prints: plan, stages, certificate, baselines; what draws "
            "recommend once they were searched here.",
        )
        if answer.best is not None:
            framework_exports(scenario, answer.best, file)
        facts("Command", kind="nest-title")
        if isinstance(overrides.get("fabric"), dict):
            facts("The downloaded scenario holds your fabric.", kind="nest-quiet")
            command = f"nest-studio plan {file}.toml"
        else:
            command = command_line(preset, overrides)
        st.code(command, None, wrap_lines=True)


@st.fragment
def framework_exports(scenario: Scenario, best: Report, name: str) -> None:
    """Every target with its files as one download, or the sentence that says why it cannot.

    Parameters
    ----------
    scenario : Scenario
    best : Report
        Its plan.
    name : str
        Stem of the archives' names.
    """
    exports = panel(
        submitted(plan_exports, scenario, best, place="export-files"),
        "Writing it for every framework",
        key="export-files",
    )
    for export in exports or ():
        if export.refused:
            facts(f"{export.label}: {export.refused}", kind="nest-quiet")
        else:
            download(
                f"↓ {export.label} (zip)",
                partial(zipped, export.files),
                f"{name}-{export.target}.zip",
                "application/zip",
                key=f"export-{export.target}",
                help=as_markdown(" ".join((f"{', '.join(export.files)}.", *export.notes))[:1000]),
            )


def _plan_json(scenario: Scenario, answer: Answer) -> str:
    complete = replace(
        answer,
        baselines=OtherPlans(scenario, answer).every(PATIENCE_S),
        recommended=shown_recommendation(scenario),
    )
    return json.dumps(plain(complete.to_json()), indent=2, allow_nan=False)
