"""Compute the needs of a number of active sessions from measured figures, and simulate the waits for commits."""

import heapq
import sys
from math import ceil
from random import Random

# Measured: docs/explanation/scale.md names the size and the source of each figure.
TURN = 0.0052  # seconds of CPU of a host for a turn
EVENTS = 5  # events of a turn without tools
COMMIT, EVENT = 0.001093, 0.000078  # seconds of the database for a commit, and for each event in it
WAL = 6200  # bytes of write-ahead log of a turn
RESUMES = 331  # resumes of one host in a second
STORED = 2976  # bytes in the database for a session with 11 events
COUNTED = 0.0153 / 233_368  # seconds of `hosts()` for each owned session

# Chosen
LIMIT, LEASE, LOAD = (
    100_000,
    10.0,
    0.7,
)  # sessions of a host, seconds of a lease, highest load of a host's core


def waits(hosts: int, turns: float, seconds: float = 20.0) -> list[float]:
    """Simulate the commits of all hosts in one database that serves one commit at a time; return the waits of events.

    A host has one commit in flight; the events that arrive meanwhile share its next commit.
    """
    random, now, done = Random(1), 0.0, 0.0
    queued: list[list[float]] = [[] for _ in range(hosts)]
    is_busy, found = [False] * hosts, list[float]()
    agenda = [(random.expovariate(turns * EVENTS), -1)]  # (time, host whose commit ends, or -1 for an event)

    def commit(host: int) -> None:
        nonlocal done
        batch, queued[host] = queued[host], []
        is_busy[host] = bool(batch)
        if batch:
            done = max(now, done) + COMMIT + EVENT * len(batch)
            found.extend(done - arrived for arrived in batch)
            heapq.heappush(agenda, (done, host))

    while now < seconds:
        now, host = heapq.heappop(agenda)
        if host >= 0:
            commit(host)
            continue
        heapq.heappush(agenda, (now + random.expovariate(turns * EVENTS), -1))
        host = random.randrange(hosts)
        queued[host].append(now)
        if not is_busy[host]:
            commit(host)
    return sorted(found)


def report(sessions: int, minutes: float) -> None:
    """Print what these sessions need if each takes a turn in this many minutes."""
    turns = sessions / minutes / 60
    by_turns, by_limit = ceil(turns * TURN / LOAD), ceil(sessions / LIMIT)
    hosts = max(by_turns, by_limit, 2)
    load = turns * EVENTS * EVENT
    print(f"a turn of each session in {minutes:g} minutes: {turns:,.0f} turns/s")
    print(f"  hosts                        {hosts} (turns need {by_turns}, the limit of sessions {by_limit})")
    print(f"  connections                  {2 * hosts}")
    print(
        f"  events/s                     {turns * EVENTS:,.0f}, {load:.0%} of the database without its commits"
    )
    if load < 0.9:
        found = waits(hosts, turns)
        middle, last = (found[int(part * len(found))] for part in (0.5, 0.99))
        print(f"  wait for a commit            {1000 * middle:.0f} ms, 99th percentile {1000 * last:.0f} ms")
    else:
        print("  wait for a commit            grows without limit")
    print(f"  write-ahead log              {turns * WAL / 1e6:,.0f} MB/s")
    print(f"  renewed leases/s             {3 * hosts / LEASE:.1f}")
    waiting = turns / hosts * LEASE
    resumed = waiting / RESUMES / (hosts - 1)
    print(f"  asks that a lost host delays {waiting:,.0f}, for {LEASE:g} s and {resumed:.1f} s of resumes")


def main(sessions: int) -> None:
    print(
        f"{sessions:,} sessions: {sessions * STORED / 1e9:,.1f} GB stored, hosts() {1000 * sessions * COUNTED:.0f} ms"
    )
    for minutes in (30, 10, 5):
        report(sessions, minutes)
    print(f"the database is full at a turn in {sessions * EVENTS * EVENT / 60:.1f} minutes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
