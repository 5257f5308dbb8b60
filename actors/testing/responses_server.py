"""A strict loopback server that speaks OpenAI Responses."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.testing.cache import PromptCache
from actors.testing.catalogue import openai_models
from actors.testing.faults import Faults
from actors.testing.loopback import HttpRequest
from actors.testing.rules import responses
from actors.testing.rules.base import Json, Mode, RuleBroken, ServerRefusal, dumped
from actors.testing.rules.responses_rules import ResponsesProfile, ResponsesSettings
from actors.testing.rules.responses_store import ResponsesStore, expanded
from actors.testing.script import Behaviour, Script, Turn
from actors.testing.server import LoopbackServer, ServerLimits, bearer, same
from actors.testing.wires.responses import ResponsesWire

_KEPT = re.compile(r"/v1/responses/(?P<id>[^/]+)")


class ResponsesServer(LoopbackServer):
    """OpenAI Responses at `base_url` + `/responses`, and its token count.

    `models` names the models that exist and what each takes; None lets any name in, under the profile of
    `settings`, which also says for which account reasoning is encrypted. What a request asks to have stored, as it
    does unless it says `store: false`, is kept: it may be named by id later, and is there at `/responses/ID`.
    """

    dialect = "openai_responses"
    base_path = "/v1"
    paths = frozenset({"/v1/responses", "/v1/responses/input_tokens"})
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

    def read(self, request: HttpRequest) -> Json:
        """Return the parsed body; what it names by id stands in its place where it is kept."""
        parsed = super().read(request)
        try:
            return {**parsed, "input": expanded(parsed, self._store)[0]}
        except (RuleBroken, TypeError, KeyError, AttributeError):  # the rules say what is wrong with it
            return parsed

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        try:
            responses.validate(request.body, self._mode, self._settings, self._store)
        except RuleBroken as refused:
            return refused.refusal
        return None

    def denied(self, request: HttpRequest) -> ServerRefusal | None:
        if self.api_key is None or same(bearer(request), self.api_key):
            return None
        return self.wire.failure(401)

    def counted(self, request: HttpRequest) -> bytes | None:
        if not request.path.endswith("/input_tokens"):
            return None
        return dumped({"object": "response.input_tokens", "input_tokens": len(request.body) // 4})

    def looked_up(self, request: HttpRequest) -> bytes | None:
        if request.path == "/v1/models":
            return dumped(openai_models(self._settings.models))
        named = _KEPT.fullmatch(request.path)
        kept = self._store.response(named["id"]) if named else None
        return None if kept is None else dumped(kept)

    def _parts(self, turn: Turn, request: Json, order: int, streamed: bool) -> list[bytes]:
        response = self._writer.whole(turn, request, order)
        self._store.made(response["output"])
        if request.get("store") is not False:
            self._store.keep(request, response)
        return super()._parts(turn, request, order, streamed)
