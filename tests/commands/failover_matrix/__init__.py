"""Failovers of Postgres: a server fails under active hosts, another takes its place, and every loss is reported.

`site` starts and replaces the servers, `callers` use sessions meanwhile and record every answer and error, `judge`
compares the records with the logs, `cell` plays one combination of replication and failure, and `__main__` plays all of
them.
"""
