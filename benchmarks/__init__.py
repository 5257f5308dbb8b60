"""Measurements of this package beside their baselines: `python -m benchmarks` prints one table.

A baseline is the least that could do the same work, written by hand and measured in the same run. Absolute figures
describe a machine rather than a program; a ratio within one run can be compared with a goal.
"""
