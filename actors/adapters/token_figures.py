"""Add up the token figures of one answer, which may consist of several responses."""

from collections.abc import Mapping

from actors.adapters.wire import as_object, whole_number
from actors.core.values.stream import Usage


class TokenFigures:
    """The token figures of one answer, by the provider's names. Within a response, the last value of each figure
    counts.
    """

    def __init__(self) -> None:
        self._before = Usage()  # usage of the earlier responses of this answer
        self._figures: dict[str, int] = {}

    def begin_response(self, usage: Usage) -> None:
        """Begin the next response of the answer. `usage` is the usage of the earlier responses."""
        self._before, self._figures = usage, {}

    def discard(self) -> None:
        """Discard the figures of the current response."""
        self._figures = {}

    def update(self, usage: object, usage_fields: Mapping[str, tuple[int, ...]]) -> Usage:
        """Update the figures with those of an event, and return the answer's usage so far.

        A missing figure keeps its value. `MessageBuilder.update_usage` describes `usage_fields`.
        """
        for name, value in as_object(usage).items():
            if name in usage_fields and (figure := whole_number(value)) is not None:
                self._figures[name] = figure
        totals = [0, 0, 0, 0]
        for name, figure in self._figures.items():
            for place in usage_fields[name]:
                totals[place] += figure
        return self._before + Usage(*totals)
