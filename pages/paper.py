"""The paper's figures, tables and program beside ours, under its artifact's costs or our own."""

import html

import streamlit as st

from nest_core.paper import NAMES, Reproduction
from nest_core.paper.reproduction import model_name
from nest_core.report.figures.paper import models_of, paper_pictures
from nest_core.report.tables import Table
from nest_studio.components.show import facts, show_picture
from nest_studio.form.fields import one_of
from nest_studio.jobs.tasks.requests import paper_result
from nest_studio.jobs.waiting import panel, submitted

COSTS = {"published": "the artifact's", "own": "own"}


def show(reproduction: Reproduction) -> None:
    """Draw a reproduction."""
    models = models_of(reproduction)
    model = ""
    if models:
        model = one_of(
            model_place,
            "Model",
            models,
            "llama3" if "llama3" in models else models[0],
            "model",
            format_func=model_name,
            bind="query-params",
        )
    st.html(f'<div class="nest-scenario">{html.escape(reproduction.title)}</div>')
    facts(reproduction.printed, kind="nest-quiet")
    for number, picture in enumerate(paper_pictures(reproduction, model)):
        show_picture(picture, f"{name}-{number}")
    for table in reproduction.tables:
        chosen = table.words
        if model and table.key == "rows":
            chosen = tuple(line for line in chosen if line["model"] == model_name(model))
        rows = [
            {
                key: text.replace(" ", "\u00a0") if text.startswith("p ") or " / " in text else text
                for key, text in line.items()
                if not (model and key == "model")
            }
            for line in chosen
        ]
        st.html(Table(table.title, "", rows).to_html())
        if table.key == "rows":
            facts(*(line.replace("`", "") for line in reproduction.paragraph))


name = one_of(
    st,
    "Figure, table, section or algorithm of the paper",
    NAMES,
    "figure5",
    "name",
    format_func=lambda key: (
        key.replace("figure", "Fig. ")
        .replace("table", "Table ")
        .replace("section", "Sec. ")
        .replace("algorithm", "Alg. ")
    ),
    wrap=True,
    bind="query-params",
)
costs_place, model_place = st.columns([1, 2])
costs = one_of(
    costs_place,
    "Costs",
    tuple(COSTS),
    "published",
    "costs",
    format_func=COSTS.__getitem__,
    bind="query-params",
    help="The cost model of the paper's artifact, quirks and all, or this project's physics.",
)
reproduced = panel(
    submitted(paper_result, name, costs, place="paper", urgent=False), "Computing", key="paper"
)
if reproduced is not None:
    show(reproduced)
