"""Killing: a process is killed by SIGKILL at any place of a write, and another continues with the files that it left.

Every other process has forked a worker, which stays alive until the next process has continued.

`scenarios` has the actions of a process, `crossings` the places of a kill, `host` the process, `aftermath` the
continuation and the checks, `sweep` runs all of this for one place, and `__main__` for every place, scenario,
durability and backend.
"""
