"""The administration of a journal: list, copy, back up and delete the sessions that have a log, open or not.

`Runtime.journal` is one. The journal actor does most of the work; `SessionOpener` writes logs, and
`SessionRemoval` ends open sessions.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from time import time
from typing import NamedTuple

from actors.core.log.events import LogEvent
from actors.core.settings.labels import Scalar, checked_metadata, checked_title
from actors.core.transcript.diagnostics import Refusal
from actors.errors import ConfigError
from actors.journal.commands import FindSession, ListSessions
from actors.journal.read_throttle import SLICE, SLICE_BYTES
from actors.journal.storage.clock import LEAP, SLACK
from actors.journal.storage.deletion import Deletion, RemainingData
from actors.journal.storage.directory import Page, SessionFilter, State, StoredSession
from actors.kernel.turnstile import compute
from actors.runtime.backups import make_backup
from actors.runtime.deletion import with_subagents
from actors.runtime.given import absolute_path, check_given, check_limit, seconds_of, session_id
from actors.runtime.opening import SessionOpener
from actors.runtime.registry import SessionRegistry
from actors.runtime.removal import SessionRemoval
from actors.runtime.replays import unknown
from actors.runtime.retention import delete_all, select_sessions, vacuum
from actors.runtime.session_host import SessionHost

LONG = 64 * 1024
"""Size of an exported file that is read while the event loop waits: some milliseconds. A longer one has a thread."""


class HostAccess(NamedTuple):
    """Access to a runtime's host. `running` raises unless the runtime runs, `opening` also while it drains."""

    running: Callable[[], SessionHost]
    opening: Callable[[], SessionHost]


