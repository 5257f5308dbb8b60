"""Kill a process with SIGKILL at any place of a write, and let another process continue with its files.

Every second process has forked a worker, which stays alive until the next process has continued.

`scenarios` has the actions of a process, `crossings` the places of a kill, `host` the process, `aftermath` the
continuation and the checks, `sweep` runs all of this for one place, and `__main__` for every place, scenario,
durability and backend.
"""
