"""Parts of the page Compare."""
