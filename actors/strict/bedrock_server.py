"""Serve AWS Bedrock Converse on a loopback port, with and without streaming, and enforce its rules."""

import hmac
import re
from dataclasses import replace
from typing import Unpack
from urllib.parse import unquote

from actors.strict.credentials import AwsKey, signature_refusal
from actors.strict.loopback import HttpRequest
from actors.strict.rules import validate
from actors.strict.rules.base import Json, ServerRefusal, is_object
from actors.strict.rules.bedrock import to_vendor
from actors.strict.rules.bedrock_rules import BedrockSettings
from actors.strict.rules.prompts import Prompt, anthropic_prompt
from actors.strict.script import ScriptSource
from actors.strict.server import LoopbackServer, ServerOptions
from actors.strict.wires import Wire
from actors.strict.wires.bedrock import BedrockWire

_PATH = re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?")


class BedrockServer(LoopbackServer):
    """A strict server for Bedrock Converse at `base_url` + `/model/MODEL/converse` and `/converse-stream`.

    `settings` lists the models that exist, and contains the secret and the organisation with which reasoning is signed.
    `api_key` is the only bearer token that the server accepts, and `aws_key` the only key for signatures. If both are
    set, a request needs only one of them. A script receives the request with its `model`, and with `stream` set if the
    answer is streamed.
    """

    dialect = "bedrock"
    _base_path = ""
    _paths: frozenset[str] = frozenset()
    _request_id_header = "x-amzn-requestid"
    _stream_type = "application/vnd.amazon.eventstream"

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        settings: BedrockSettings | None = None,
        aws_key: AwsKey | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._settings = settings or BedrockSettings()
        self._aws_key = aws_key
        super().__init__(script, **options)

    def _make_encoder(self, host: str) -> Wire:
        return BedrockWire(self._settings, self.mode, host)

    def _is_routed(self, request: HttpRequest) -> bool:
        return _PATH.fullmatch(request.path) is not None

    def _parse_request(self, request: HttpRequest) -> Json:
        body, path = super()._parse_request(request), _PATH.fullmatch(request.path)
        if path is None or not is_object(body):
            return body
        return {**body, "model": unquote(path["model"]), "stream": path["stream"] is not None}

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        path = _PATH.fullmatch(request.path)
        model = unquote(path["model"]) if path else ""
        return validate(
            request.body, "bedrock", mode=self.mode, settings=replace(self._settings, model=model)
        )

    def _cache_prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        settings = replace(self._settings, model=parsed["model"])
        profile = (settings.models or {}).get(settings.model, settings.profile)
        if profile.upstream is None:
            return None
        return anthropic_prompt(to_vendor(parsed, settings), minimum=profile.upstream.cache_minimum)

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        return credential_refusal(request, self._wire, self.api_key, self._aws_key)

    def _refusal_headers(self, refusal: ServerRefusal) -> tuple[tuple[str, str], ...]:
        return (("x-amzn-errortype", f"{refusal.type}:http://internal.amazon.com/coral/com.amazon.bedrock/"),)


def credential_refusal(
    request: HttpRequest, wire: Wire, api_key: str | None, aws_key: AwsKey | None
) -> ServerRefusal | None:
    """Return a refusal unless the request has an accepted bearer token or signature."""
    if api_key is None and aws_key is None:
        return None
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if api_key is not None and kind.lower() == "bearer":
        if hmac.compare_digest(token.encode(), api_key.encode()):
            return None
        return replace(wire.status_error(403), message="Authentication failed: API Key is not valid.")
    if aws_key is not None:
        return signature_refusal(request, aws_key, "bedrock")
    return replace(wire.status_error(403), message="Missing Authentication Token")
