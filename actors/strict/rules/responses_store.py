"""Store responses and conversations of OpenAI Responses, and resolve references to them in requests.

A request may refer to a conversation by its last response (`previous_response_id`) or by its id (`conversation`). In
addition, it may refer to single items, by an `item_reference` or by reasoning that consists only of an id. `expand`
replaces references with the stored items, so that rules, scripts and simulated encryption see the complete
conversation.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.strict.rules.base import Json, is_object
from actors.strict.rules.responses_shapes import RULES

_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
}


@dataclass(frozen=True, slots=True)
class _StoredResponse:
    """A stored response, with the new input items of its request.

    Attributes:
        previous: The id of the previous response, or None.
        given: The new input items, as the client sent them.
        listing: The new input items in the host's complete form.
        body: The response.
    """

    previous: str | None
    given: tuple[Json, ...]
    listing: tuple[Json, ...]
    body: Json

    @property
    def items(self) -> tuple[Json, ...]:
        return (*self.given, *self.body["output"])


@dataclass(slots=True)
class StoredConversation:
    """A stored conversation, with its items in order."""

    id: str
    metadata: Json
    items: list[Json]


class ResponsesStore:
    """The stored responses, conversations and items, by id.

    If there are more than `limit` objects of one kind, the oldest is removed.

    In addition, the store records which call directly followed which reasoning, even in responses that are not stored,
    because a client may send back such a call with only its `call_id`.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._responses: OrderedDict[str, _StoredResponse] = OrderedDict()
        self._conversations: OrderedDict[str, StoredConversation] = OrderedDict()
        self._numbered = 0
        self._items: OrderedDict[str, Json] = OrderedDict()
        self._calls: OrderedDict[str, str] = OrderedDict()

    def record_calls(self, output: Sequence[Json]) -> None:
        """Record which calls of a response directly follow reasoning."""
        for item, behind in pairwise(output):
            if item["type"] == "reasoning" and "id" in item and "call_id" in behind:
                self._calls[item["id"]] = behind["call_id"]
        while len(self._calls) > self._limit:
            self._calls.popitem(last=False)

    def are_consecutive(self, reasoning: Json, following: Json) -> bool:
        """Return True if a response contained this call directly after this reasoning."""
        return (
            following.get("call_id") is not None and self._calls.get(reasoning["id"]) == following["call_id"]
        )

    def store_response(self, request: Json, response: Json) -> None:
        """Store a response and the new items of its expanded request, unless the request has `store: false`.

        Even with `store: false`, the items are added to the request's conversation, if there is one.
        """
        named, is_stored = conversation_of(request), request.get("store") is not False
        new = request["input"][len(self.preceding_items(request) or ()) :]
        if (conversation := self._conversations.get(named or "")) is not None:
            self.add_items(conversation, [*new, *response["output"]])
        if is_stored:
            previous = request.get("previous_response_id")
            listing = tuple(map(self.complete_item, new))
            self._responses[response["id"]] = _StoredResponse(previous, tuple(new), listing, response)
        if is_stored or conversation is not None:
            self._items.update((item["id"], item) for item in response["output"] if "id" in item)
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        for held in (self._responses, self._items, self._conversations):
            while len(held) > self._limit:
                held.popitem(last=False)

    def preceding_items(self, request: Json) -> list[Json] | None:
        """Return the stored items that precede the input of a request; None if some of them are not stored."""
        if (previous := request.get("previous_response_id")) is not None:
            return self.history(previous)
        if (named := conversation_of(request)) is not None:
            found = self._conversations.get(named)
            return None if found is None else list(found.items)
        return []

    def response(self, response_id: str) -> Json | None:
        """Return a stored response, or None if it is not stored."""
        kept = self._responses.get(response_id)
        return None if kept is None else kept.body

    def input_items(self, response_id: str) -> Sequence[Json] | None:
        """Return a response's input items in the host's complete form; None if the response is not stored."""
        kept = self._responses.get(response_id)
        return None if kept is None else kept.listing

    def remove_response(self, response_id: str) -> bool:
        """Remove a response. Return True if it was stored."""
        return self._responses.pop(response_id, None) is not None

    def create_conversation(self, items: Sequence[Json], metadata: Json) -> StoredConversation:
        """Create a conversation that starts with `items`."""
        self._numbered += 1
        made = StoredConversation(f"conv_{self._numbered:032x}", metadata or {}, [])
        self._conversations[made.id] = made
        self.add_items(made, items)
        self._remove_oldest()
        return made

    def add_items(self, conversation: StoredConversation, items: Sequence[Json]) -> list[Json]:
        """Add items to a conversation, and return the items in the host's complete form."""
        added = [self.complete_item(item) for item in items]
        conversation.items += added
        self._items.update((item["id"], item) for item in added)
        return added

    def conversation(self, conversation_id: str) -> StoredConversation | None:
        """Return a stored conversation, or None if it is not stored."""
        return self._conversations.get(conversation_id)

    def remove_conversation(self, conversation_id: str) -> bool:
        """Remove a conversation, but not its items. Return True if it was stored."""
        return self._conversations.pop(conversation_id, None) is not None

    def complete_item(self, item: Json) -> Json:
        """Return an item in the host's complete form, with a type and an id.

        If the item is a message, it gets a status and a list of parts as well.
        """
        which = item.get("type") or "message"
        kept = {"type": which, **item}
        if kept.get("id") is None:
            self._numbered += 1
            kept["id"] = f"{_PREFIXES.get(which, 'item')}_{self._numbered:032x}"
        if which == "message":
            part = "output_text" if item["role"] == "assistant" else "input_text"
            more: Json = {"annotations": [], "logprobs": []} if part == "output_text" else {}
            content = item["content"]
            parts = [{"type": part, "text": content, **more}] if isinstance(content, str) else content
            kept |= {"content": parts, "status": item.get("status") or "completed"}
        return kept

    def item(self, item_id: str) -> Json | None:
        """Return a stored item, or None if it is not stored."""
        return self._items.get(item_id)

    def history(self, response_id: str) -> list[Json] | None:
        """Return all items of a chain of responses up to `response_id`; None if a response is not stored."""
        parts: list[tuple[Json, ...]] = []
        named: str | None = response_id
        while named is not None:
            kept = self._responses.get(named)
            if kept is None:
                return None
            parts.append(kept.items)
            named = kept.previous
        return [item for part in reversed(parts) for item in part]


