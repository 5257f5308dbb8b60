"""Hosts that are killed, suspended, restarted and added under load, behind clients that know no owners.

`processes` runs the hosts, `load` asks their sessions and records each answer, `cases` changes the hosts meanwhile,
`figures` computes the delays from the records, `matrix` plays one case and compares the answers with the logs, and
`__main__` plays all of them.
"""
