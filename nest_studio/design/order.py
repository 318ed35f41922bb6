"""Order, build, accept: a fabric's cables, and the tests that it should pass once it stands."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from nest_core.bill.cables import Format
from nest_core.calibration.acceptance.expected import accelerator_in
from nest_core.calibration.acceptance.verdict import Verdict
from nest_core.documents.errors import InputError
from nest_core.documents.files import decoded
from nest_core.documents.presets import preset_names
from nest_core.documents.quoting import as_markdown
from nest_core.report.figures.acceptance import acceptance_rows, acceptance_script
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.scenario.titles import file_stem
from nest_studio.components.show import download, facts, told
from nest_studio.design.bill import price_settings
from nest_studio.form.fields import OneOf, upload, widget
from nest_studio.jobs.tasks.fabrics import FabricAnswer
from nest_studio.jobs.tasks.orders import acceptance, cable_file, cable_summary
from nest_studio.jobs.waiting import panel, submitted

__all__ = ["order_section"]

FILES: tuple[tuple[Format, str], ...] = (
    ("netbox", "↓ NetBox import (CSV)"),
    ("csv", "↓ Order list (CSV)"),
)
LOGS, ACCELERATOR = "acceptance logs", "acceptance.accelerator"


def order_section(scenario: Scenario, answer: FabricAnswer) -> None:
    """Cables to order and to import, commands to run, their logs and the verdict."""
    st.subheader("Order, build, accept")
    narrow, wide = st.columns([2, 3], gap="medium")
    with narrow:
        _cables(scenario, answer)
        uploaded = st.file_uploader(
            "Logs of the tests",
            accept_multiple_files=True,
            key=LOGS,
            help="What the commands printed, at most 5 MB each. The files stay on this machine.",
        )
    with wide:
        device = _accelerator(str(scenario.fabric_table.get("name", "")))
        if not device:
            facts("Choose the accelerator to see what its tests should reach.", kind="nest-quiet")
            return
        try:
            files = (file for log in uploaded or () if (file := upload(log)) is not None)
            logs = tuple((file.name, decoded(file.getvalue(), file.name)) for file in files)
        except InputError as error:
            narrow.error(as_markdown(error))
            logs = ()
        _acceptance(scenario, device, logs, narrow)


def _cables(scenario: Scenario, answer: FabricAnswer) -> None:
    settings = price_settings()
    with told(lambda why: facts(why, kind="nest-quiet")):
        summary = panel(
            submitted(cable_summary, scenario, settings, place="cables"),
            "Listing its cables",
            key="cables",
        )
        if summary is None:
            return
        count, tiers, notes = summary
        by_tier = ", ".join(f"{number:,} to the {tier} tier" for tier, number in tiers)
        facts(f"{count:,} cables, one row each: {by_tier}.")
        with st.container(horizontal=True, gap="small"):
            for style, label in FILES:
                download(
                    label,
                    partial(_file, scenario, settings, style),
                    f"{file_stem(answer.title)}-{style}.csv",
                    "text/csv",
                    key=f"cables-{style}",
                )
        facts(*notes, kind="nest-quiet")


def _file(scenario: Scenario, settings: tuple[str, ...], style: Format) -> str:
    text: str = submitted(cable_file, scenario, settings, style).result()
    return text


def _accelerator(fabric: str) -> str:
    """The chosen preset, at first the one that the fabric's name tells."""
    names = preset_names("accelerators")
    told_by_name = accelerator_in(fabric)
    key = f"{ACCELERATOR}.{told_by_name}"
    chosen = widget(
        key,
        OneOf(names, empty=True),
        told_by_name or None,
        label="Accelerator, whose library runs the tests",
        bind=None,
        placeholder="Choose an accelerator",
        help="At first the one that the fabric's name tells.",
    )
    return chosen or ""


def _acceptance(
    scenario: Scenario, device: str, logs: tuple[tuple[str, str], ...], beside_logs: Any
) -> None:
    verdict: Verdict | None = None
    try:
        verdict = panel(
            submitted(acceptance, scenario, device, logs, place="acceptance", urgent=False),
            "Pricing its acceptance tests",
            key="acceptance",
        )
    except InputError as error:
        if not logs:
            facts(str(error), kind="nest-quiet")
            return
        beside_logs.error(as_markdown(error))
        _acceptance(scenario, device, (), beside_logs)
        return
    if verdict is None:
        return
    for sentence in verdict.unmatched:
        beside_logs.warning(as_markdown(sentence))
    subtitle = (
        "Bus bandwidth of nccl-tests at 4 GiB, GB/s; at least: lower end of the 80 % interval"
    )
    st.html(Table(verdict.finding.rstrip("."), subtitle, acceptance_rows(verdict)).to_html())
    with st.expander("Commands, in this order"):
        st.code(acceptance_script([outcome.expected for outcome in verdict.outcomes]), "bash")
