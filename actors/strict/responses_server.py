"""Serve OpenAI Responses on a loopback port and enforce its rules.

The server passes each request to `ResponsesResources` first, which serves the stored resources: responses, their input
items, and conversations. Requests to other paths go to the model.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, Unpack
from urllib.parse import parse_qs

from actors.strict.loopback import HttpRequest
from actors.strict.rules import responses, responses_items
from actors.strict.rules.base import Json, Mode, RuleBroken, ServerRefusal, dump, is_object, refusal_of
from actors.strict.rules.reading import parse
from actors.strict.rules.responses_shapes import (
    COMPACTED_KEYS,
    COUNTED_KEYS,
    KEYS,
    RULES,
    ResponsesProfile,
    ResponsesSettings,
)
from actors.strict.rules.responses_store import ResponsesStore, StoredConversation, expand
from actors.strict.script import ScriptSource, Turn
from actors.strict.server import LoopbackServer, ServerOptions
from actors.strict.wires import _CREATED, Wire, openai_models
from actors.strict.wires.responses import ResponsesWire

_ANSWER, _COUNT, _COMPACT = "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact"
_KEYS = {_ANSWER: KEYS, _COUNT: COUNTED_KEYS, _COMPACT: COMPACTED_KEYS}
_MAX_PAGE_SIZE = 100
_DEFAULT_PAGE_SIZE = 20
_RESPONSE = r"/v1/responses/(?P<response>resp_[^/]+)"
_CONVERSATION = r"/v1/conversations/(?P<conversation>[^/]+)"


class ResponsesServer(LoopbackServer):
    """A strict server for OpenAI Responses at `base_url` + `/responses`.

    The server also has endpoints that count tokens, compact conversations and store them. `settings` lists the models
    that exist, and contains the account for which reasoning is encrypted. The server stores each request and its
    answer, except with `store: false`. Later requests may refer to stored responses by id, and `/responses/ID` returns
    them. Conversations are at `/conversations`.
    """

    dialect = "openai_responses"
    _base_path = "/v1"
    _paths = frozenset(_KEYS)
    _request_id_header = "x-request-id"

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        settings: ResponsesSettings | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._settings = settings or ResponsesSettings()
        super().__init__(script, **options)
        self._store = ResponsesStore(self._limits.recordings)
        self._resources = ResponsesResources(self._store, self._settings.profile)

    def _make_encoder(self, host: str) -> Wire:
        self._writer = ResponsesWire(self._settings, host)
        return self._writer

    def _parse_request(self, request: HttpRequest) -> Json:
        """Return the parsed body, with stored objects in place of their ids."""
        parsed = super()._parse_request(request)
        if not is_object(parsed):
            return parsed
        # If a request has a prompt template, it may omit these fields, because the template supplies them.
        given: list[Json] = parsed.get("input") or []
        whole: dict[str, Json] = {"model": "unnamed", **parsed, "input": given}
        try:
            return {**whole, "input": expand(whole, self._store)[0]}
        except (RuleBroken, TypeError, KeyError, AttributeError):  # `judge` reports the invalid body later
            return whole

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        # Only OpenAI itself offers compaction.
        mode: Mode = "hosted" if request.path == _COMPACT else self.mode
        keys = _KEYS[request.path]
        return refusal_of(
            lambda: responses.validate(request.body, mode, self._settings, self._store, keys=keys)
        )

    def _direct_answer(self, request: HttpRequest) -> bytes | None:
        if request.path == _COUNT:
            return dump({"object": "response.input_tokens", "input_tokens": len(request.body) // 4})
        if request.path == _COMPACT:
            return dump(self._writer.compact(self._parse_request(request), self.received - 1))
        return None

    def _stored_resource(self, request: HttpRequest) -> bytes | ServerRefusal | None:
        if (request.method, request.path) == ("GET", "/v1/models"):
            return dump(openai_models(self._settings.models))
        try:
            return self._resources.answer(request)
        except RuleBroken as refused:
            return refused.refusal

    def _encode_turn(self, turn: Turn, request: Json, request_number: int, is_streamed: bool) -> list[bytes]:
        response = self._writer.response_json(turn, request, request_number)
        self._store.record_calls(response["output"])
        self._store.store_response(request, response)
        return super()._encode_turn(turn, request, request_number, is_streamed)


_Handler: TypeAlias = Callable[["ResponsesResources", HttpRequest, Mapping[str, str]], Json]


class ResponsesResources:
    """The HTTP endpoints for stored responses and conversations.

    Args:
        store: The stored objects.
        profile: Selects the rules for items that a client adds to a conversation.
    """

    def __init__(self, store: ResponsesStore, profile: ResponsesProfile) -> None:
        self._store = store
        self._profile = profile

    def answer(self, request: HttpRequest) -> bytes | None:
        """Return the answer to a request for a stored resource; None if no route has the request's method and path.

        Raises:
            RuleBroken: The requested object is not stored, or the requested change is not allowed.
        """
        for method, path, handle in _ROUTES:
            if method == request.method and (found := path.fullmatch(request.path)) is not None:
                return dump(handle(self, request, found.groupdict()))
        return None

    def _show_response(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        return self._find_response(path_values["response"])

    def _find_response(self, response_id: str) -> Json:
        kept = self._store.response(response_id)
        if kept is None:
            raise RULES["OAR-S16"].refuse("response_id", id=response_id)
        return kept

    def _delete_response(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        if not self._store.remove_response(path_values["response"]):
            raise RULES["OAR-S16"].refuse("response_id", id=path_values["response"])
        return {"id": path_values["response"], "object": "response", "deleted": True}

    def _cancel_response(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        kept = self._find_response(path_values["response"])
        if not kept.get("background"):
            raise RULES["OAR-S17"].refuse()
        return kept

    def _list_input(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        self._find_response(path_values["response"])
        return _list_page(self._store.input_items(path_values["response"]) or (), request.query)

    def _create_conversation(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        body = _parse_object(request)
        made = self._store.create_conversation(
            self._check_items(body.get("items") or []), body.get("metadata")
        )
        return _conversation_body(made)

    def _show_conversation(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        return _conversation_body(self._find_conversation(path_values))

    def _update_conversation(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        found = self._find_conversation(path_values)
        found.metadata = _parse_object(request).get("metadata") or {}
        return _conversation_body(found)

    def _delete_conversation(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        found = self._find_conversation(path_values)
        self._store.remove_conversation(found.id)
        return {"id": found.id, "object": "conversation.deleted", "deleted": True}

    def _list_items(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        return _list_page(self._find_conversation(path_values).items, request.query)

    def _add_items(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        found = self._find_conversation(path_values)
        added = self._store.add_items(found, self._check_items(_parse_object(request).get("items") or []))
        return _list_object(added, has_more=False)

    def _show_item(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        return self._find_item(path_values)

    def _delete_item(self, request: HttpRequest, path_values: Mapping[str, str]) -> Json:
        found, item = self._find_conversation(path_values), self._find_item(path_values)
        found.items.remove(item)
        return _conversation_body(found)

    def _find_conversation(self, path_values: Mapping[str, str]) -> StoredConversation:
        found = self._store.conversation(path_values["conversation"])
        if found is None:
            raise RULES["OAR-S25"].refuse("conversation_id", id=path_values["conversation"])
        return found

    def _find_item(self, path_values: Mapping[str, str]) -> Json:
        items = self._find_conversation(path_values).items
        found = next((item for item in items if item["id"] == path_values["item"]), None)
        if found is None:
            raise RULES["OAR-S18"].refuse("item_id", id=path_values["item"])
        return found

    def _check_items(self, new_items: Sequence[Json]) -> Sequence[Json]:
        """Check the shape of each item that a client adds to a conversation, and return the items.

        The order of the items is checked later, when a request asks for an answer in this conversation.
        """
        responses_items.check({"input": new_items, "conversation": ""}, self._profile)
        return new_items


_ROUTES: tuple[tuple[str, re.Pattern[str], _Handler], ...] = tuple(
    (method, re.compile(path), handle)
    for method, path, handle in (
        ("GET", _RESPONSE, ResponsesResources._show_response),
        ("DELETE", _RESPONSE, ResponsesResources._delete_response),
        ("POST", rf"{_RESPONSE}/cancel", ResponsesResources._cancel_response),
        ("GET", rf"{_RESPONSE}/input_items", ResponsesResources._list_input),
        ("POST", "/v1/conversations", ResponsesResources._create_conversation),
        ("GET", _CONVERSATION, ResponsesResources._show_conversation),
        ("POST", _CONVERSATION, ResponsesResources._update_conversation),
        ("DELETE", _CONVERSATION, ResponsesResources._delete_conversation),
        ("GET", rf"{_CONVERSATION}/items", ResponsesResources._list_items),
        ("POST", rf"{_CONVERSATION}/items", ResponsesResources._add_items),
        ("GET", rf"{_CONVERSATION}/items/(?P<item>[^/]+)", ResponsesResources._show_item),
        ("DELETE", rf"{_CONVERSATION}/items/(?P<item>[^/]+)", ResponsesResources._delete_item),
    )
)


def _parse_object(request: HttpRequest) -> Json:
    """Return the JSON body of a request, or an empty object if the body is empty.

    Raises:
        RuleBroken: The body is not a JSON object.
    """
    try:
        body = parse(request.body or b"{}")
    except ValueError as why:
        raise RULES["OAR-S01"].refuse(why=why) from why
    if not is_object(body):
        raise RULES["OAR-S01"].refuse(why="the body is not an object")
    return body


def _conversation_body(conversation: StoredConversation) -> Json:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": _CREATED,
        "metadata": conversation.metadata,
    }


def _list_page(items: Sequence[Json], query: str) -> Json:
    """Return one page of a list: at most `limit` items after the id `after`, latest first unless `order` is `asc`."""
    asked = {key: values[-1] for key, values in parse_qs(query).items()}
    ordered = list(items) if asked.get("order") == "asc" else list(reversed(items))
    ids = [item["id"] for item in ordered]
    begin = ids.index(asked["after"]) + 1 if asked.get("after") in ids else 0
    limit = int(asked["limit"]) if asked.get("limit", "").isdigit() else _DEFAULT_PAGE_SIZE
    end = begin + min(max(limit, 1), _MAX_PAGE_SIZE)
    return _list_object(ordered[begin:end], has_more=end < len(ordered))


def _list_object(items: Sequence[Json], *, has_more: bool) -> Json:
    ids = [item["id"] for item in items] or [""]
    return {
        "object": "list",
        "data": list(items),
        "first_id": ids[0],
        "last_id": ids[-1],
        "has_more": has_more,
    }
