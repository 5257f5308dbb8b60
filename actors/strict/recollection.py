"""Store digests of the reasoning in earlier answers, to detect changed reasoning in later requests.

Plain `reasoning_content` has no signature, so the server stores a digest of it. The key is a digest of the prefix: the
messages of the request, and the ids of the calls in the answer. A later request that repeats these messages and calls
must repeat the reasoning unchanged. A request with a different prefix, for example after a compaction, is not checked.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

from actors.strict.rules.base import Json, dump


class ReasoningDigests:
    """Digests of the reasoning in earlier answers, by prefix. If there are more than `limit` digests, the oldest is
    removed.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[bytes, set[bytes]] = OrderedDict()

    def record_reasoning(self, messages: Iterable[Json], call_ids: Iterable[str], reasoning: str) -> None:
        """Record the reasoning of an answer to `messages` that contains the calls `call_ids`."""
        prefix = hashlib.sha256()
        for message in messages:
            prefix.update(dump(message))
        prefix.update(dump(list(call_ids)))
        self._known.setdefault(prefix.digest(), set()).add(_digest(reasoning))
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

    def index_of_change(self, messages: Iterable[Json]) -> int | None:
        """Return the index of the first message that has calls and whose reasoning was changed; otherwise None."""
        prefix = hashlib.sha256()
        for at, message in enumerate(messages):
            if calls := message.get("tool_calls"):
                here = prefix.copy()
                here.update(dump([call["id"] for call in calls]))
                known = self._known.get(here.digest())
                if known is not None and _digest(message.get("reasoning_content") or "") not in known:
                    return at
            prefix.update(dump(message))
        return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
