"""Measure other libraries in the same run as this package: `python -m benchmarks.peers`.

Each library is installed at a pinned version into a separate environment. It runs in a separate process, which receives
a number of turns and returns its CPU time. All libraries use the same server on this machine, the same question and the
same tool. A turn counts only if its five calls ran and its answer equals the answer of the server.
"""
