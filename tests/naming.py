"""Many cases in one test: what fails says which of them it was.

A test costs a millisecond to collect, in each process, and as much to set up. So where a case costs less than that,
a test goes through all that are of one kind.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*names: object) -> Iterator[None]:
    """Have whatever is raised say in which case it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {' '.join(map(str, names))}")
        raise
