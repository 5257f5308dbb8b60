"""Assemble the text of an answer from stream events, so that every character appears exactly once.

`Session.stream_text` and the command line use this module.

In:  deltas of text and thinking, possibly with gaps, and the complete message of each round.
Out: the fragments of text to show, in order.
"""

from actors.core.stream_events.round_events import TextEvent, ThinkingEvent


class RoundText:
    """Assembles the text of each round, even if deltas were missed.

    A gap is recognised by the offsets of the deltas. After a gap, the remaining deltas of the round are ignored, and
    the missing text comes from the complete message at the end of the round.
    """

    def __init__(self) -> None:
        self._returned = ""
        self._next = 0
        self._gap = False

    def add_delta(self, event: TextEvent | ThinkingEvent) -> str:
        """Return the text to show for this delta. Return "" for thinking and after a gap."""
        self._gap = self._gap or event.offset != self._next
        self._next = event.offset + len(event.text)
        if isinstance(event, ThinkingEvent) or self._gap:
            return ""
        self._returned += event.text
        return event.text

    def end_round(self, text: str, *, broken: bool) -> str:
        """End the round, and return the part of its text that `add_delta` has not returned.

        `text` is the complete text of the message, and `broken` is True if the answer broke off. The result is empty if
        the answer broke off and no delta was missed.
        """
        returned, gap = self._returned, self._gap
        self._returned, self._next, self._gap = "", 0, False
        return text[len(returned) :] if text.startswith(returned) and (gap or not broken) else ""
