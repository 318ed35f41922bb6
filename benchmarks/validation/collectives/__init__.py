"""Measured collective times beside the shipped curves."""
