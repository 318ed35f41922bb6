"""What was measured: collectives and training runs, and the fits to them."""
