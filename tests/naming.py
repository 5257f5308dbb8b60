"""Name the case in the failure of a test that loops over many cases.

Collecting a test costs a millisecond in each process, and its set-up costs as much. A test with fixtures whose
cases cost less loops over all of them; `tests.folding` does so for plain functions.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*names: object) -> Iterator[None]:
    """Add the name of the case to an exception raised inside."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {' '.join(map(str, names))}")
        raise
