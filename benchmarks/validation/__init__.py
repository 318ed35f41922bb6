"""Validation of the costs against published measurements; ``python -m benchmarks.validation``."""