class JournalAdmin:
    """The sessions of a runtime's journal, open or not. Its methods work while the runtime runs."""

    def __init__(self, access: HostAccess, registry: SessionRegistry, refusals: deque[Refusal]) -> None:
        self._access, self._registry, self._refusals = access, registry, refusals
        self._clock = time  # in seconds since 1970

    def _host(self) -> SessionHost:
        host = self._access.running()
        host.check()
        return host

    async def list(
        self,
        *,
        tenant: str | None = None,
        state: State | None = None,
        title: str = "",
        metadata: Mapping[str, Scalar] | None = None,
        limit: int = 100,
        after: Page | None = None,
    ) -> Sequence[StoredSession]:
        """Return the sessions that have a log, open or not, those used last first.

        `tenant`: whose, `""` for those of none. `state`: `idle`, `running`, `awaiting` or `closed`.
        `title`: words that their titles contain, in any case. `metadata`: keys that they have, with these values; a
        value is equal in type too, so 7 is not "7".
        `after`: `StoredSession.page` of the last one of the page before.

        Tenant and state are found by an index, so a page costs what it gives. A title or metadata is in no index: the
        sessions that tenant and state leave are looked at in the journal until `limit` are found, all of them if fewer
        are there. Their logs are not read.

        Raises:
            ConfigError: An argument is not what it must be.
            JournalError: They cannot be read.
        """
        host = self._host()
        check_given(tenant=tenant, state=state, after=after)
        check_limit(limit)
        which = SessionFilter(tenant, state, checked_title(title), checked_metadata(metadata))
        return await host.journal.ask(ListSessions("", which, limit, after))

    async def get(self, id: str) -> StoredSession:  # noqa: A002  the field's standard name
        """Return the directory's entry of one session.

        Raises:
            ConfigError: The id is no text.
            SessionUnknown: It has no log.
            JournalError: It cannot be read.
        """
        host = self._host()
        name = session_id(id)
        found = await host.journal.ask(FindSession(name))
        if found is None:
            raise unknown(name)
        return found

    async def export(self, id: str) -> bytes:  # noqa: A002  the field's standard name
        """Return a session's log as a file of JSON lines, without loss, and with it those of its subagents.

        Raises:
            SessionUnknown: It has no log.
            JournalError: It cannot be read.
        """
        from actors.core.session.export_file import ExportFile  # few programs move sessions

        host = self._host()
        name = session_id(id)
        file, throttle = ExportFile(), host.readers.throttle

        async def take(session: str, events: Sequence[LogEvent]) -> None:
            size = 0
            for number, event in enumerate(events, 1):
                size += file.add(session, event)
                if not number % SLICE or size >= SLICE_BYTES or number == len(events):
                    size = 0
                    await throttle.pause()

        if not (await with_subagents(host.journal, name, take, throttle))[0].last:
            raise unknown(name)
        return file.content()

    async def import_session(self, file: bytes | str, /, *, id: str | None = None) -> str:  # noqa: A002
        """Keep the session of an exported file, under its id or another, and those below it.

        Returns its id, to `resume` it by.

        Raises:
            TranscriptError: The file is not whole, or holds what cannot be a session's log; the message names the line.
            SessionExists: A session of this id is open, or has a log, or one has the id of one below it.
            JournalError: It cannot be written. Nothing of it is kept.
        """
        from actors.core.session.export_file import assign_ids, import_logs  # as above

        given: object = file
        is_long = isinstance(given, bytes | str) and len(given) > LONG
        logs = await compute(lambda: assign_ids(import_logs(file), id), is_long=is_long)
        await self._opener().import_logs(logs)
        return logs[0][0]

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
        return await self._opener().fork(session_id(source), at, id)

    async def backup(self, path: str | PathLike[str]) -> None:
        """Copy the journal's file to a new one, while this runtime and other processes go on writing.

        The copy has everything that was acknowledged before the call, as of one moment, and no byte of deleted
        sessions. It is on the disk when this returns. A caller that is cancelled ends the backup, and no file is left.
        `actors sessions fsck` checks a copy; to restore it, use it as the journal.

        Args:
            path: Where there is no file yet. The copy is for this user alone (mode 0600).

        Raises:
            ConfigError: There is such a file, or the journal is not in a file; for Postgres, use `pg_dump`.
            JournalDamaged: The journal cannot be read.
            JournalUnavailable: The copy cannot be written, or the runtime was left before it was complete.
        """
        await make_backup(self._host(), absolute_path(path))

    async def delete(
        self,
        *ids: str,
        tenant: str | None = None,
        older_than: datetime | timedelta | None = None,
        dry_run: bool = False,
    ) -> Deletion:
        """Delete sessions: end those that are open here, delete their logs and those of their subagents.

        A session must meet every condition that is given. Sessions are deleted one after the other, and other sessions
        go on; their ids may be used again, and nothing happens for an id without a log. Refused requests of deleted
        sessions leave `Runtime.refusals`.

        Then a SQLite file is written anew and its write-ahead log emptied, so that no deleted byte is left. That is
        checked, and `Deletion.remaining` names data that is left and the reason, such as a program that still reads the
        file. A Postgres server keeps deleted rows until `VACUUM FULL`, and they are reported until then.

        A caller that is cancelled does not stop the deletion of the session at hand; the others stay.

        Args:
            ids: Sessions.
            tenant: Sessions of this tenant, `""` for those of none.
            older_than: Sessions last used before this time, or not used for so long by the wall clock.
            dry_run: Delete nothing; return the sessions that would be deleted.

        Raises:
            ConfigError: No id, tenant or age is given; an argument cannot be used; or an age is given, and the clock is
                far from the last use of the journal, in which case a date works.
            SessionLeased: Another host has one of the sessions. All others are deleted.
            ReentrantCall: A tool of one of them makes this call. All others are deleted.
            SessionExists: One of them is being opened or deleted. All others are deleted.
            JournalError: One of them cannot be deleted.
            JournalUnavailable: The journal cannot be written, and no more are deleted.
        """
        host = self._host()
        if not ids and tenant is None and older_than is None:
            raise ConfigError(
                "delete() takes ids, tenant= or older_than=; without any it would delete all sessions"
            )
        check_given(tenant=tenant, older_than=older_than, dry_run=dry_run)
        names = [session_id(each) for each in ids]
        before = await self._time_of(older_than)
        if dry_run:
            return Deletion(tuple(await select_sessions(host.journal, names, tenant, before)))
        return await delete_all(host.journal, self._removal(host).delete, names, tenant, before)

    async def vacuum(self) -> tuple[RemainingData, ...]:
        """Remove every byte of deleted sessions from the journal's files, as `delete` does; return what is left.

        A SQLite file is written anew if sessions were deleted since that was done last. Nothing else is written
        meanwhile, and it needs room for two copies.
        """
        return await vacuum(self._host().journal)

    async def _time_of(self, older_than: datetime | timedelta | None) -> float | None:
        """Return a time, or an age by the clock, in seconds since 1970.

        Raises:
            ConfigError: It is an age, and the clock is far from the last use of the journal.
        """
        if not isinstance(older_than, timedelta):
            return seconds_of(older_than)
        if older_than < timedelta():
            raise ConfigError(f"older_than= takes an age of 0 or more, not {older_than}")
        now, newest = self._clock(), await self.list(limit=1)
        before = max(0.0, now - older_than.total_seconds())
        if newest and not newest[0].used - SLACK <= now <= newest[0].used + LEAP:
            raise ConfigError(
                f"The clock says {_date(now)}, and the last session was used {_date(newest[0].used)}: if the clock is "
                f"right, name a date instead of an age, as {_date(before)}"
            )
        return before

    def _opener(self) -> SessionOpener:
        return SessionOpener(self._access.opening(), self._registry)

    def _removal(self, host: SessionHost) -> SessionRemoval:
        return SessionRemoval(host, self._registry, self._drop_refusals)

    def _drop_refusals(self, names: Collection[str]) -> None:
        kept = [refusal for refusal in self._refusals if refusal.session not in names]
        self._refusals.clear()
        self._refusals.extend(kept)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d}"
