"""The changes to hosts under load, one per case. Each case returns its figures beside their goals."""

import signal
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from time import monotonic

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from tests.commands.failover_matrix.site import Site
from tests.commands.hosts_matrix.figures import is_even, movement_times, percentile, take_over_times
from tests.commands.hosts_matrix.load import Load, Traffic
from tests.commands.hosts_matrix.processes import LEASE, HostProcess

PAUSE = 1.0
"""Seconds of load between two steps of a case."""
TAKE_OVER = LEASE + 0.5
"""The goal for the sessions of a killed or suspended host, in seconds."""
MOVEMENT = 0.5
"""The goal for a session that moves in order, in seconds."""
BALANCED = 150.0
"""The longest time until the load is even after a host has joined, in seconds. The goal is 60 s."""


class Hosts:
    """The hosts of a case, under load.

    Args:
        tasks: Runs the readers of the processes' output.
        environ: The environment of the processes.
        load: The load.
        processes: The hosts in use.
        asks: The size of the cases that send a number of asks.
        site: The Postgres server of the journal and its standby, if the case needs them.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        environ: Mapping[str, str],
        load: Load,
        processes: list[HostProcess],
        asks: int,
        site: Site | None,
    ) -> None:
        self._tasks, self._environ = tasks, environ
        self.load, self.processes, self.asks, self.site = load, processes, asks, site

    async def add(self) -> HostProcess:
        """Start a further host."""
        added = HostProcess(self._environ)
        await added.start(self._tasks)
        self.processes.append(added)
        return added

    async def restart(self, host: HostProcess, number: signal.Signals) -> None:
        """End a host with a signal, and start it again at its address."""
        await host.end(number)
        await host.start(self._tasks)

    async def wait_for_asks(self) -> None:
        """Wait until each session was asked once more, and then for a short time."""
        counts = {session: len(texts) for session, texts in self.load.asked.items()}
        while any(len(self.load.asked[session]) <= count for session, count in counts.items()):
            await self.load.answered.wait()
        await anyio.sleep(PAUSE)


async def kill(hosts: Hosts) -> str:
    """Kill a host, and start it again at its address after the others have taken over its sessions."""
    first, at = hosts.processes[0], monotonic()
    await first.end(signal.SIGKILL)
    await hosts.wait_for_asks()
    await hosts.restart(first, signal.SIGKILL)
    return take_over(hosts, first, at)


async def replace_killed(hosts: Hosts) -> str:
    """Kill a host, and start it again at its address at once."""
    first, at = hosts.processes[0], monotonic()
    await hosts.restart(first, signal.SIGKILL)
    await hosts.wait_for_asks()
    return take_over(hosts, first, at)


async def suspend(hosts: Hosts) -> str:
    """Suspend a host until its lease has expired and its sessions were taken over, and then continue it.

    A client that sends a request to the suspended host itself gets no answer until the host continues, so the load
    balancer does not use the host, as after a failed health check.
    """
    first, at = hosts.processes.pop(0), monotonic()
    first.send_signal(signal.SIGSTOP)
    await anyio.sleep(2 * LEASE)
    first.send_signal(signal.SIGCONT)
    await hosts.wait_for_asks()
    hosts.processes.append(first)
    return take_over(hosts, first, at)


async def roll(hosts: Hosts) -> str:
    """Restart all hosts in order, twice."""
    for host in [*hosts.processes, *hosts.processes]:
        await hosts.restart(host, signal.SIGTERM)
        await hosts.wait_for_asks()
    return movement(hosts)


async def join(hosts: Hosts) -> str:
    """Start a further host, and wait until the load is even."""
    await hosts.add()
    at = monotonic()
    with anyio.move_on_after(BALANCED):
        while not is_even(hosts.load.sessions_by_host.values()):
            await hosts.load.answered.wait()
    counts = sorted(hosts.load.sessions_by_host.values())
    seconds = f"{monotonic() - at:.0f} s" if is_even(counts) else f"not within {BALANCED:.0f} s"
    return f"even load after {seconds} (goal 60 s): {counts} sessions; {movement(hosts)}"


async def fail_over(hosts: Hosts) -> str:
    """Kill the machine of the journal's primary, and promote its synchronous standby after the leases have expired."""
    assert hosts.site is not None
    at = monotonic()
    await anyio.to_thread.run_sync(hosts.site.fail, "kill")
    await anyio.sleep(2 * LEASE)
    await anyio.to_thread.run_sync(hosts.site.take_over, "kill")
    seconds = monotonic() - at
    await hosts.wait_for_asks()
    resumed = [each.ended - at for each in hosts.load.records if each.began < at + seconds < each.ended]
    slowest = f"{max(resumed):.2f} s" if resumed else "none"
    return f"new primary after {seconds:.2f} s; asks in flight answered after {slowest}; {hosts.load.refused} times 503"


async def repeat_keys(hosts: Hosts) -> str:
    """Kill one random host after another until the number of asks is reached. Each ask is sent up to four times."""
    random, kills = Random(1), 0
    while hosts.load.count < hosts.asks or not kills:
        await hosts.restart(random.choice(hosts.processes), signal.SIGKILL)
        kills += 1
        await hosts.wait_for_asks()
    return f"{len(hosts.load.records)} requests, {kills} kills"


async def compare(hosts: Hosts) -> str:
    """Send every second ask to the owner of its session, and the others to each host in turn."""
    while hosts.load.count < 4 * hosts.asks:
        await hosts.load.answered.wait()
    first = len(hosts.load.asked)  # the first ask of each session opens the session
    records = hosts.load.records[first:]
    turns, direct = ([each.seconds for each in records if each.is_direct is kind] for kind in (False, True))
    last, last_direct = percentile(turns, 0.99), percentile(direct, 0.99)
    return (
        f"p50 {1000 * percentile(turns, 0.5):.0f} ms, direct {1000 * percentile(direct, 0.5):.0f} ms; "
        f"p99 {1000 * last:.0f} ms, direct {1000 * last_direct:.0f} ms: {last / last_direct:.2f} x (goal 2 x)"
    )


def take_over(hosts: Hosts, host: HostProcess, at: float) -> str:
    """Return the figures for the sessions of a host that was killed or suspended."""
    times = take_over_times(hosts.load.records, host.url, at)
    slowest = f"{max(times):.2f} s" if times else "none"
    return f"{len(times)} sessions taken over, slowest after {slowest} (goal {TAKE_OVER} s)"


def movement(hosts: Hosts) -> str:
    """Return the figures for the sessions that have moved in order."""
    times = movement_times(hosts.load.records)
    slowest = f"{max(times):.2f} s" if times else "none"
    return f"{len(times)} asks found their session moved, slowest {slowest} (goal {MOVEMENT} s)"


class Case(Struct, frozen=True):
    """A case of the matrix.

    Args:
        play: Changes the hosts, and returns the figures.
        traffic: The way in which asks are sent.
        needs_standby: Whether the journal is a Postgres server with a synchronous standby.
    """

    play: Callable[[Hosts], Awaitable[str]]
    traffic: Traffic = Traffic()
    needs_standby: bool = False


CASES: Mapping[str, Case] = {
    "kill": Case(kill),
    "replace": Case(replace_killed),
    "suspend": Case(suspend),
    "roll": Case(roll, Traffic(pause=0.25)),
    "join": Case(join, Traffic(pause=0.5)),
    "failover": Case(fail_over, Traffic(has_outage=True), needs_standby=True),
    "repeat": Case(repeat_keys, Traffic(copies=4, spread=0.2)),
    "compare": Case(compare, Traffic(pause=0.25, asks_owners=True)),
}
