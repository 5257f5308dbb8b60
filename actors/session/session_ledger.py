"""Keep a session's copy of its ledger: the newest snapshot that the session received from the ledger actor.

Every reply of the ledger actor contains a snapshot, so a turn renders its requests without a query. An event that
bypasses the session, such as a late result, makes the snapshot outdated. The ledger then rejects the seal and replies
with a newer snapshot.
"""

from actors.core.ledger import Ledger
from actors.core.log.events import RequestSent
from actors.kernel import Ref
from actors.ledger.ledger_actor import LedgerCommand, LedgerSnapshot, Recorded, SealResults, Snapshot


class SessionLedger:
    """A session's copy of its ledger. After a crash, a new instance starts with the ledger that the log contains."""

    __slots__ = ("_ref", "snapshot")

    def __init__(self, ref: Ref[LedgerCommand], ledger: Ledger) -> None:
        self._ref = ref
        self.snapshot: LedgerSnapshot = LedgerSnapshot(ledger)

    @property
    def latest(self) -> Ledger:
        """The newest ledger that the session has received."""
        return self.snapshot.ledger

    def keep_newer(self, snapshot: LedgerSnapshot) -> None:
        """Keep a snapshot if it is newer than the current snapshot."""
        if snapshot.version > self.snapshot.version:
            self.snapshot = snapshot

    async def query(self) -> Ledger:
        """Query the current ledger, including events that are still being written."""
        self.keep_newer(await self._ref.ask(Snapshot()))
        return self.latest

    async def seal(self, event: RequestSent, snapshot: LedgerSnapshot) -> bool:
        """Log that a request is sent. Return False and log nothing if the ledger has changed since `snapshot`."""
        answer = await self._ref.ask(SealResults(event, snapshot.version))
        if isinstance(answer, Recorded):
            self.keep_newer(answer.snapshot)
            return True
        self.keep_newer(answer)
        return False
