"""What a server remembers of the reasoning it handed out, to know it again when it comes back.

Theory of operation. Plain `reasoning_content` has no signature, so the server keeps a digest of it, by the digest of
what stood before it: the messages of the request it answered, and the ids of the calls it made. A request that
repeats those messages and those calls must repeat that reasoning too. Where the prefix is another one (a compaction,
another conversation) the server knows nothing and asks nothing.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

from actors.strict.rules.base import Json, dumped


class Recollection:
    """Reasoning handed out, by where it belongs. The oldest is forgotten beyond `limit` entries."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[bytes, set[bytes]] = OrderedDict()

    def keep(self, messages: Iterable[Json], call_ids: Iterable[str], reasoning: str) -> None:
        """Remember the reasoning of a call turn that answered these messages."""
        prefix = hashlib.sha256()
        for message in messages:
            prefix.update(dumped(message))
        prefix.update(dumped(list(call_ids)))
        self._known.setdefault(prefix.digest(), set()).add(_digest(reasoning))
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

    def changed(self, messages: Iterable[Json]) -> int | None:
        """Return the index of the first call turn whose reasoning is not what was handed out."""
        prefix = hashlib.sha256()
        for at, message in enumerate(messages):
            if calls := message.get("tool_calls"):
                here = prefix.copy()
                here.update(dumped([call["id"] for call in calls]))
                known = self._known.get(here.digest())
                if known is not None and _digest(message.get("reasoning_content") or "") not in known:
                    return at
            prefix.update(dumped(message))
        return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
