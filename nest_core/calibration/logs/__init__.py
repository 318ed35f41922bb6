"""What frameworks print while they train, read as measured runs."""

from nest_core.calibration.logs.run_log import RunFacts, read_run_log

__all__ = ["RunFacts", "read_run_log"]
