"""Decide routing, pacing and fairness, and turn refusals into configuration."""
