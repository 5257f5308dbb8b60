"""Serve Anthropic Messages on a loopback port and enforce its rules."""

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
from actors.strict.server import LoopbackServer, ServerOptions, bearer_token, is_same_key
from actors.strict.wire import AnthropicWire, Wire

OAUTH_BETA = "oauth-2025-04-20"
"""The value that the `anthropic-beta` header must contain if a request has a bearer token."""


class AnthropicServer(LoopbackServer):
    """A strict server for Anthropic Messages at `base_url` + `/v1/messages`, including the endpoint for token counts.

    `settings` lists the models that exist, and contains the secret and the account with which thinking is signed. The
    betas of a request are in its `anthropic-beta` header. The server stores the threads that requests create. A later
    request can continue a thread by giving the id of the thread's last answer. With `oauth`, the server accepts only
    bearer tokens, together with the beta header `oauth-2025-04-20`.
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

    def _make_encoder(self, host: str) -> Wire:
        return AnthropicWire(self._settings, self.mode, host)

    def _parse_request(self, request: HttpRequest) -> Json:
        """Return the parsed body. If it continues a stored thread, insert the thread's messages before its own."""
        parsed = super()._parse_request(request)
        try:
            return self._threads.expand(parsed)
        except (RuleBroken, TypeError, KeyError, AttributeError):  # `judge` reports the invalid body later
            return parsed

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        settings = replace(self._settings, betas=_beta_names(request))
        count = request.path.endswith("/count_tokens")
        return refusal_of(
            lambda: anthropic.validate(request.body, self.mode, settings, count=count, threads=self._threads)
        )

    def _cache_prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        profile = profile_of(parsed, self._settings)
        return anthropic_prompt(parsed, _beta_names(request), minimum=profile.cache_minimum)

    def _stored_resource(self, request: HttpRequest) -> bytes | None:
        is_list = (request.method, request.path) == ("GET", "/v1/models")
        return dump(anthropic_models(self._settings.models)) if is_list else None

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        if self.oauth is not None:
            return _oauth_refusal(request, self.oauth)
        if self.api_key is None:
            return None
        key = request.headers.get("x-api-key") or bearer_token(request)
        if not is_same_key(key, self.api_key):
            return self._wire.status_error(401)
        if "anthropic-version" not in request.headers:
            return replace(self._wire.status_error(400), message="anthropic-version: header is required")
        return None

    def _direct_answer(self, request: HttpRequest) -> bytes | None:
        if not request.path.endswith("/count_tokens"):
            return None
        tokens = len(request.body) // 4
        edited = self._parse_request(request).get("context_management") is not None
        edits = {"context_management": {"original_input_tokens": tokens}} if edited else {}
        return dump({"input_tokens": tokens, **edits})

    def _encode_turn(self, turn: Turn, request: Json, request_number: int, is_streamed: bool) -> list[bytes]:
        if request.get("thread") is not None:
            answer = parse(self._wire.encode_response(turn, request, request_number))
            self._threads.store_answer(request, answer["id"], answer["content"])
        return super()._encode_turn(turn, request, request_number, is_streamed)


def _beta_names(request: HttpRequest) -> frozenset[str]:
    return frozenset(beta.strip() for beta in request.headers.get("anthropic-beta", "").split(","))


def _oauth_refusal(request: HttpRequest, oauth: OAuth) -> ServerRefusal | None:
    """Return a refusal unless the request has a valid bearer token."""
    kind, message = "authentication_error", _REFUSED[oauth.state(bearer_token(request))]
    if not bearer_token(request):
        message = (
            "x-api-key header is required" if "x-api-key" not in request.headers else "invalid x-api-key"
        )
    elif OAUTH_BETA not in _beta_names(request):
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
