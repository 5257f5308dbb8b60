"""One deliberate mistake."""

from dataclasses import dataclass

from tests.teeth.rewrite import Edit


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mistake.

    Args:
        what: The promise it breaks, in a few words.
        place, old, new: The edit that makes the mistake; `tests.teeth.rewrite` describes the form.
        tests: The tests that must notice, as arguments of pytest.
    """

    what: str
    place: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def edit(self) -> Edit:
        """The edit that makes the mistake."""
        return Edit(self.place, self.old, self.new)
