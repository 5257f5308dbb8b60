"""Measure this package against baselines. `python -m benchmarks` prints one table.

A baseline is the minimal hand-written program for the same work, measured in the same run. Absolute figures depend on
the machine; a ratio within one run can be compared with a goal.
"""