def as_items(request_input: Json) -> Sequence[Json]:
    """Return the input of a request as a list of items. A string becomes a user message."""
    return (
        [{"type": "message", "role": "user", "content": request_input}]
        if isinstance(request_input, str)
        else request_input
    )


def expand(request: Json, store: ResponsesStore, *, accepts_unknown: bool = False) -> tuple[list[Json], bool]:
    """Return a request's complete conversation, and True if some of its references could not be resolved.

    The conversation consists of the stored earlier items and the request's input, with references replaced.

    Args:
        request: A request whose shapes are valid.
        store: The stored responses and conversations.
        accepts_unknown: True to accept unknown references, unless the request has `store: false`.

    Raises:
        RuleBroken: A reference is unknown.
    """
    previous, named = request.get("previous_response_id"), conversation_of(request)
    if previous is not None and named is not None:
        raise RULES["OAR-S24"].refuse("previous_response_id")
    before = store.preceding_items(request)
    if before is None and not accepts_unknown:
        if named is not None:
            raise RULES["OAR-S25"].refuse("conversation", id=named)
        raise RULES["OAR-S12"].refuse("previous_response_id", id=previous)
    accepts_unknown = accepts_unknown and request.get("store") is not False
    given = [*(before or ()), *as_items(request["input"])]
    items = [_resolve_reference(item, store, accepts_unknown=accepts_unknown) for item in given]
    allows_unknown_calls = (
        before is None or request.get("conversation") is not None or any(is_reference(item) for item in items)
    )
    return items, allows_unknown_calls


def conversation_of(request: Json) -> str | None:
    """Return the id of a request's conversation, or None."""
    named = request.get("conversation")
    return named.get("id") if is_object(named) else named


def _resolve_reference(item: Json, store: ResponsesStore, *, accepts_unknown: bool) -> Json:
    """Return the stored item to which a reference refers. Return any other item unchanged."""
    if not is_reference(item):
        return item
    meant = store.item(item["id"])
    if meant is None and not accepts_unknown:
        raise RULES["OAR-05"].refuse("input", id=item["id"])
    return item if meant is None else meant


def is_reference(item: Json) -> bool:
    """Return True for an item that consists only of an id and refers to a stored item."""
    which = item.get("type") or ("message" if "role" in item else "item_reference")
    return which == "item_reference" or (which == "reasoning" and not item.get("encrypted_content"))
