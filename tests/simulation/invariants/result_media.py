"""Check media of results: a request with the text of a result has its media once, or a note for each."""

from collections import Counter, defaultdict
from typing import NamedTuple

from actors.core.log import call_events
from actors.core.values.identity import CallId
from tests.simulation.witness import TOKEN, Witness

NOTE = "[An attachment of type %s was omitted here"
"""The beginning of the note that replaces media."""


class _Attached(NamedTuple):
    """The media of one result, with the token in its text."""

    call: CallId
    token: bytes
    data: bytes
    note: bytes


class ResultMedia:
    """Checks the media of results."""

    def __init__(self, witness: Witness) -> None:
        self._problems = witness.problems
        self._seen = witness.seen
        self._attached: defaultdict[str, list[_Attached]] = defaultdict(list)
        self.counts = Counter[str](result_media_sent=0, result_media_noted=0)
        witness.subscribe(call_events.Returned, self._on_returned)

    def _on_returned(self, session: str, event: call_events.Returned) -> None:
        for media in event.media:
            token, note = TOKEN.findall(event.content)[0], (NOTE % media.media_type).encode()
            self._attached[session].append(_Attached(event.call_id, token, media.data.encode(), note))

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body against its results. Late results appear as text."""
        sealed = self._seen[session].sealed
        for call, token, data, note in self._attached.get(session, ()):
            if call in sealed or token not in body:
                continue
            count = body.count(data)
            self.counts["result_media_sent"] += count
            self.counts["result_media_noted"] += not count
            if count > 1 or (not count and note not in body):
                self._problems.add("the media of a result are shown once, or noted", f"{session}: {call}")
