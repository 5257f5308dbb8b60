"""Run a long computation in slices, so that an event loop can run other tasks between the slices.

A computation is a generator that yields after each slice and returns its result, which does not depend on the slices.
`run_slices` runs all slices without a pause, for programs without an event loop and for short computations.
`actors.kernel.turnstile.run_slices` yields to the event loop after each slice.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Slices: TypeAlias = Generator[None, None, T]


def run_slices(slices: Slices[T]) -> T:
    """Run all slices of a computation and return its result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
