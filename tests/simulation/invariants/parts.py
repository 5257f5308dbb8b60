"""Check messages with several parts: each request has their texts, images and documents in order.

If a provider does not accept an attachment, a note replaces it. A summary may be summarised again; a request with the
summary does not contain the original text.
"""

from collections import Counter
from collections.abc import Iterator

from actors.core.history.compaction import SUMMARY
from actors.testing.simulation.model import PARTS, ask_text, attachment_for, closing_text
from actors.testing.simulation.plan import FeatureLookup
from tests.simulation.witness import Witness


class OrderedParts:
    """Checks messages with several parts."""

    def __init__(self, witness: Witness, feature_of: FeatureLookup) -> None:
        self._witness = witness
        self._feature_of = feature_of
        self.counts = Counter[str](parts_in_requests=0, parts_noted=0)

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body against the message of its ask."""
        if (feature := self._feature_of(ask, "parts")) is None:
            return
        if (
            self._witness.seen[session].aside
            and SUMMARY.encode() in body
            and ask_text(ask).encode() not in body
        ):
            return
        at = 0
        for part, note in _expected_forms(ask, feature.value):
            found = body.find(part, at)
            if found < 0 and note:
                self.counts["parts_noted"] += 1
                found = body.find(note, at)
            elif note:
                self.counts["parts_in_requests"] += 1
            if found < 0:
                about = f"{session}: {ask}: {part[:40]!r} is not where it was said"
                self._witness.problems.add("a message keeps the order of its parts", about)
                return
            at = found + 1


def _expected_forms(ask: str, kind: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the encoded form of each part, with its allowed substitutes."""
    yield ask_text(ask).encode(), b""
    for media_type in PARTS[kind]:
        yield (
            attachment_for(ask, media_type).data.encode(),
            f"[An attachment of type {media_type} was omitted here".encode(),
        )
    yield closing_text(ask).encode(), b""
