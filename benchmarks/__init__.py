"""Measurements of this project: its speed, its figures and its validation."""
