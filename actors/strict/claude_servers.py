"""Serve Claude in Anthropic's format, as Vertex AI and Bedrock's InvokeModel API do, and enforce their rules.

    async with serve(VertexAnthropicServer(), BedrockAnthropicServer()) as (vertex, bedrock):
        ...

The servers apply the rules of `AnthropicServer`. On both platforms, a request's path contains the model, and its body
contains the API version (`actors.strict.rules.anthropic_hosts`).
"""

import re
from typing import ClassVar, Unpack
from urllib.parse import unquote

from actors.strict.anthropic_server import AnthropicServer
from actors.strict.bedrock_server import credential_refusal
from actors.strict.loopback import HttpRequest
from actors.strict.rules import anthropic_hosts
from actors.strict.rules.base import AnthropicSettings, Json, ServerRefusal, is_object, refusal_of
from actors.strict.rules.bedrock_rules import BedrockSettings
from actors.strict.script import ScriptSource
from actors.strict.server import LoopbackServer, ServerOptions
from actors.strict.sigv4 import AwsKey
from actors.strict.wire import AnthropicWire, Wire
from actors.strict.wires.bedrock import BedrockWire
from actors.strict.wires.invoke_model import InvokeModelWire


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
            **anthropic_hosts.to_anthropic_request(body, unquote(path["model"])),
            "stream": path["stream"] is not None,
        }

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        path = self._route.fullmatch(request.path)
        model = unquote(path["model"]) if path else ""
        return refusal_of(
            lambda: anthropic_hosts.validate(request.body, self.dialect, self.mode, self._settings, model)
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
