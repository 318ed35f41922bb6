"""Parts of the page Design."""
