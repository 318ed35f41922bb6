"""Measured rows of collectives."""

from collective_tables import library, subset, whole

__all__ = ["library", "subset", "whole"]
