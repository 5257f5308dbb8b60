"""Measurements beside their floors: `python -m benchmarks` prints one table."""
