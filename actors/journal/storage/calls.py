"""Call the methods of a storage, which may be custom code. Exit exceptions such as `SystemExit` become a
`JournalError`.
"""

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
    """Call a method of a storage.

    If it raises an exit exception such as `SystemExit`, raise a `JournalError` instead.
    """
    return call_host(work, _reraise)


def back_up(storage: Storage, path: "Path", stop: Event) -> None:
    """Copy a journal to the file `path`. Must be called in an anyio worker thread.

    Copying stops when `stop` is set, or when the task that waits for the thread is cancelled.

    Raises:
        JournalUnavailable: `stop` was set.
    """
    # Imported here, because it is slow to import and rarely needed.
    from anyio.from_thread import check_cancelled

    def check_stopped() -> None:
        check_cancelled()
        if stop.is_set():
            raise JournalUnavailable(f"The backup to {path} was stopped because its caller was cancelled")

    def raise_error(error: BaseException) -> Never:
        check_stopped()  # if the caller was cancelled, raise the cancellation instead
        _reraise(error)

    call_host(partial(storage.backup, path, check_stopped), raise_error)


def _reraise(error: BaseException) -> Never:
    # A future cannot carry a StopIteration from a thread to the event loop.
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        raise error
    raise JournalError(
        f"The storage raised {type(error).__name__}; it may raise ordinary exceptions only"
    ) from error


def call_and_renew_lease(function: Callable[[], R], storage: Storage, on_renewal: Callable[[], None]) -> R:
    """Call `function`, renew the lease of the storage, and return the result of `function`.

    The regular renewal may be delayed in the journal actor's queue until it is too late. `on_renewal` is called after a
    successful renewal.
    """
    result = function()
    with suppress(JournalError):  # the call itself succeeded, and its result must not be lost
        storage.renew_lease()
        on_renewal()
    return result
