"""OpenAI Responses: what a host keeps of the responses it was asked to store, and what may so be named by id.

A request may name a whole conversation by its last response (`previous_response_id`) or one item of it: by an
`item_reference`, or by reasoning that is nothing but its id. `expanded` puts in their place what they stand for, so
that rules, script and stand-in encryption see the conversation as the model does.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from actors.testing.rules.base import Json
from actors.testing.rules.responses_rules import RULES


@dataclass(frozen=True, slots=True)
class _StoredItem:
    previous: str | None
    items: tuple[Json, ...]
    body: Json


class ResponsesStore:
    """Responses and their items, by id. Beyond `limit` of each the oldest is forgotten.

    What call was made behind which reasoning is known of every response, kept or not: clients send reasoning with its
    id, or by it, and the call behind it with nothing but its `call_id`.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._responses: OrderedDict[str, _StoredItem] = OrderedDict()
        self._items: OrderedDict[str, Json] = OrderedDict()
        self._calls: OrderedDict[str, str] = OrderedDict()

    def made(self, output: Sequence[Json]) -> None:
        """Take note of the calls of a response that were made directly behind reasoning."""
        for item, behind in pairwise(output):
            if item["type"] == "reasoning" and "id" in item and "call_id" in behind:
                self._calls[item["id"]] = behind["call_id"]
        while len(self._calls) > self._limit:
            self._calls.popitem(last=False)

    def made_together(self, reasoning: Json, behind: Json) -> bool:
        """Say whether a call is the one that was made behind this reasoning."""
        return behind.get("call_id") is not None and self._calls.get(reasoning["id"]) == behind["call_id"]

    def keep(self, request: Json, response: Json) -> None:
        """Keep a response, and what is new in the request that it answers, whose input is expanded."""
        previous = request.get("previous_response_id")
        known = len((previous and self.conversation(previous)) or ())
        new = (*request["input"][known:], *response["output"])
        kept = _StoredItem(previous, new, response)
        self._responses[response["id"]] = kept
        self._items.update((item["id"], item) for item in response["output"] if "id" in item)
        for held in (self._responses, self._items):
            while len(held) > self._limit:
                held.popitem(last=False)

    def response(self, response_id: str) -> Json | None:
        """Return a kept response, None if there is none of this id."""
        kept = self._responses.get(response_id)
        return None if kept is None else kept.body

    def item(self, item_id: str) -> Json | None:
        """Return a kept item, None if there is none of this id."""
        return self._items.get(item_id)

    def conversation(self, response_id: str) -> list[Json] | None:
        """Return all items up to the end of a response; None if some part of the chain is not kept."""
        parts: list[tuple[Json, ...]] = []
        named: str | None = response_id
        while named is not None:
            kept = self._responses.get(named)
            if kept is None:
                return None
            parts.append(kept.items)
            named = kept.previous
        return [item for part in reversed(parts) for item in part]


def listed(given: Json) -> Sequence[Json]:
    """Return the input of a request as items: a text is a message of the user."""
    return [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given


def expanded(request: Json, store: ResponsesStore, *, trusts: bool = False) -> tuple[list[Json], bool]:
    """Return the items that a request stands for, those before it included, and whether some of them are unknown.

    Args:
        request: A request whose shapes are right.
        trusts: Take what is not kept as kept elsewhere, unless the request says that nothing is (`store: false`).

    Raises:
        RuleBroken: The request names something that is not kept.
    """
    before: list[Json] | None = []
    if (previous := request.get("previous_response_id")) is not None:
        before = store.conversation(previous)
    if before is None and not trusts:
        raise RULES["OAR-S12"].refused("previous_response_id", id=previous)
    trusts = trusts and request.get("store") is not False
    given = [*(before or ()), *listed(request["input"])]
    items = [_resolved(item, store, trusts=trusts) for item in given]
    is_open = (
        before is None or request.get("conversation") is not None or any(is_reference(item) for item in items)
    )
    return items, is_open


def _resolved(item: Json, store: ResponsesStore, *, trusts: bool) -> Json:
    if not is_reference(item):
        return item
    meant = store.item(item["id"])
    if meant is None and not trusts:
        raise RULES["OAR-05"].refused("input", id=item["id"])
    return item if meant is None else meant


def is_reference(item: Json) -> bool:
    """Return True for an item that is looked up by its id because it holds nothing else. A whole item never is."""
    which = item.get("type") or ("message" if "role" in item else "item_reference")
    return which == "item_reference" or (which == "reasoning" and not item.get("encrypted_content"))
