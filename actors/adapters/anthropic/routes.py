"""The operations that take a request of Messages: Anthropic's own, and those of the clouds that serve Claude.

The bodies differ in three keys, the paths in all. `actors.adapters.anthropic.encode` writes a request for one, and
`actors.adapters.anthropic.decode` reads the framing of its streams.
"""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote as percent_encoded

from msgspec import Struct

from actors.adapters.preamble import Wire
from actors.adapters.request import Settings
from actors.core.dialects.dialect import AnthropicDialect

VERSION = "2023-06-01"


class Route(Struct, frozen=True):
    """One operation.

    Args:
        whole, streamed: Paths below the endpoint; `{model}` stands for the model's name.
        version: The value of `anthropic_version` in the body; empty where a header names the version.
        says_stream: Whether a body asks for a stream; where not, the path alone does.
        framing: How events of a stream are told apart: server-sent events, or binary frames of AWS.
    """

    whole: str
    streamed: str
    version: str = ""
    says_stream: bool = True
    framing: Literal["sse", "aws"] = "sse"

    def path(self, settings: Settings) -> str:
        """Return where a request goes, below the endpoint."""
        model = percent_encoded(settings.model, safe="@")  # Vertex AI separates a model's version by it
        return (self.streamed if settings.stream else self.whole).format(model=model)

    def opening(self, settings: Settings) -> Mapping[str, Wire]:
        """Return the keys with which a body begins."""
        return {"anthropic_version": self.version} if self.version else {"model": settings.model}

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of every request, without credentials."""
        return () if self.version else (("anthropic-version", VERSION),)


_ROUTES: Mapping[str, Route] = {
    "messages": Route("/v1/messages", "/v1/messages"),
    "raw_predict": Route(
        "/models/{model}:rawPredict", "/models/{model}:streamRawPredict", version="vertex-2023-10-16"
    ),
    "invoke_model": Route(
        "/model/{model}/invoke",
        "/model/{model}/invoke-with-response-stream",
        version="bedrock-2023-05-31",
        says_stream=False,
        framing="aws",
    ),
}


def route_of(dialect: AnthropicDialect) -> Route:
    """Return the operation that takes a dialect's requests."""
    return _ROUTES[dialect.request.route]
