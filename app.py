"""The studio's entry: page settings and navigation; the pages do the rest."""

import streamlit as st


def main() -> None:
    """Show the page that the address names."""
    st.set_page_config(page_title="Nest Studio", page_icon="🪺", layout="wide")
    plan = st.Page("pages/plan.py", title="Plan", default=True)
    fabric = st.Page("pages/fabric.py", title="Fabric", url_path="fabric")
    workload = st.Page("pages/workload.py", title="Workload", url_path="workload")
    paper = st.Page("pages/paper.py", title="Paper", url_path="paper")
    st.navigation([plan, fabric, workload, paper]).run()


# Worker processes started with "spawn" import this file again and must not draw.
if __name__ == "__main__":
    main()
