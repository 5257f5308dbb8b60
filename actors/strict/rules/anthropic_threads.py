"""Store threads of Anthropic Messages, and add the stored messages to requests that continue a thread.

A request may create a thread, and a later request may continue it by giving the id of the last answer (`thread`, a
beta). The later request contains only new messages. `expand` adds the stored messages, system prompt and tools, so
rules, scripts and simulated signatures see the complete conversation.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import Json, is_array, is_object

_CREATE_ONLY = ("system", "tools")


@dataclass(slots=True)
class _StoredAnswer:
    """An answer in a thread, with its complete request."""

    request: Json
    content: Json
    is_continued: bool = False


class ThreadStore:
    """The stored answers of threads, by id. If there are more than `limit` answers, the oldest is removed."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._answers: OrderedDict[str, _StoredAnswer] = OrderedDict()

    def store_answer(self, request: Json, answer_id: str, content: Json) -> None:
        """Store the answer to a request that `expand` has completed. `content` is the list of its blocks."""
        thread = request["thread"]
        if thread["type"] == "continue" and (previous := self._answers.get(thread["previous_message_id"])):
            previous.is_continued = True
        self._answers[answer_id] = _StoredAnswer(request, content)
        while len(self._answers) > self._limit:
            self._answers.popitem(last=False)

    def expand(self, request: Json) -> Json:
        """Add the stored messages and fields to a request that continues a thread. Return any other request unchanged.

        Raises:
            RuleBroken: The thread is not stored, was already continued, or was created with different fields.
        """
        thread = request.get("thread")
        if not is_object(thread) or thread.get("type") != "continue":
            return request
        kept = self._answers.get(str(thread.get("previous_message_id")))
        if kept is None:
            raise RULES["ANT-S21"].refuse()
        if kept.is_continued:
            raise RULES["ANT-S22"].refuse()
        changed = [key for key in _CREATE_ONLY if key in request and request[key] != kept.request.get(key)]
        if changed:
            raise RULES["ANT-S23"].refuse(fields=", ".join(f"`{key}`" for key in changed))
        fields = {key: kept.request[key] for key in _CREATE_ONLY if key in kept.request}
        answer = {"role": "assistant", "content": kept.content}
        return {**request, **fields, "messages": [*kept.request["messages"], answer, *request["messages"]]}


def assume_thread(request: Json) -> Json:
    """Add plausible earlier messages to a request that continues a thread that is not stored.

    The added messages end with calls that match the results at the beginning of the request.
    """
    messages: Sequence[Json] = request["messages"]
    content = messages[0].get("content") if messages and is_object(messages[0]) else None
    results = [block for block in content if is_object(block)] if is_array(content) else []
    ids = [block.get("tool_use_id") for block in results if block.get("type") == "tool_result"]
    calls: list[Json] = [
        {"type": "tool_use", "id": call_id, "name": "unknown", "input": {}} for call_id in ids
    ]
    paused: Json = {"type": "server_tool_use", "id": "srvtoolu_unknown", "name": "unknown", "input": {}}
    text = {"type": "text", "text": "unknown"}
    answer = {"role": "assistant", "content": calls or ([text] if messages else [paused])}
    return {**request, "messages": [{"role": "user", "content": "unknown"}, answer, *messages]}
