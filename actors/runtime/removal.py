"""Delete sessions that may be open in this runtime: close them, then delete their logs and the logs of their subagents.

`actors.runtime.deletion` deletes the logs. This module reserves the ids in the meantime, so that no caller opens the
sessions.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from actors.errors import ReentrantCall, SessionExists
from actors.journal.storage.directory import StoredSession
from actors.runtime.deletion import delete_logs, delete_unused, was_used_before
from actors.runtime.registry import SessionRegistry
from actors.runtime.session_host import SessionHost
from actors.scheduler.executor import is_called_from_tool


class SessionRemoval:
    """Deletes sessions of a host, including open sessions.

    Args:
        host: The host of the sessions.
        registry: The session ids that are in use.
        on_deleted: Called with the ids of deleted sessions, even if the caller is cancelled.
    """

    def __init__(
        self,
        host: SessionHost,
        registry: SessionRegistry,
        on_deleted: Callable[[Collection[str]], None],
    ) -> None:
        self._host, self._registry, self._on_deleted = host, registry, on_deleted

    async def delete(self, name: str, before: float | None) -> Collection[str]:
        """Close a session, delete its log and the logs of its subagents, and return the deleted ids.

        With `before`, a session that was used at or after this time (in seconds since 1970) is kept. See
        `JournalAdmin.delete`.
        """
        host, registry = self._host, self._registry
        if is_called_from_tool(host.system, name):
            raise ReentrantCall(
                f"A tool of session {name!r} cannot delete that session, because the deletion waits for the tool; "
                "delete it when the ask has ended"
            )
        if registry.is_reserved(name):
            raise SessionExists(f"Session {name!r} is being opened or deleted by another caller; try again")
        registry.reserve_for_deletion(name)
        deleted: list[str] = []

        async def delete_session() -> None:
            try:
                if before is not None and not await was_used_before(host.journal, name, before):
                    return
                if (session := registry.open.get(name)) is not None:
                    await session._lifecycle.close()
                deleted.extend(await delete_logs(host.journal, name, host.readers.throttle))
                self._on_deleted(deleted)
            finally:
                registry.free(name)

        await host.carry_out(delete_session, f"{name}/delete")
        return deleted

    async def delete_unused(self, stored: Iterable[StoredSession]) -> Collection[str]:
        """Delete the logs of listed sessions and their subagents, and return the deleted ids.

        A session is kept if it is open in this runtime, or was used after it was listed.
        """
        host, registry = self._host, self._registry
        names = {each.id: each.events for each in stored if not registry.is_taken(each.id)}
        registry.reserve_for_deletion(*names)
        held, deleted = {*names}, list[str]()

        def reserve(ids: Sequence[str]) -> bool:
            below = {*ids} - held
            if any(map(registry.is_taken, below)):
                return False
            registry.reserve_for_deletion(*below)
            held.update(below)
            return True

        async def delete_sessions() -> None:
            try:
                deleted.extend(await delete_unused(host.journal, names, reserve, host.readers.throttle))
                self._on_deleted(deleted)
            finally:
                registry.free(*held)

        await host.carry_out(delete_sessions, "journal/retention/delete")
        return deleted
