"""The web server around Streamlit: who may do what, limits, theme, and how a page is framed."""
