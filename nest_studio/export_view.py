"""A popover that takes a plan along: files for frameworks and schedulers, or why they refuse it."""

from __future__ import annotations

import streamlit as st

from nest_core.costs.price import Report
from nest_studio.jobs import awaited
from nest_studio.show import download, facts
from nest_studio.tasks.exports import PlanExport, plan_exports, zipped

__all__ = ["export_popover", "framework_exports"]


def export_popover(text: str, best: Report | None, name: str, *, key: str = "export") -> None:
    """The popover alone; `framework_exports` where there is one already.

    Parameters
    ----------
    text : str
        The request's canonical text.
    best : Report or None
        Its plan.
    name : str
        Stem of the files' names.
    key : str
        Tells this place from others on the page.
    """
    box = st.popover(
        "Export",
        type="tertiary",
        key=f"{key}-popover",
        on_change="rerun",
        disabled=best is None,
        help="Files that start this plan.",
    )
    if box.open and best is not None:
        with box:
            framework_exports(text, best, name, key=key)


@st.fragment
def framework_exports(text: str, best: Report, name: str, *, key: str = "export") -> None:
    """Every target with its files as one download, or its sentence; parameters as above."""
    found = awaited(
        plan_exports,
        text,
        best,
        what="Writing it for every framework",
        key=f"{key}-files",
        place=f"{key}-files",
    )
    for each in found or ():
        _target(each, name, key)


def _target(each: PlanExport, name: str, key: str) -> None:
    if each.refused:
        facts(f"{each.label} cannot: {each.refused}", kind="nest-quiet")
        return
    single = len(each.files) == 1
    (file, *_) = each.files
    download(
        f"↓ {each.label}",
        (lambda: each.files[file]) if single else (lambda: zipped(each.files)),
        file if single else f"{name}-{each.target}.zip",
        "text/plain" if single else "application/zip",
        key=f"{key}-{each.target}",
        help=" ".join((f"{', '.join(each.files)}.", *each.notes))[:1000],
    )
