"""Call the methods of a storage, which may be foreign code: every exception becomes an ordinary one."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Never, TypeVar

from actors.errors import JournalError, JournalUnavailable
from actors.journal.storage import Storage
from actors.kernel.host_code import call_host

if TYPE_CHECKING:
    from pathlib import Path

R = TypeVar("R")


def call_storage(work: Callable[[], R]) -> R:
    """Call a storage; if the storage raises an exit exception, raise a `JournalError` instead."""
    return call_host(work, _reraise)


def back_up(storage: Storage, path: "Path", unwanted: Event) -> None:
    """Back up a storage, in a worker thread of anyio.

    The copy ends when the scope of the waiting task is cancelled, or when `unwanted` is set.

    Raises:
        JournalUnavailable: The copy is no longer wanted.
    """
    from anyio.from_thread import check_cancelled  # few programs copy a journal, and it imports `concurrent`

    def check() -> None:
        check_cancelled()
        if unwanted.is_set():
            raise JournalUnavailable(f"{path}: the caller of this backup was cancelled")

    def fail(error: BaseException) -> Never:
        check()  # raises the cancellation, if that is the error
        _reraise(error)

    call_host(partial(storage.backup, path, check), fail)


def _reraise(error: BaseException) -> Never:
    if isinstance(error, Exception) and not isinstance(
        error, StopIteration
    ):  # no thread can hand that one on
        raise error
    raise JournalError(f"The storage raised {type(error).__name__}") from error


def call_and_beat(function: Callable[[], R], storage: Storage, on_beat: Callable[[], None]) -> R:
    """Renew the lease after another call, since the queued heartbeat itself may be late."""
    result = function()
    with suppress(JournalError):  # the call succeeded; a host that takes over fences this one
        storage.renew_lease()
        on_beat()
    return result
