"""Parts of the page Measurements."""
