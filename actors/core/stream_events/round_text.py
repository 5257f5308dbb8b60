"""Assemble the text of an answer from stream events, with each character exactly once.

`Session.stream_text` and the command line use it.

In:  deltas of text and thinking, possibly with gaps, and the complete message of each round.
Out: the pieces of text to show, in order.
"""

from actors.core.stream_events.events import TextEvent, ThinkingEvent


class RoundText:
    """The text of each round as it arrives, correct even if deltas were missed.

    Deltas have offsets. After a gap, later deltas are ignored, and the complete message at the round's end provides the
    rest of the text.
    """

    def __init__(self) -> None:
        self._returned = ""
        self._next = 0
        self._gap = False

    def delta(self, event: TextEvent | ThinkingEvent) -> str:
        """Return the part of a delta that belongs to the answer's text and can be shown now."""
        self._gap = self._gap or event.offset != self._next
        self._next = event.offset + len(event.text)
        if isinstance(event, ThinkingEvent) or self._gap:
            return ""
        self._returned += event.text
        return event.text

    def rest(self, text: str, *, broken: bool) -> str:
        """End the round and return the rest of its text. After a broken answer without a gap, the rest is empty."""
        returned, gap = self._returned, self._gap
        self._returned, self._next, self._gap = "", 0, False
        return text[len(returned) :] if text.startswith(returned) and (gap or not broken) else ""
