"""One deliberate mistake."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mistake.

    Args:
        what: The promise it breaks, in a few words.
        file: Path from the root of the tree.
        old, new: Text that stands there once, and what replaces it.
        tests: What must notice, as pytest takes it.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
