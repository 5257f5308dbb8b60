"""Clients that ask several sessions all the time, through any host, and record each answer."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count as numbers
from random import Random
from time import monotonic

import anyio
from httpx2 import AsyncClient, TransportError
from msgspec import Struct

from tests.commands.hosts_matrix.figures import AskRecord
from tests.commands.hosts_matrix.processes import HostProcess

ATTEMPTS = 50
"""Maximum number of attempts to send one request."""
NEXT_HOST = 0.02
"""Seconds until the next attempt after a broken connection."""


class Traffic(Struct, frozen=True):
    """The way in which clients send the asks of a case.

    Args:
        pause: Seconds between the answer to an ask and the next ask of the same session.
        copies: Each ask is sent up to so many times, with one key.
        spread: The copies of an ask are sent at random moments within this number of seconds.
        asks_owners: Whether every second ask of a session is sent to the host that owns the session.
        has_outage: Whether hosts may answer with 503 and `Retry-After`, because the journal is unavailable for a time.
    """

    pause: float = 0.0
    copies: int = 1
    spread: float = 0.0
    asks_owners: bool = False
    has_outage: bool = False


class Load:
    """Continuous asks of several sessions, and the record of each answer.

    The clients use the hosts in turn. If a connection fails, they use the next host, with the same key, as a load
    balancer does.

    Args:
        client: The HTTP client.
        hosts: The hosts in use; the list may change.
        traffic: The way in which the asks are sent.
        sessions: The ids of the sessions.
    """

    def __init__(
        self, client: AsyncClient, hosts: list[HostProcess], traffic: Traffic, sessions: Sequence[str]
    ) -> None:
        self._client, self._hosts, self._traffic = client, hosts, traffic
        self._turn, self._random = numbers(), Random(1)
        self.asked: dict[str, list[str]] = {session: [] for session in sessions}
        self.records = list[AskRecord]()
        self.owners = dict[str, str]()
        """The address of the host that answered the last ask of each session."""
        self.refused = 0
        """The number of responses with status 503."""
        self.is_ending = False
        self.answered = anyio.Event()
        """Set at the next answer."""

    @property
    def count(self) -> int:
        """The number of answered asks."""
        return sum(map(len, self.asked.values()))

    @property
    def sessions_by_host(self) -> dict[str, int]:
        """The number of sessions that each host in use owns, as far as the clients know."""
        counts = defaultdict[str, int](int, {host.url: 0 for host in self._hosts})
        for owner in self.owners.values():
            counts[owner] += 1
        return counts

    async def talk(self, session: str) -> None:
        """Ask a session until the load ends."""
        texts = self.asked[session]
        while not self.is_ending:
            text = f"{session} asks {len(texts)}"
            async with anyio.create_task_group() as copies:
                for _ in range(self._random.randint(1, self._traffic.copies)):
                    copies.start_soon(self._ask_later, session, text)
            texts.append(text)
            self.answered.set()
            self.answered = anyio.Event()
            await anyio.sleep(self._traffic.pause)

    async def _ask_later(self, session: str, text: str) -> None:
        """Ask once, after a random time, and record the answer."""
        await anyio.sleep(self._random.uniform(0.0, self._traffic.spread))
        owner = self.owners.get(session, "") if self._asks_owner(session) else ""
        began = monotonic()
        via, host = await self._ask(session, text, owner)
        self.records.append(AskRecord(session, began, monotonic(), via, host, bool(owner)))
        self.owners[session] = host

    def _asks_owner(self, session: str) -> bool:
        return self._traffic.asks_owners and len(self.asked[session]) % 2 == 1

    async def _ask(self, session: str, text: str, owner: str) -> tuple[str, str]:
        """Ask through the owner, or else through the next host. Return the addresses of that host and of the owner."""
        for _ in range(ATTEMPTS):
            url = owner or self._next_host()
            try:
                response = await self._client.post(
                    f"{url}/sessions/{session}/ask", json={"text": text}, headers={"idempotency-key": text}
                )
            except TransportError:
                await anyio.sleep(NEXT_HOST)
                continue
            if response.status_code == 503 and self._traffic.has_outage:
                self.refused += 1
                await anyio.sleep(float(response.headers["retry-after"]))
                continue
            assert response.status_code == 200, response.text
            found: dict[str, str] = response.json()
            assert found["text"] == f"Answer to {text}"
            return url, found["host"]
        raise AssertionError(f"no answer to {text!r}")

    def _next_host(self) -> str:
        """Return the next host in turn, or a random host for copies of an ask."""
        if self._traffic.copies > 1:
            return self._random.choice(self._hosts).url
        return self._hosts[next(self._turn) % len(self._hosts)].url
