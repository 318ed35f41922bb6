"""Jobs that share a fabric, on Explore: who slows whom by placement, or what ratios cost."""

from typing import Any

import streamlit as st

from nest_core.api.mixes import SharedFabric, mix_text
from nest_core.documents import parse_toml, preset_names
from nest_core.report.figures.mixes import slowdowns_picture
from nest_core.studies.mixes import MixResult
from nest_core.studies.population import Population
from nest_studio.components.show import download, facts, show_picture, told
from nest_studio.form.fields import OneOf, widget
from nest_studio.jobs.tasks.designs import shared_fabric
from nest_studio.jobs.waiting import panel, submitted

__all__ = ["shared_part"]

NAME, TEXT = "shared.name", "shared.text"
PLACED = ("packed", "spread", "joint")


def shared_part(problem: Any, top: Any) -> None:
    """Draw which mix is played, and what comes of it."""
    names = preset_names("mixes")
    st.sidebar.html('<i class="nest-mark nest-formless"></i>')  # a mix names its own scenarios
    first, second = st.columns([3, 4], vertical_alignment="bottom", gap="small")
    name = widget(
        NAME, OneOf(names), names[-1], label="Mix", place=first, help="Jobs, or a population."
    )
    if st.session_state.get("shared opened") != name:
        st.session_state["shared opened"] = name
        st.session_state[TEXT] = mix_text(name)
    with second.popover("Edit, save"):
        text = st.text_area("The mix's file", key=TEXT, height=340)
        download("↓ File (TOML)", lambda: text, "mix.toml", "application/toml")
    with told(problem.error):
        document = parse_toml(text, "mix")
        is_placed = "job" in document and document.get("placement") != "by_hand"
        files = [document | {"placement": how} for how in PLACED] if is_placed else [document]
        jobs = [submitted(shared_fabric, file, place=f"shared-{n}") for n, file in enumerate(files)]
        answers = [panel(job, "Playing jobs", key=f"shared-{n}") for n, job in enumerate(jobs)]
        with top:
            facts(str(document.get("name", "")), kind="nest-scenario")
        if None not in answers:
            _draw(answers)


def _draw(answers: list[SharedFabric]) -> None:
    mixes = [of.result for of in answers if isinstance(of.result, MixResult)]
    pictures = (slowdowns_picture(mixes),) if mixes else answers[0].pictures()
    for picture in pictures:
        show_picture(picture, "shared")
    for answer in answers:
        for place, table in zip(st.columns(2, gap="medium"), answer.tables(), strict=False):
            place.html(table.to_html())
    facts(
        *(of.result.source for of in answers if isinstance(of.result, Population)),
        kind="nest-quiet",
    )
