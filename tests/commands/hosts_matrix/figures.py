"""Compute the delays that clients saw from the records of their asks.

In:  the records in the order of their answers, and the moment of a fault.
Out: seconds.
"""

from collections.abc import Collection, Iterator, Sequence
from math import ceil

from msgspec import Struct

EVEN = 0.2
"""The load is even if each host's number of sessions differs from the mean by at most this fraction of it."""


class AskRecord(Struct, frozen=True):
    """One answered ask.

    Args:
        session: Id of the session.
        began, ended: The times of the request and of the answer, in seconds.
        via: Address of the host that received the request.
        host: Address of the host that owned the session.
        is_direct: Whether the request was sent to the owner of the session, as far as the client knew it.
    """

    session: str
    began: float
    ended: float
    via: str
    host: str
    is_direct: bool = False

    @property
    def seconds(self) -> float:
        """The time until the answer."""
        return self.ended - self.began


def take_over_times(records: Sequence[AskRecord], address: str, at: float) -> list[float]:
    """Return the seconds from the end of a host to the first answer of each session that the host owned.

    A session is left out if its client sent a request to that host before its end, and received the answer later.

    Args:
        records: The records in the order of their answers.
        address: The address of the host, which another process may use afterwards.
        at: The time at which the host was killed or suspended.
    """
    owners, firsts, waited = dict[str, str](), dict[str, AskRecord](), set[str]()
    for each in records:
        if each.ended <= at:
            owners[each.session] = each.host
        elif each.via == address and each.began <= at:
            waited.add(each.session)
        elif each.host != address or each.began > at:  # not an earlier answer of the host
            firsts.setdefault(each.session, each)
    taken_over = {session for session, owner in owners.items() if owner == address} - waited
    return [each.ended - at for session, each in firsts.items() if session in taken_over]


def movement_times(records: Sequence[AskRecord]) -> list[float]:
    """Return the seconds of each ask that was answered by another host than the ask before it."""
    return [each.seconds for before, each in _pairs(records) if before.host != each.host]


def _pairs(records: Sequence[AskRecord]) -> Iterator[tuple[AskRecord, AskRecord]]:
    """Yield each record after the first of its session, with the record before it."""
    last = dict[str, AskRecord]()
    for each in records:
        if (before := last.get(each.session)) is not None:
            yield before, each
        last[each.session] = each


def is_even(counts: Collection[int]) -> bool:
    """Return True if the load of hosts with these numbers of sessions is even."""
    mean = sum(counts) / len(counts)
    return all(abs(count - mean) <= EVEN * mean for count in counts)


def percentile(values: Sequence[float], part: float) -> float:
    """Return the smallest value that is not exceeded by this part of all values."""
    return sorted(values)[max(0, ceil(part * len(values)) - 1)]
