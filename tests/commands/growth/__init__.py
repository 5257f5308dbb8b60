"""A Postgres journal with many stored sessions: `python -m tests.commands.growth --help`.

`filling` writes the sessions, `measuring` times the storage and a runtime on them, and `__main__` prints the figures.
"""
