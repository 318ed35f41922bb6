"""Parts of the page Notebook."""
