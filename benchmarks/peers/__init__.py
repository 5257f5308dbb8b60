"""Measure other libraries in the same run as this package: `python -m benchmarks.peers`.

Each library is installed at a pinned version into a separate environment and runs in a separate process, which
receives a number of turns and returns its CPU time. All use the same server on this machine, the same question and
the same tool. A turn counts only if its five calls ran and the answer equals that of the server.
"""
