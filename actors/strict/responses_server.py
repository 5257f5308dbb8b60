"""A strict loopback server that speaks OpenAI Responses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.strict.cache import PromptCache
from actors.strict.catalogue import openai_models
from actors.strict.faults import Faults
from actors.strict.loopback import HttpRequest
from actors.strict.responses_resources import ResponsesResources
from actors.strict.rules import responses
from actors.strict.rules.base import Json, Mode, RuleBroken, ServerRefusal, dumped
from actors.strict.rules.responses_rules import ResponsesProfile, ResponsesSettings
from actors.strict.rules.responses_shapes import COMPACTED_KEYS, COUNTED_KEYS, KEYS
from actors.strict.rules.responses_store import ResponsesStore, expanded
from actors.strict.script import Behaviour, Script, Turn
from actors.strict.server import LoopbackServer, ServerLimits, bearer, same
from actors.strict.wires.responses import ResponsesWire

_ANSWER, _COUNT, _COMPACT = "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact"
_KEYS = {_ANSWER: KEYS, _COUNT: COUNTED_KEYS, _COMPACT: COMPACTED_KEYS}


class ResponsesServer(LoopbackServer):
    """OpenAI Responses at `base_url` + `/responses`, its token count and its compaction, and conversations.

    `models` names the models that exist and what each takes; None lets any name in, under the profile of
    `settings`, which also says for which account reasoning is encrypted. What a request asks to have stored, as it
    does unless it says `store: false`, is kept: it may be named by id later, and is there at `/responses/ID`.
    Conversations are at `/conversations`.
    """

    dialect = "openai_responses"
    base_path = "/v1"
    paths = frozenset(_KEYS)
    request_id_header = "x-request-id"

    def __init__(
        self,
        script: Script | Sequence[Turn] | Behaviour | None = None,
        *,
        models: Mapping[str, ResponsesProfile] | None = None,
        settings: ResponsesSettings | None = None,
        mode: Mode = "strict",
        faults: Faults | None = None,
        api_key: str | None = None,
        write_bytes: int | None = None,
        host: str = "",
        limits: ServerLimits | None = None,
        cache: PromptCache | None = None,
    ) -> None:
        self._settings = settings or ResponsesSettings()
        if models is not None:
            self._settings = replace(self._settings, models=models)
        self._mode: Mode = mode
        self._writer = ResponsesWire(self._settings, host)
        super().__init__(
            Script.of(script),
            self._writer,
            faults=faults,
            api_key=api_key,
            write_bytes=write_bytes,
            limits=limits,
            cache=cache,
        )
        self._store = ResponsesStore(self._limits.recordings)
        self._resources = ResponsesResources(self._store, self._settings.profile)

    def read(self, request: HttpRequest) -> Json:
        """Return the parsed body; what it names by id stands in its place where it is kept."""
        parsed = super().read(request)
        if not isinstance(parsed, dict):
            return parsed
        # The template that a prompt names says what is missing here.
        parsed = {"model": "unnamed", **parsed, "input": parsed.get("input") or []}
        try:
            return {**parsed, "input": expanded(parsed, self._store)[0]}
        except (RuleBroken, TypeError, KeyError, AttributeError):  # the rules report the fault
            return parsed

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        mode: Mode = "hosted" if request.path == _COMPACT else self._mode  # no copy of the API compacts
        keys = _KEYS[request.path]
        try:
            responses.validate(request.body, mode, self._settings, self._store, keys=keys)
        except RuleBroken as refused:
            return refused.refusal
        return None

    def denied(self, request: HttpRequest) -> ServerRefusal | None:
        if self.api_key is None or same(bearer(request), self.api_key):
            return None
        return self.wire.failure(401)

    def direct_answer(self, request: HttpRequest) -> bytes | None:
        if request.path == _COUNT:
            return dumped({"object": "response.input_tokens", "input_tokens": len(request.body) // 4})
        if request.path == _COMPACT:
            return dumped(self._writer.compacted(self.read(request), self.received - 1))
        return None

    def stored(self, request: HttpRequest) -> bytes | ServerRefusal | None:
        if (request.method, request.path) == ("GET", "/v1/models"):
            return dumped(openai_models(self._settings.models))
        try:
            return self._resources.answer(request)
        except RuleBroken as refused:
            return refused.refusal

    def _parts(self, turn: Turn, request: Json, order: int, streamed: bool) -> list[bytes]:
        response = self._writer.whole(turn, request, order)
        self._store.made(response["output"])
        self._store.keep(request, response)
        return super()._parts(turn, request, order, streamed)
