"""The paper's figures and tables beside ours, under its artifact's costs or our own."""

import html

import streamlit as st

from nest_core.figures.paper import models_of, paper_pictures
from nest_core.paper import NAMES, Reproduction
from nest_core.paper.settings import model_name
from nest_core.tasks import paper_result
from nest_studio.fields import Choice, settle
from nest_studio.jobs import ordered, there
from nest_studio.show import PicturePlace, facts, page_style, table

page_style()
COSTS = {"published": "the artifact's", "own": "own"}


def show(found: Reproduction) -> None:
    """Draw what was computed."""
    models = models_of(found)
    model = ""
    if models:
        settle("model", Choice(models))
        model = right.segmented_control(
            "Model",
            models,
            default="llama3",
            required=True,
            format_func=model_name,
            key="model",
            bind="query-params",
        )
    st.html(f'<div class="nest-scenario">{html.escape(found.title)}</div>')
    facts(found.printed, kind="nest-quiet")
    for number, picture in enumerate(paper_pictures(found, model)):
        PicturePlace(f"{name}-{number}").draw(picture)
    for shown in found.tables:
        chosen = shown.words
        if model and shown.key == "rows":
            chosen = [line for line in chosen if line["model"] == model_name(model)]
        kept = [
            {
                key: text.replace(" ", "\u00a0") if text.startswith("p ") or " / " in text else text
                for key, text in line.items()
                if not (model and key == "model")
            }
            for line in chosen
        ]
        st.html(table(shown.title, "", kept))
        if shown.key == "rows":
            facts(*found.paragraph)


settle("name", Choice(NAMES))
name = st.segmented_control(
    "Figure or table of the paper",
    NAMES,
    default="figure5",
    required=True,
    format_func=lambda key: key.replace("figure", "Fig. ").replace("table", "Table "),
    key="name",
    wrap=True,
    bind="query-params",
)
left, right = st.columns([1, 2])
settle("costs", Choice(tuple(COSTS)))
costs = left.segmented_control(
    "Costs",
    tuple(COSTS),
    default="published",
    required=True,
    format_func=COSTS.__getitem__,
    key="costs",
    bind="query-params",
    help="The cost model of the paper's artifact, quirks and all, or this project's physics.",
)
job = ordered(f"paper {name} {costs}", paper_result, name, costs, urgent=False, place="paper")
if there(job, "Computing", key="paper"):
    show(job.result(0))
