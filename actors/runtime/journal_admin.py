"""Define `JournalAdmin`, the type of `Runtime.journal`, which lists, copies, backs up and deletes sessions.

The journal actor does most of the work; `SessionOpener` writes logs, and `SessionRemoval` ends open sessions.

If the caller of a backup is cancelled, the backup stops and its file is removed. anyio notifies a worker thread if a
cancel scope is cancelled. It does not notify the thread of a native cancellation, for example by `asyncio.timeout`,
which ends only the caller's wait. So a task of the host waits for the thread, and the caller waits for this task. A
second native cancellation ends the caller's wait at once; the host still waits for the thread, which removes its copy.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from threading import Event, Lock
from time import time
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from actors.core.log.events import LogEvent
from actors.core.settings.labels import Scalar, checked_metadata, checked_title
from actors.core.transcript.diagnostics import Refusal
from actors.errors import ConfigError, JournalUnavailable, ShuttingDown
from actors.journal.commands import FindSession, ListHosts, ListSessions
from actors.journal.pages import SLICE, SLICE_BYTES
from actors.journal.storage.clock import LEAP, SLACK
from actors.journal.storage.directory import (
    Deletion,
    Host,
    Page,
    RemainingData,
    SessionFilter,
    State,
    StoredSession,
)
from actors.journal.storage_calls import back_up
from actors.kernel.turnstile import compute
from actors.runtime.claims import unknown_session_error
from actors.runtime.deletion import SessionRemoval, read_with_subagents
from actors.runtime.opening import SessionOpener
from actors.runtime.registry import SessionRegistry
from actors.runtime.retention import delete_all, select_sessions, vacuum
from actors.runtime.session_host import SessionHost
from actors.runtime.validation import (
    absolute_path,
    check_limit,
    check_types,
    checked_session_id,
    checked_tenant_filter,
    seconds_since_1970,
)

if TYPE_CHECKING:
    from pathlib import Path

LONG = 64 * 1024
"""Maximum size in bytes of a file that is parsed in the event loop, which takes a few milliseconds. Larger files are
parsed in a thread.
"""


class HostAccess(NamedTuple):
    """Two functions that return a runtime's host or raise an error.

    Args:
        running_host: Raises an error unless the runtime is running.
        opening_host: Raises an error unless the runtime is running and accepts new sessions.
    """

    running_host: Callable[[], SessionHost]
    opening_host: Callable[[], SessionHost]


class JournalAdmin:
    """The journal of a runtime, with its open and closed sessions. The methods can be used while the runtime is
    running.
    """

    def __init__(self, access: HostAccess, registry: SessionRegistry, refusals: deque[Refusal]) -> None:
        self._access, self._registry, self._refusals = access, registry, refusals
        self._clock = time  # returns the wall-clock time in seconds since 1970; tests replace it

    def _host(self) -> SessionHost:
        """Return the host, after checking that the runtime is running and the caller is on its event loop."""
        host = self._access.running_host()
        host.check_event_loop()
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
        """Return the sessions that have a log, whether or not they are open, most recently used first.

        Tenant and state are indexed, so the cost of a page depends only on its size. Titles are not indexed, and
        metadata are indexed only in Postgres. A search by values without an index examines the sessions that meet all
        other conditions, until `limit` sessions match. No logs are read.

        Args:
            tenant: Only sessions of this tenant; `""` for sessions without a tenant.
            state: Only sessions in this state: `idle`, `running`, `awaiting` or `closed`.
            title: Only sessions whose title contains this string; case is ignored.
            metadata: Only sessions with these keys and values. Types must match as well: 7 does not match "7".
            limit: Maximum number of sessions to return.
            after: `StoredSession.page` of the last session of the previous page.

        Raises:
            ConfigError: An argument has a wrong type or value.
            JournalError: The journal cannot be read.
        """
        host = self._host()
        tenant = checked_tenant_filter(tenant)
        check_types(state=state, after=after)
        check_limit(limit)
        which = SessionFilter(tenant, state, checked_title(title), checked_metadata(metadata))
        return await host.journal.ask(ListSessions("", which, limit, after))

    async def get(self, id: str) -> StoredSession:  # noqa: A002  callers expect the name `id`
        """Return the journal's entry for one session, open or not, without reading its log.

        Raises:
            ConfigError: The id is not a string.
            SessionUnknown: The session has no log.
            JournalError: The journal cannot be read.
        """
        host = self._host()
        name = checked_session_id(id)
        found = await host.journal.ask(FindSession(name))
        if found is None:
            raise unknown_session_error(name)
        return found

    async def hosts(self, *, count_sessions: bool = True) -> Sequence[Host]:
        """Return the live hosts of the journal, ordered by name: the runtimes that own sessions or have an `address`.

        `StoredSession.owner` is the name of the host that owns a session.

        Args:
            count_sessions: Count the sessions of each host, at a cost that grows with their number. Otherwise,
                `Host.sessions` is 0.

        Raises:
            JournalError: The journal cannot be read.
        """
        return await self._host().journal.ask(ListHosts(count_sessions=count_sessions))

    async def export(self, id: str) -> bytes:  # noqa: A002  callers expect the name `id`
        """Return the complete logs of a session and its subagents as a JSON Lines file.

        Raises:
            SessionUnknown: The session has no log.
            JournalError: A log cannot be read.
        """
        from actors.core.session.export_file import ExportFile  # imported here, because few programs need it

        host = self._host()
        name = checked_session_id(id)
        file, throttle = ExportFile(), host.readers.throttle

        async def add_events(session: str, events: Sequence[LogEvent]) -> None:
            size = 0
            for number, event in enumerate(events, 1):
                size += file.add(session, event)
                if not number % SLICE or size >= SLICE_BYTES:
                    size = 0
                    await throttle.pause()  # let other tasks run after each slice

        if not (await read_with_subagents(host.journal, name, throttle, add_events))[0].last:
            raise unknown_session_error(name)
        return file.content()

    async def import_session(self, file: bytes | str, /, *, id: str | None = None) -> str:  # noqa: A002
        """Import a session and its subagents from an exported file, and return the session's id for `Runtime.resume`.

        Args:
            file: The content of the file.
            id: The id for the session; by default, the id in the file.

        Raises:
            TranscriptError: The file is incomplete, or a line is not part of a valid log; the message names the line.
            SessionExists: The session or one of its subagents is open or has a log.
            JournalError: The logs cannot be written. None of them is kept.
        """
        from actors.core.session.export_file import assign_ids, import_logs  # imported here, as in `export`

        given: object = file
        is_long = isinstance(given, bytes | str) and len(given) > LONG
        logs = await compute(lambda: assign_ids(import_logs(file), id), is_long=is_long)
        await self._session_opener().import_logs(logs)
        return logs[0][0]

    async def fork(self, source: str, /, at: int | None = None, *, id: str | None = None) -> str:  # noqa: A002
        """Copy a session up to event number `at` to a new session, and return the new id for `Runtime.resume`.

        The source does not change, and may be in use. Calls that were running at that event end as `outcome_unknown` in
        the fork, and do not run again. If a turn is paused at that event, it waits in both sessions.

        Args:
            source: Id of a session that has a log, open or not.
            at: Number (`seq`) of the last event to copy; by default, all events are copied.
            id: Id of the fork; generated by default.

        Raises:
            ConfigError: An id or the number has a wrong type or value.
            SessionUnknown: The source has no log.
            UnknownSeq: The source has no event with this number.
            SessionExists: A session with the new id is open or has a log.
            JournalError: The source cannot be read, or the fork cannot be written.
        """
        check_types(at=at)
        return await self._session_opener().fork(checked_session_id(source), at, id)

    async def backup(self, path: str | PathLike[str]) -> None:
        """Copy the journal's file to a new file. This runtime and other processes can write in the meantime.

        The copy is a consistent snapshot. It contains every event that was acknowledged before the call, and no data of
        deleted sessions. When this method returns, the copy is on the disk. Cancelling the caller stops the backup and
        removes the file. `actors sessions fsck` checks a copy. To restore a copy, use it as the journal.

        Args:
            path: Path of the new file. Only this user can read it (mode 0600).

        Raises:
            ConfigError: The path exists, or the journal is not a file; for Postgres, use `pg_dump`.
            JournalDamaged: The journal cannot be read.
            JournalUnavailable: The copy cannot be written, or the runtime exited before the copy was complete.
        """
        await make_backup(self._host(), absolute_path(path))

    async def delete(
        self,
        *ids: str,
        tenant: str | None = None,
        older_than: datetime | timedelta | None = None,
        dry_run: bool = False,
    ) -> Deletion:
        """Delete sessions with their subagents. Sessions that are open in this runtime are closed first.

        Sessions are deleted one at a time, and only if they meet all conditions. Ids without a log are ignored, and
        deleted ids can be used again. The rejected requests of deleted sessions are removed from `Runtime.refusals`.

        Afterwards, a SQLite file is rewritten and its write-ahead log is emptied, so that no deleted data remains. The
        result is verified: `Deletion.remaining` lists data that does remain, with the reason, such as a program that
        still reads the file. A Postgres server keeps deleted rows until `VACUUM FULL`; until then, `remaining` lists
        them.

        If the caller is cancelled, the current session is still deleted, but no further session.

        Args:
            ids: Ids of the sessions. Without ids, all sessions that meet the other conditions are deleted.
            tenant: Only sessions of this tenant; `""` for sessions without a tenant.
            older_than: Only sessions that were last used before this time, or at least this long ago.
            dry_run: Delete nothing, and return the sessions that would be deleted.

        Raises:
            ConfigError: There is no condition; an argument has a wrong type or value; or `older_than` is an age, and
                the clock's time is too far from the time at which the journal was last used to rely on ages. Pass a
                date instead.
            SessionLeased: Another host has claimed one of the sessions. All others are deleted.
            ReentrantCall: A tool of one of the sessions called this method. All others are deleted.
            SessionExists: One of the sessions is being opened or deleted. All others are deleted.
            JournalError: One of the sessions cannot be deleted.
            JournalUnavailable: The journal cannot be written. No further session is deleted.
        """
        host = self._host()
        if not ids and tenant is None and older_than is None:
            raise ConfigError(
                "delete() needs ids, tenant= or older_than=; without a condition, it would delete all sessions"
            )
        tenant = checked_tenant_filter(tenant)
        check_types(older_than=older_than, dry_run=dry_run)
        names = [checked_session_id(each) for each in ids]
        before = await self._cutoff_time(older_than)
        if dry_run:
            throttle = host.readers.throttle
            return Deletion(tuple(await select_sessions(host.journal, names, tenant, before, throttle)))
        return await delete_all(host.journal, self._session_removal(host).delete, names, tenant, before)

    async def vacuum(self) -> tuple[RemainingData, ...]:
        """Remove all data of deleted sessions from the journal's files, as `delete` does; return the data that remains.

        A SQLite file is rewritten if sessions were deleted since the last rewrite. During the rewrite, no session can
        write to the file, and the disk needs space for two copies.
        """
        return await vacuum(self._host().journal)

    async def _cutoff_time(self, older_than: datetime | timedelta | None) -> float | None:
        """Convert a time, or an age relative to now, to seconds since 1970. Return None if `older_than` is None.

        Raises:
            ConfigError: The value is an age, and the clock's time is too far from the time at which the journal was
                last used.
        """
        if not isinstance(older_than, timedelta):
            return seconds_since_1970(older_than)
        if older_than < timedelta():
            raise ConfigError(f"older_than= takes an age of 0 or more, not {older_than}")
        now, newest = self._clock(), await self.list(limit=1)
        before = max(0.0, now - older_than.total_seconds())
        if newest and not newest[0].used - SLACK <= now <= newest[0].used + LEAP:
            raise ConfigError(
                f"The clock says {_format_date(now)}, but a session was last used on "
                f"{_format_date(newest[0].used)}; if the clock is right, pass a date instead of an age, such as "
                f"{_format_date(before)}"
            )
        return before

    def _session_opener(self) -> SessionOpener:
        return SessionOpener(self._access.opening_host(), self._registry)

    def _session_removal(self, host: SessionHost) -> SessionRemoval:
        return SessionRemoval(host, self._registry, self._drop_refusals)

    def _drop_refusals(self, names: Collection[str]) -> None:
        """Remove the rejected requests of deleted sessions from `Runtime.refusals`."""
        kept = [refusal for refusal in self._refusals if refusal.session not in names]
        self._refusals.clear()
        self._refusals.extend(kept)


def _format_date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d}"


class _Backup:
    """A backup that a thread is making. If the backup is abandoned, no file remains, even if the thread has just
    finished.
    """

    def __init__(self, host: SessionHost, path: "Path") -> None:
        self._host, self._path = host, path
        self._unwanted, self._lock, self._is_complete = Event(), Lock(), False

    async def run(self) -> None:
        """Copy the journal in a thread, and return when the thread has finished."""
        try:
            await anyio.to_thread.run_sync(self._copy_journal, limiter=anyio.CapacityLimiter(1))
        except BaseException:
            self.abandon()
            raise

    def _copy_journal(self) -> None:
        back_up(self._host.storage, self._path, self._unwanted)
        with self._lock:
            self._is_complete = True
            if self._unwanted.is_set():
                self._path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Stop the thread, and remove the copy."""
        with self._lock:
            if not self._unwanted.is_set() and self._is_complete:
                self._path.unlink(missing_ok=True)
            self._unwanted.set()


async def make_backup(host: SessionHost, path: "Path") -> None:
    """Copy the journal to a new file at `path`. See `JournalAdmin.backup`."""
    backup = _Backup(host, path)
    task = host.launch(backup.run, "journal/backup")
    try:
        await task.result()
    except ShuttingDown:
        raise JournalUnavailable(f"{path}: the runtime exited before this backup was complete") from None
    except BaseException:
        backup.abandon()
        with anyio.CancelScope(shield=True):
            await task.wait()
        raise
