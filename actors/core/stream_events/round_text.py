"""The text of an answer's rounds, from the events of its stream: each character exactly once.

In:  deltas of text and thinking, some of which may be missing, and each round's whole message.
Out: the pieces to show, in order.
"""

from actors.core.stream_events.events import TextEvent, ThinkingEvent


class RoundText:
    """The text of each round as it arrives, exact even where deltas were missed.

    Deltas are numbered. After a gap no more of them are given, and the rest of the text follows from the
    whole message at the round's end.
    """

    def __init__(self) -> None:
        self._given = ""
        self._next = 0
        self._gap = False

    def delta(self, event: TextEvent | ThinkingEvent) -> str:
        """Return the part of a delta that belongs to the answer's text and can be shown now."""
        self._gap = self._gap or event.offset != self._next
        self._next = event.offset + len(event.text)
        if isinstance(event, ThinkingEvent) or self._gap:
            return ""
        self._given += event.text
        return event.text

    def rest(self, text: str, *, broken: bool) -> str:
        """End the round: return the part of its whole text that was not given; of a broken answer nothing is added."""
        given, gap = self._given, self._gap
        self._given, self._next, self._gap = "", 0, False
        return text[len(given) :] if text.startswith(given) and (gap or not broken) else ""
