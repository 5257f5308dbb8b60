"""Serve OpenAI Responses on a loopback port and enforce its rules."""

from typing import Unpack

from actors.strict.catalogue import openai_models
from actors.strict.loopback import HttpRequest
from actors.strict.responses_resources import ResponsesResources
from actors.strict.rules import responses
from actors.strict.rules.base import Json, Mode, RuleBroken, ServerRefusal, dump, is_object, refusal_of
from actors.strict.rules.responses_rules import ResponsesSettings
from actors.strict.rules.responses_shapes import COMPACTED_KEYS, COUNTED_KEYS, KEYS
from actors.strict.rules.responses_store import ResponsesStore, expand
from actors.strict.script import ScriptSource, Turn
from actors.strict.server import LoopbackServer, ServerOptions
from actors.strict.wire import Wire
from actors.strict.wires.responses import ResponsesWire

_ANSWER, _COUNT, _COMPACT = "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact"
_KEYS = {_ANSWER: KEYS, _COUNT: COUNTED_KEYS, _COMPACT: COMPACTED_KEYS}


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
        """Return the parsed body, in which ids of stored objects are replaced with the objects."""
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
