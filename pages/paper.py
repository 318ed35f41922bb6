"""The paper's figure 5, beside what its baselines reach when they are evaluated rightly."""

import pandas as pd
import streamlit as st

from nest_core.figures.paper import figure5_picture
from nest_core.published import PAPER_MODELS, figure5

rows = st.cache_data(figure5, show_spinner="Solving the 25 cases of figure 5")()
st.title("Paper: figure 5")
st.caption(
    "NEST (MLSys 2026) on its TPUv4-like fat tree, under its artifact's own costs, quirks "
    "included. These costs are used on this page only."
)
NAMES = {
    "bert": "BERT-large",
    "llama2": "Llama 2 7B",
    "llama3": "Llama 3 70B",
    "mixtral": "Mixtral 8x7B",
    "gpt3": "GPT-3 175B",
}
BASELINES = {"manual": "Manual", "mcmc": "MCMC", "phaze": "Phaze", "alpa_e": "Alpa-E"}
COLUMNS = {
    "published": "printed",
    "as_published": "as published",
    "right_order": "right order",
}
model = st.segmented_control(
    "Model",
    PAPER_MODELS,
    default="llama3",
    required=True,
    format_func=NAMES.__getitem__,
    key="model",
    bind="query-params",
)
chosen = [row for row in rows if row["model"] == model]
picture = figure5_picture(chosen)
st.subheader(picture.title)
st.caption(picture.subtitle)
st.plotly_chart(picture.plot, key="figure5", config={"displaylogo": False})
st.caption(picture.reading)
shown = pd.DataFrame(
    [
        {"devices": f"{row['devices']:,}", "ours": row["ours"], "NEST, printed": row["published"]}
        | {
            f"{BASELINES[name]}, {label}": entry[key]
            for name, entry in row["baselines"].items()
            for key, label in COLUMNS.items()
            if name != "alpa_e" or key == "published"
        }
        for row in chosen
    ]
).set_index("devices")
st.dataframe(shown.map(lambda value: "–" if pd.isna(value) else f"{value:.2f}"))
st.caption(
    "Throughput relative to the model's first feasible manual run as published. A dash: "
    "infeasible, or not printed in the paper (Alpa-E at 1,024 devices)."
)
