"""Shorten the delay before retries to a hundredth, without changing which requests are retried."""

from random import Random

from actors.provider.attempts import Retries

_wait = Retries.wait_seconds


def short_wait(retries: Retries, attempt: int, asked: float | None, random: Random) -> float | None:
    """Return a hundredth of the delay that `Retries.wait_seconds` returns."""
    seconds = _wait(retries, attempt, asked, random)
    return None if seconds is None else seconds / 100


def shorten() -> None:
    """Shorten the delays of this process from now on."""
    Retries.wait_seconds = short_wait  # type: ignore[assignment, method-assign]
