"""Measured training runs beside their predictions."""
