"""Reasoning in a Chat Completions answer: which words are it, and what goes back with them.

    reasoning_content   a field with words. The seal says no more than that: the words are all there is to replay.
    reasoning_details   a gateway's list, in pieces or whole. The seal holds the list, in its order.
    thinking_chunk      chunks of the content. The seal holds what they say beside their words.

A seal is given when the provider says that the answer is complete, not before: reasoning that broke off is nobody's.
"""

from actors.adapters.arriving import Words
from actors.adapters.assembly import Assembly
from actors.adapters.document import LongText
from actors.adapters.wire import Fields, fields, items, json_text, long_string, string

_WORDS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ArrivingReasoning:
    """The reasoning of one answer while it arrives. It is handed the answer each time: neither keeps the other alive.

    Args:
        carrier: How the dialect takes reasoning back.
    """

    def __init__(self, carrier: str) -> None:
        self._carrier = carrier
        self._parts: list[Words] = []
        self._details: list[dict[str, object]] = []
        self._more: dict[str, object] = {}

    def take(self, answer: Assembly, delta: Fields) -> None:
        """Take what a delta, or a whole message, says in fields of its own."""
        details = [fields(item) for item in items(delta.get("reasoning_details"))]
        words = long_string(delta.get("reasoning_content")) or long_string(delta.get("reasoning"))
        for detail in details:
            self._detail(detail)
        words = words or "".join(map(_words_of, details))
        if words or (details and self._carrier == "reasoning_details"):
            self._say(answer, words)

    def chunk(self, answer: Assembly, chunk: Fields) -> None:
        """Take a chunk of type `thinking`, whole or a piece of one."""
        thinking = chunk.get("thinking")
        pieces = [string(fields(item).get("text")) for item in items(thinking)]
        known = ("type", "thinking")
        self._more |= {key: value for key, value in chunk.items() if key not in known and value is not None}
        self._say(answer, long_string(thinking) or "".join(pieces))

    def seal(self, answer: Assembly) -> None:
        """Seal what has arrived, where the dialect takes it back. Doing it twice changes nothing."""
        for part in self._parts:
            if self._carrier == "reasoning_content":
                answer.seal(part, self._carrier, self._carrier)
            elif self._carrier == "thinking_chunk":
                last = part is self._parts[-1]
                answer.seal(part, self._carrier, json_text(self._more if last else {}))
            elif self._carrier == "reasoning_details" and self._details and part is self._parts[0]:
                answer.seal(part, self._carrier, json_text(self._details))

    def _say(self, answer: Assembly, piece: str | LongText) -> None:
        part = answer.latest_words("thinking")
        if part not in self._parts:
            self._parts.append(part)
        answer.say(part, piece)

    def _detail(self, detail: Fields) -> None:
        """Add a detail, or a piece to the one it continues: words of the same kind and index."""
        last = self._details[-1] if self._details else {}
        words = _WORDS.get(string(detail.get("type")))
        same = all(key in detail and last.get(key) == detail[key] for key in ("type", "index"))
        if words is None or not same:
            self._details.append(dict(detail))
            return
        joined = string(last.get(words)) + string(detail.get(words))
        last.update({key: value for key, value in detail.items() if value is not None})
        last[words] = joined


def _words_of(detail: Fields) -> str:
    return string(detail.get(_WORDS.get(string(detail.get("type")), "")))
