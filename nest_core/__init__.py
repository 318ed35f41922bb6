"""Nest Studio's core: fabrics, costs and the exact planner, free of Streamlit and torch."""

__all__ = ["__version__"]

__version__ = "0.1.0"
