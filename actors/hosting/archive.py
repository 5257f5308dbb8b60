"""What a runtime does with sessions that have a log, open or not: the part of `Runtime` that is about its journal."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection
from datetime import datetime

from actors.core.diagnostics import Refusal
from actors.errors import ConfigError
from actors.hosting.forgetting import with_subagents
from actors.hosting.given import check_given, check_limit, seconds_of, session_id
from actors.hosting.resuming import read
from actors.hosting.retention import erased
from actors.hosting.session_host import SessionHost
from actors.hosting.sessions import Sessions
from actors.journal import ListSessions, Purge
from actors.storage.directory import Page, StoredSession


class Archive(ABC):
    """Forks, files and erases the logs of a runtime's journal. `Runtime` is one, and says who may use it when."""

    _sessions: Sessions
    refusals: deque[Refusal]
    """The last transcripts refused for their structure, oldest first: our bugs, with their evidence."""

    @abstractmethod
    def _running(self) -> SessionHost:
        """Return the host, to a caller that may use it."""

    @abstractmethod
    def _hosting(self) -> SessionHost:
        """Return the host, to a caller that may begin a session."""

    async def fork(self, source: str, /, at: int | None = None, *, id: str | None = None) -> str:  # noqa: A002
        """Begin another session as this one was behind its event number `at`; return its id, to `resume` it by.

        The other one stays as it is, whoever has it. What ran at that moment is `outcome_unknown` in the fork, and is
        not run again; a turn that waited goes on waiting in both.

        Args:
            source: A session that has a log, open or not.
            at: The number (`seq`) of the last event that the fork has; all if not given.
            id: Its id; made up if not given.

        Raises:
            ConfigError: An id or the number is none.
            SessionUnknown: There is no such log.
            UnknownSeq: It has no such number.
            SessionExists: The id is taken.
            JournalError: The log cannot be read, or the other not written.
        """
        check_given(at=at)
        return await self._sessions.fork(self._hosting(), session_id(source), at, id)

    async def export(self, id: str) -> bytes:  # noqa: A002  the field's standard name
        """Return a session's log as a file of JSON lines, without loss, and with it those of its subagents.

        Raises:
            SessionUnknown: It has no log.
            JournalError: It cannot be read.
        """
        from actors.core.exported import exported  # few programs move sessions

        host = self._running()
        host.check()
        name = session_id(id)
        return exported(await with_subagents(host.journal, name, await read(host.journal, name)))

    async def import_session(self, file: bytes | str, /, *, id: str | None = None) -> str:  # noqa: A002
        """Keep the session of an exported file, under its id or another, and those below it.

        Returns its id, to `resume` it by.

        Raises:
            TranscriptError: The file is not whole, or holds what cannot be a session's log; the message names the line.
            SessionExists: A session of this id is open, or has a log, or one has the id of one below it.
            JournalError: It cannot be written. Nothing of it is kept.
        """
        from actors.core.exported import imported, placed  # as above

        logs = placed(imported(file), id)
        await self._sessions.add(self._hosting(), logs)
        return logs[0][0]

    async def stored(
        self, *, tenant: str | None = None, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, open or not, those used last first.

        `tenant`: whose, `""` for those of none. `after`: `StoredSession.page` of the last one of the page before.

        Raises:
            ConfigError: An argument is not what it must be.
            JournalError: They cannot be read.
        """
        host = self._running()
        host.check()
        check_given(tenant=tenant, after=after)
        check_limit(limit)
        return await host.journal.ask(ListSessions("", tenant, limit, after))

    async def forget(self, id: str) -> None:  # noqa: A002  the field's standard name
        """End a session, if it is open, and erase its log, those of its subagents, and what of it is in `refusals`.

        Its id may be used again. A caller that is cancelled does not take it back. Nothing happens if there is none.

        Raises:
            ConfigError: The id is no text.
            OwnSession: A tool of this session asks.
            SessionExists: It is just being opened or forgotten.
            JournalError: The log cannot be written, and the session is open still; or erased, and it has ended.
        """
        host = self._running()
        host.check()
        await self._sessions.forget(host, session_id(id), self._forgotten)

    async def erase(self, *, tenant: str | None = None, before: datetime | None = None) -> int:
        """Forget all sessions of a tenant, or all that were used last before a time; return how many there were.

        One after the other; other sessions go on. Those that are open here are ended. What can be erased is, also if
        something cannot. In the end no byte of what was erased is left in the journal's file, also of what was
        forgotten before: it is written anew, and nothing else is written meanwhile. A Postgres server keeps bytes until
        it has vacuumed its tables, and in its backups.

        Args:
            tenant: Whose, `""` for those of none; None for everybody's.
            before: They were used last before this; None for all of the tenant.

        Raises:
            ConfigError: Neither is given, or one is not what it must be.
            SessionElsewhere: Another host has one of them; the others are erased.
            OwnSession: A tool of one of them asks; likewise.
            SessionExists: One of them is just being opened or forgotten; likewise.
            JournalError: One cannot be erased; likewise.
            JournalUnavailable: The journal cannot be written, and no more are erased.
        """
        host = self._running()
        host.check()
        if tenant is None and before is None:
            raise ConfigError("erase() takes tenant=, before= or both; forget(id) takes one session")
        check_given(tenant=tenant, before=before)
        return await erased(host.journal, self._forget, tenant, seconds_of(before))

    async def purge(self) -> None:
        """See that no byte of what was forgotten is left in the journal's file, as `erase` does at its end.

        Raises:
            JournalUnavailable: It is not done.
        """
        host = self._running()
        host.check()
        await host.journal.ask(Purge())

    async def _forget(self, name: str, unused: StoredSession | None) -> None:
        await self._sessions.forget(self._running(), name, self._forgotten, unused)

    def _forgotten(self, names: Collection[str]) -> None:
        kept = [refusal for refusal in self.refusals if refusal.session not in names]
        self.refusals.clear()
        self.refusals.extend(kept)
