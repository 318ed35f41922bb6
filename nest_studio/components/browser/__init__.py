"""What the browser does for pages: shows SVG, which `streamlit.html` strips, and hears keys."""
