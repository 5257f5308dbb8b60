"""Other libraries at the work of `python -m benchmarks`, in the same run: `python -m benchmarks.peers`.

Each is installed into an environment of its own, at a pinned version, and runs as a process of its own, which is told
how many turns to make and answers with its CPU time. All talk to the same server on this machine, ask the same question
and have the same tool; a turn counts only if its five calls ran and its answer is the server's.
"""
