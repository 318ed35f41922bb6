"""Curves of message sizes fitted to measured collectives, and their validation."""
