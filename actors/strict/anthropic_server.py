"""Serve Anthropic Messages on a loopback port, as Anthropic, Vertex AI or Bedrock InvokeModel, and enforce its rules.

    async with serve(VertexAnthropicServer(), BedrockAnthropicServer()) as (vertex, bedrock):
        ...

All servers apply the rules of `AnthropicServer`. On Vertex AI and Bedrock, a request's path contains the model, and the
body contains the API version (`actors.strict.rules`).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Unpack
from urllib.parse import unquote

from actors.strict import rules
from actors.strict.bedrock_server import credential_refusal
from actors.strict.credentials import AwsKey, OAuth
from actors.strict.loopback import HttpRequest
from actors.strict.rules import anthropic
from actors.strict.rules.anthropic import profile_of
from actors.strict.rules.anthropic_messages import ThreadStore
from actors.strict.rules.base import (
    AnthropicSettings,
    Json,
    RuleBroken,
    ServerRefusal,
    dump,
    is_object,
    refusal_of,
)
from actors.strict.rules.bedrock_rules import BedrockSettings
from actors.strict.rules.prompts import Prompt, anthropic_prompt
from actors.strict.rules.reading import parse
from actors.strict.script import ScriptSource, Turn
from actors.strict.server import LoopbackServer, ServerOptions, bearer_token, is_same_key
from actors.strict.wires import AnthropicWire, Wire, anthropic_models
from actors.strict.wires.bedrock import BedrockWire, InvokeModelWire

OAUTH_BETA = "oauth-2025-04-20"
"""The value that the `anthropic-beta` header must contain if a request has a bearer token."""


class AnthropicServer(LoopbackServer):
    """A strict server for Anthropic Messages at `base_url` + `/v1/messages`, including the endpoint for token counts.

    `settings` lists the models that exist, and contains the secret and the account with which thinking is signed. The
    betas of a request are in its `anthropic-beta` header. The server stores the threads that requests create. A later
    request can continue a thread by giving the id of the thread's last answer. With `oauth`, every request needs a
    bearer token and the beta `oauth-2025-04-20`.
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
        """Return the parsed body. If the request continues a thread, the body starts with the thread's messages."""
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


class HostedClaudeServer(AnthropicServer):
    """The base class of the strict servers for Claude on a cloud platform.

    A script receives the request with its `model`, and with `stream` set if the answer is streamed.
    """

    _paths: frozenset[str] = frozenset()
    _route: ClassVar[re.Pattern[str]]

    def _is_routed(self, request: HttpRequest) -> bool:
        return self._route.fullmatch(request.path) is not None

    def _parse_request(self, request: HttpRequest) -> Json:
        body, path = super()._parse_request(request), self._route.fullmatch(request.path)
        if path is None or not is_object(body):
            return body
        return {
            **rules.to_anthropic_request(body, unquote(path["model"])),
            "stream": path["stream"] is not None,
        }

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        path = self._route.fullmatch(request.path)
        model = unquote(path["model"]) if path else ""
        return refusal_of(
            lambda: rules.validate_claude(request.body, self.dialect, self.mode, self._settings, model)
        )

    def _stored_resource(self, request: HttpRequest) -> bytes | None:
        """Return None, because both platforms list their models on other hosts."""
        return None


class VertexAnthropicServer(HostedClaudeServer):
    """A strict server for Claude on Vertex AI at `endpoint` + `/models/MODEL:rawPredict` and `:streamRawPredict`.

    `api_key` is the only access token that the server accepts.
    """

    dialect = "vertex_anthropic"
    _route = re.compile(
        r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/:]+):"
        r"(?:rawPredict|(?P<stream>streamRawPredict))"
    )

    @property
    def endpoint(self) -> str:
        return f"{self.base_url}/v1/projects/project-1/locations/global/publishers/anthropic"

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        return LoopbackServer._credential_refusal(self, request)


class BedrockAnthropicServer(HostedClaudeServer):
    """A strict server for Claude on Bedrock at `base_url` + `/model/MODEL/invoke` and `/invoke-with-response-stream`.

    `api_key` is the only bearer token that the server accepts, and `aws_key` the only key for signatures. If both are
    set, a request needs only one of them.
    """

    dialect = "bedrock_anthropic"
    _request_id_header = "x-amzn-requestid"
    _stream_type = "application/vnd.amazon.eventstream"
    _route = re.compile(r"/model/(?P<model>[^/]+)/invoke(?P<stream>-with-response-stream)?")

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        settings: AnthropicSettings | None = None,
        aws_key: AwsKey | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        super().__init__(script, settings=settings, **options)
        self._aws_key = aws_key

    def _make_encoder(self, host: str) -> Wire:
        messages = AnthropicWire(self._settings, self.mode, host)
        return InvokeModelWire(messages, BedrockWire(BedrockSettings(), self.mode))

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        return credential_refusal(request, self._wire, self.api_key, self._aws_key)

    def _refusal_headers(self, refusal: ServerRefusal) -> tuple[tuple[str, str], ...]:
        kind = self._wire.status_error(refusal.status).type
        return (("x-amzn-errortype", f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"),)
