"""The studio's server: Streamlit around the script of every session, behind the studio's guards."""

import streamlit as st

from nest_studio.paths import session_script
from nest_studio.server.shell import MIDDLEWARE, ROUTES, say_defect, serving

app = st.App(
    session_script(),
    routes=ROUTES,
    middleware=MIDDLEWARE,
    lifespan=serving,
    on_script_error=say_defect,
)
