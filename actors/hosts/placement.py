"""Place sessions that no host owns.

Rendezvous hashing computes a hash of each host's address and the session, and chooses the host with the highest hash.
So all routers choose the same host without communication, and if a host leaves, only its sessions move.
"""

from collections.abc import Sequence
from hashlib import sha256

from actors.journal.storage.hosts import Host

STALE = 0.5
"""A host has not renewed its lease in time if less than this fraction of the longest remaining lease remains. Hosts
renew their lease each third of its duration."""


def place(session: str, hosts: Sequence[Host], excluded: frozenset[str], lag: float) -> str | None:
    """Return the address of the host for a session that no host owns. Return None if no host can be used.

    Healthy hosts are preferred to hosts that are slow or did not renew their lease.

    Args:
        session: Id of the session.
        hosts: The live hosts of the journal.
        excluded: Addresses of hosts that must not be used.
        lag: Maximum lag of a healthy host, in seconds.
    """
    usable = [
        host for host in hosts if host.state == "serving" and host.address and host.address not in excluded
    ]
    longest = max((host.remaining_lease or 0.0 for host in usable), default=0.0)
    healthy = [host for host in usable if _is_healthy(host, longest, lag)]
    addresses = {host.address for host in healthy or usable}
    return max(addresses, key=lambda address: _score(address, session), default=None)


def _is_healthy(host: Host, longest_lease: float, lag: float) -> bool:
    renews = host.remaining_lease is None or host.remaining_lease >= STALE * longest_lease
    return renews and host.lag <= lag


def _score(address: str, session: str) -> bytes:
    return sha256(f"{address} {session}".encode()).digest()
