"""The session's view of its ledger: the actor's address, and the newest snapshot that the session has received.

Every reply of the ledger contains a snapshot, so a turn renders its requests without a query. A result that bypasses
the session, such as a late result, makes the snapshot old. The ledger then rejects the seal and replies with a newer
snapshot.
"""

from actors.core.ledger import Ledger
from actors.core.log.events import RequestSent
from actors.kernel import Ref
from actors.ledger.ledger_actor import LedgerCommand, LedgerSnapshot, Recorded, SealResults, Snapshot


class SessionLedger:
    """The ledger as one session knows it. After a crash, a new view starts with the ledger of the log."""

    __slots__ = ("_ref", "snapshot")

    def __init__(self, ref: Ref[LedgerCommand], ledger: Ledger) -> None:
        self._ref = ref
        self.snapshot: LedgerSnapshot = LedgerSnapshot(ledger)

    @property
    def latest(self) -> Ledger:
        """The newest ledger that the session has received."""
        return self.snapshot.ledger

    def note(self, snapshot: LedgerSnapshot) -> None:
        """Keep a snapshot if it is newer."""
        if snapshot.version > self.snapshot.version:
            self.snapshot = snapshot

    async def query(self) -> Ledger:
        """Query the current ledger, including events that are still being written."""
        self.note(await self._ref.ask(Snapshot()))
        return self.latest

    async def seal(self, event: RequestSent, snapshot: LedgerSnapshot) -> bool:
        """Log that a request is sent; return False if it was rendered from an old snapshot."""
        answer = await self._ref.ask(SealResults(event, snapshot.version))
        if isinstance(answer, Recorded):
            self.note(answer.snapshot)
            return True
        self.note(answer)
        return False
