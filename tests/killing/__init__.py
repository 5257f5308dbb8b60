"""Killing: a process is killed by SIGKILL at any place of a write, and another goes on with what it left.

`scenarios` says what a process does, `crossings` where it may be killed, `host` is the process, `aftermath` goes on
and judges, `sweep` does all of it for each place, `__main__` for every place, scenario, level and backend.
"""
