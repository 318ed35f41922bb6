"""Two or three fabrics side by side: the same figures, the same order, maps on equal scales."""

from __future__ import annotations

import streamlit as st

from nest_core.errors import InputError
from nest_core.figures.levels import level_figure
from nest_core.presets import preset_names
from nest_core.quoting import as_markdown
from nest_core.titles import fabric_title
from nest_core.units import humanise_seconds
from nest_studio.bill_view import bill_figures, bill_of
from nest_studio.fabric_state import (
    MAP_BLOCKS,
    FabricRequest,
    all_reduce_of,
    canonical,
    fabric_of,
    network_of,
    ways_of,
)
from nest_studio.fabric_view import fabric_headlines
from nest_studio.fabric_widgets import fabric_document
from nest_studio.fields import Several, settle
from nest_studio.own_fabric import OWN, own_document
from nest_studio.show import PicturePlace, facts, table

__all__ = ["beside"]

MOST = 2
MAP_HEIGHT = 320


def beside(request: FabricRequest) -> None:
    """Choose one or two other fabrics and read them against the one above."""
    st.subheader("Side by side")
    own = (OWN,) if own_document() is not None else ()
    others = (*own, *preset_names("fabrics"))
    settle("beside", Several(others, MOST))
    picked = st.multiselect(
        "Beside this fabric", others, max_selections=MOST, key="beside", bind="query-params",
        placeholder="Choose one or two fabrics", help="As they stand in their presets.",
    )  # fmt: skip
    if not picked:
        facts("Nothing to compare yet.", kind="nest-quiet")
        return
    texts = [canonical(request)]
    for name in picked:
        text = canonical(FabricRequest(name, fabric_document(name), {}))
        try:
            fabric_of(text)
        except InputError as error:
            st.info(as_markdown(f"{name} is not a fabric yet: {error}"))
        else:
            texts.append(text)
    with st.spinner("Pricing the same collective on each …", show_time=True):
        columns = [_figures(text) for text in texts]
    # Letters keep two fabrics of one name apart.
    names = [
        f"{letter}: {fabric_title(fabric_of(text))}"
        for letter, text in zip("ABC", texts, strict=False)
    ]
    rows = [
        {"figure": label}
        | {name: column[label] for name, column in zip(names, columns, strict=True)}
        for label in columns[0]
    ]
    st.html(table(_finding(names, texts), "The same figures of each", rows))
    for index, (place, text) in enumerate(zip(st.columns(len(texts)), texts, strict=True)):
        with place:
            facts(names[index], kind="nest-subtitle")
            PicturePlace(f"beside-{index}").draw(
                level_figure(network_of(text), MAP_HEIGHT, ways_of(text), MAP_BLOCKS)
            )


def _figures(text: str) -> dict[str, str]:
    bill = bill_of(text)
    time = all_reduce_of(text)
    return (
        {headline.name: headline.value for headline in fabric_headlines(text)}
        | {
            "All-reduce of 1 GiB over all devices": humanise_seconds(time) if time else "–",
        }
        | bill_figures(bill)
    )


def _finding(names: list[str], texts: list[str]) -> str:
    """Which reduces fastest, as far as that is known of all."""
    times = [all_reduce_of(text) for text in texts]
    if None in times:
        return "Not every fabric has the same figures"
    quickest = min(range(len(times)), key=lambda index: times[index] or 0.0)
    slowest = max(range(len(times)), key=lambda index: times[index] or 0.0)
    ratio = (times[slowest] or 0.0) / (times[quickest] or 1.0)
    if ratio < 1.005:
        return "All reduce equally fast"
    return f"{names[quickest]} reduces 1 GiB {ratio:.3g} times as fast as {names[slowest]}"
