"""Two or three fabrics side by side: the same figures, the same order, maps on equal scales."""

from __future__ import annotations

from dataclasses import dataclass, replace

import plotly.graph_objects as go
import streamlit as st

from nest_core.bill.bill import Bill
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.quoting import as_markdown
from nest_core.documents.units import humanise_seconds
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_studio.components.show import facts, show_picture
from nest_studio.design.bill import bill_figures, bill_job
from nest_studio.form.fabric import fabric_scenario, own_names
from nest_studio.form.fields import SomeOf, widget
from nest_studio.jobs.tasks.fabrics import FabricAnswer, all_reduce_time, fabric_answer
from nest_studio.jobs.waiting import given_up, panel, submitted

__all__ = ["beside"]

MOST = 2
MAP_HEIGHT = 320
PARTS = ("fabric", "bill", "all-reduce")


@dataclass(frozen=True, slots=True)
class _Column:
    """What is known of one fabric; ``all_reduce_s`` is 0 where pricing it takes long."""

    answer: FabricAnswer
    bill: Bill
    all_reduce_s: float

    @property
    def figures(self) -> dict[str, str]:
        time = humanise_seconds(self.all_reduce_s) if self.all_reduce_s else "–"
        return (
            {headline.name: headline.value for headline in self.answer.headlines}
            | {"All-reduce of 1 GiB over all devices": time}
            | bill_figures(self.bill)
        )


def beside(scenario: Scenario) -> None:
    """Choose one or two other fabrics and read them against the one above."""
    st.subheader("Side by side")
    others = (*own_names(), *preset_names("fabrics"))
    picked = widget(
        "beside",
        SomeOf(others, MOST),
        None,
        label="Beside this fabric",
        placeholder="Choose one or two fabrics",
        help="As they stand in their presets.",
    )
    fabrics = [("this fabric", scenario), *((name, fabric_scenario(name)) for name in picked)]
    for number in range(len(fabrics) if picked else 0, MOST + 1):
        for part in PARTS:
            given_up(_place(number, part))
    if not picked:
        facts("Nothing to compare yet.", kind="nest-quiet")
        return
    columns = []
    for number, (name, scenario) in enumerate(fabrics):
        try:
            column = _column(number, name, scenario)
        except InputError as error:
            st.info(as_markdown(f"{name} is not a fabric yet: {error}"))
        else:
            if column is None:
                return
            columns.append(column)
    # Letters keep two fabrics of one name apart.
    names = [
        f"{letter}: {column.answer.title}" for letter, column in zip("ABC", columns, strict=False)
    ]
    rows = [
        {"figure": label}
        | {name: column.figures[label] for name, column in zip(names, columns, strict=True)}
        for label in columns[0].figures
    ]
    finding = _finding(names, [column.all_reduce_s for column in columns])
    st.html(Table(finding, "The same figures of each", rows).to_html())
    for index, (place, column) in enumerate(zip(st.columns(len(columns)), columns, strict=True)):
        with place:
            facts(names[index], kind="nest-subtitle")
            picture = column.answer.map
            plot = go.Figure(picture.plot).update_layout(height=MAP_HEIGHT)
            show_picture(replace(picture, plot=plot), f"beside-{index}")


def _column(number: int, name: str, scenario: Scenario) -> _Column | None:
    """What is known of a fabric; None while it is awaited, which is said."""
    places = [_place(number, part) for part in PARTS]
    jobs = (
        submitted(fabric_answer, scenario, place=places[0]),
        bill_job(scenario, places[1]),
        submitted(all_reduce_time, scenario, urgent=False, place=places[2]),
    )
    parts = []
    for job, place in zip(jobs, places, strict=True):
        part = panel(job, f"Pricing the same collective on {name}", key=place)
        if part is None:
            return None
        parts.append(part)
    return _Column(*parts)


def _place(number: int, part: str) -> str:
    return f"beside-{number}-{part}"


def _finding(names: list[str], times: list[float]) -> str:
    """Which reduces fastest, as far as that is known of all."""
    if not all(times):
        return "Not every fabric has the same figures"
    quickest, slowest = times.index(min(times)), times.index(max(times))
    ratio = times[slowest] / times[quickest]
    if ratio < 1.005:
        return "All reduce equally fast"
    return f"{names[quickest]} reduces 1 GiB {ratio:.3g} times as fast as {names[slowest]}"
