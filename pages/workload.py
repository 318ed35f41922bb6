"""A layer before and after a strategy: what every operator takes, and what bounds it."""

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_studio.components.show import AnswerArea
from nest_studio.session.own_fabric import follow_address, say_in_address
from nest_studio.workload.view import (
    heading,
    layer_form,
    layers_of,
    operators_view,
    standard,
)


def main() -> None:
    """Draw the page."""
    follow_address()
    area = AnswerArea("workload")
    say_in_address(shown=False)
    problem = st.container(key="problem")
    with st.sidebar:
        request = layer_form()
    area.awaits(request)
    drawn = request
    try:
        layers_of(request)
    except InputError as error:
        problem.error(as_markdown(error))
        drawn = st.session_state.get("last good layer", standard())
    else:
        st.session_state["last good layer"] = request
    with area.part("results", drawn):
        heading(drawn)
        operators_view(drawn)


main()
