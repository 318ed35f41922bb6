"""A cluster's own logs, joined into a scenario of it."""
