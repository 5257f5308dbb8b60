"""A retry after a hundredth of the time. Whether there is one stays as it is. A forked command line imports this."""

from random import Random

from actors.provider.attempts import Retries

_wait = Retries.wait


def short_wait(retries: Retries, attempt: int, asked: float | None, random: Random) -> float | None:
    """Return a hundredth of what `Retries.wait` says."""
    seconds = _wait(retries, attempt, asked, random)
    return None if seconds is None else seconds / 100


def shorten() -> None:
    """Wait so in this process, from now on."""
    Retries.wait = short_wait  # type: ignore[assignment, method-assign]
