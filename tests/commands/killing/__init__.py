"""Killing: a process is killed by SIGKILL at any place of a write, and another goes on with what it left.

Every other process has forked a worker, which is alive until the other process has gone on.

`scenarios` says what a process does, `crossings` where it may be killed, `host` is the process, `aftermath` goes on
and judges, `sweep` does all of it for each place, `__main__` for every place, scenario, durability and backend.
"""
