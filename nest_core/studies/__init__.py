"""Studies: many plans of one scenario, or of several, side by side."""
