"""What takes minutes of the paper, computed again; ``python -m benchmarks.paper``."""
