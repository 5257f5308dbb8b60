"""Serve Anthropic Messages strictly on a loopback port."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

from actors.strict.catalogue import anthropic_models
from actors.strict.loopback import HttpRequest
from actors.strict.oauth import OAuth
from actors.strict.rules import anthropic
from actors.strict.rules.anthropic import profile_of
from actors.strict.rules.anthropic_threads import ThreadStore
from actors.strict.rules.base import AnthropicSettings, Json, RuleBroken, ServerRefusal, dump, refusal_of
from actors.strict.rules.prompts import Prompt, anthropic_prompt
from actors.strict.rules.reading import parse
from actors.strict.script import ScriptSource, Turn
from actors.strict.server import LoopbackServer, ServerOptions, bearer, same
from actors.strict.wire import AnthropicWire, Wire

OAUTH_BETA = "oauth-2025-04-20"
"""Value that the `anthropic-beta` header must contain with a bearer token."""


class AnthropicServer(LoopbackServer):
    """Anthropic Messages at `base_url` + `/v1/messages`, and its token count.

    `settings` names the models that exist, and the secret and the account that sign thinking. The betas of a request
    come from its `anthropic-beta` header. The server keeps the threads that requests create; a request may continue
    one by the id of its last answer. With `oauth`, the server accepts bearer tokens with the beta header
    `oauth-2025-04-20`, and no key.
    """

    dialect = "anthropic"
    _base_path = ""
    _paths = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
    _request_id_header = "request-id"

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        settings: AnthropicSettings | None = None,
        oauth: OAuth | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._settings = settings or AnthropicSettings()
        super().__init__(script, **options)
        self.oauth = oauth
        self._threads = ThreadStore(self._limits.recordings)

    def _make_wire(self, host: str) -> Wire:
        return AnthropicWire(self._settings, self.mode, host)

    def _read(self, request: HttpRequest) -> Json:
        """Return the parsed body, with the messages of a stored thread that it continues in front."""
        parsed = super()._read(request)
        try:
            return self._threads.expand(parsed)
        except (RuleBroken, TypeError, KeyError, AttributeError):  # the rules report the fault
            return parsed

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        settings = replace(self._settings, betas=_betas(request))
        count = request.path.endswith("/count_tokens")
        return refusal_of(
            lambda: anthropic.validate(request.body, self.mode, settings, count=count, threads=self._threads)
        )

    def _prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        profile = profile_of(parsed, self._settings)
        return anthropic_prompt(parsed, _betas(request), minimum=profile.cache_minimum)

    def _stored(self, request: HttpRequest) -> bytes | None:
        is_list = (request.method, request.path) == ("GET", "/v1/models")
        return dump(anthropic_models(self._settings.models)) if is_list else None

    def _denied(self, request: HttpRequest) -> ServerRefusal | None:
        if self.oauth is not None:
            return _oauth_refusal(request, self.oauth)
        if self.api_key is None:
            return None
        key = request.headers.get("x-api-key") or bearer(request)
        if not same(key, self.api_key):
            return self._wire.failure(401)
        if "anthropic-version" not in request.headers:
            return replace(self._wire.failure(400), message="anthropic-version: header is required")
        return None

    def _direct_answer(self, request: HttpRequest) -> bytes | None:
        if not request.path.endswith("/count_tokens"):
            return None
        tokens = len(request.body) // 4
        edited = self._read(request).get("context_management") is not None
        edits = {"context_management": {"original_input_tokens": tokens}} if edited else {}
        return dump({"input_tokens": tokens, **edits})

    def _parts(self, turn: Turn, request: Json, order: int, streamed: bool) -> list[bytes]:
        if request.get("thread") is not None:
            answer = parse(self._wire.response(turn, request, order))
            self._threads.keep(request, answer["id"], answer["content"])
        return super()._parts(turn, request, order, streamed)


def _betas(request: HttpRequest) -> frozenset[str]:
    return frozenset(beta.strip() for beta in request.headers.get("anthropic-beta", "").split(","))


def _oauth_refusal(request: HttpRequest, oauth: OAuth) -> ServerRefusal | None:
    """Return the refusal of a request to an account with bearer tokens, or None if it is authorised."""
    kind, message = "authentication_error", _REFUSED[oauth.state(bearer(request))]
    if not bearer(request):
        message = (
            "x-api-key header is required" if "x-api-key" not in request.headers else "invalid x-api-key"
        )
    elif OAUTH_BETA not in _betas(request):
        message = "OAuth authentication is currently not supported."
    if message is not None:
        oauth.refusals += 1
        return ServerRefusal("", 401, kind, None, None, message)
    if "anthropic-version" not in request.headers:
        return ServerRefusal(
            "", 400, "invalid_request_error", None, None, "anthropic-version: header is required"
        )
    return None


_REFUSED: Mapping[str, str | None] = {
    "valid": None,
    "unknown": "Invalid bearer token",
    "expired": "OAuth token has expired. Please obtain a new token or refresh your existing token.",
}
