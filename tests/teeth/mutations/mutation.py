"""One mutation."""

from dataclasses import dataclass

from tests.teeth.rewrite import Edit


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mutation.

    Args:
        what: The mistake, in a few words.
        place, old, new: The edit that makes the mistake; `tests.teeth.rewrite` describes the form.
        tests: The tests that must fail, as arguments of pytest.
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
