"""A long computation in slices, so that an event loop can come round between them.

A generator that yields after each slice and returns the outcome. Which slices there are changes nothing of the outcome:
`finished` runs all of them at once, for programs without an event loop and for computations that are short.
`actors.kernel.turnstile.in_turns` gives way after each.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Slices: TypeAlias = Generator[None, None, T]


def finished(slices: Slices[T]) -> T:
    """Return the outcome of a computation, all slices at once."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
