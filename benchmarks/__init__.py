"""Measurements beside their baselines: `python -m benchmarks` prints one table."""
