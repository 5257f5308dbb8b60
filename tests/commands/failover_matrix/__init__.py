"""Failovers of Postgres: a server fails under hosts that work, another takes its place, and every loss is reported.

`site` starts the servers and has one take another's place, `callers` use sessions meanwhile and note every answer and
error, `judge` compares the notes with the logs, `cell` plays one combination of replication and failure, and `__main__`
plays all of them.
"""
