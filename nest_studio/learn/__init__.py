"""Parts of the page Learn."""
