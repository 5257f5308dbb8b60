"""Killing: a process is killed by SIGKILL at a crossing of its journal, and another goes on with what it left.

`scenarios` says what a process does, `host` is the process, `aftermath` goes on and judges. `tests/test_killing.py` has
a sample of crossings; more are more numbers, more scenarios more entries of `SCENARIOS`.
"""
