"""Logs that releases of frameworks print by their own code, for tests."""
