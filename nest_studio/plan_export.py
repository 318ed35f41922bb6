"""What a plan is taken along as: scenario, plan, command, files of frameworks and schedulers."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from functools import partial

import streamlit as st

from nest_core.costs import Report
from nest_core.exporters import TARGETS, export_plan
from nest_core.quoting import as_markdown
from nest_core.scenario import Scenario
from nest_core.scenario.titles import file_stem, scenario_title
from nest_core.text import plain
from nest_studio.forms import Request
from nest_studio.plan_state import answer_of, every_baseline
from nest_studio.scenario_file import command_line, scenario_toml
from nest_studio.show import download, facts, told
from nest_studio.sure_view import shown_recommendation

__all__ = ["export_popover"]

_NAMES = {
    "megatron": "Megatron-LM",
    "nemo": "NeMo",
    "deepspeed": "DeepSpeed",
    "torchtitan": "torchtitan",
    "slurm": "Slurm",
    "astra-sim": "ASTRA-sim",
}


def export_popover(request: Request, text: str, scenario: Scenario, best: Report | None) -> None:
    """Downloads, the command that asks for the same, and files for who launches it."""
    title = scenario_title(scenario)
    file = file_stem(title) if request.overrides else request.scenario
    box = st.popover("Export", key="export", on_change="rerun")
    if not box.open:
        return
    with box:
        download(
            "↓ Scenario (TOML)",
            lambda: scenario_toml(request.document, request.overrides, title),
            f"{file}.toml",
            "application/toml",
            help="The scenario file that asks for this.",
        )
        download(
            "↓ Plan (JSON)",
            lambda: _plan_json(text),
            f"{file}-plan.json",
            "application/json",
            help="What the command prints: plan, stages, certificate, baselines; what draws "
            "recommend once they were searched here.",
        )
        if best is not None:
            _launches(scenario, best, file)
        facts("Command", kind="nest-title")
        if isinstance(request.overrides.get("fabric"), dict):
            facts("The downloaded scenario holds your fabric.", kind="nest-quiet")
            command = f"nest-studio plan {file}.toml"
        else:
            command = command_line(request.scenario, request.overrides)
        st.code(command, "sh", wrap_lines=True)


def _launches(scenario: Scenario, best: Report, file: str) -> None:
    """The plan for each framework that can express it; why where one cannot."""
    for target in TARGETS:
        name = _NAMES[target]
        with told(partial(_refused, name)):
            export_plan(target, scenario, best)
            download(
                f"↓ {name} (zip)",
                partial(_zipped, target, scenario, best),
                f"{file}-{target}.zip",
                "application/zip",
                key=f"export-{target}",
                help=as_markdown(f"Launch arguments, rank order and host files of {name}."),
            )


def _refused(name: str, sentence: str) -> None:
    """Say why a target cannot express the plan."""
    facts(f"{name}: {sentence}", kind="nest-quiet")


def _zipped(target: str, scenario: Scenario, best: Report) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in export_plan(target, scenario, best).files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return found.getvalue()


def _plan_json(text: str) -> str:
    answer = replace(answer_of(text, every_baseline(text)), recommended=shown_recommendation(text))
    return json.dumps(plain(answer.to_json()), indent=2, allow_nan=False)
