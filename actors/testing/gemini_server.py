"""A strict loopback server that speaks Google's generateContent, as the Gemini API or as Vertex AI."""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.testing.faults import Faults
from actors.testing.loopback import HttpRequest
from actors.testing.rules import validate
from actors.testing.rules.base import Json, Mode, Refusal, Refused
from actors.testing.rules.gemini_rules import GeminiProfile, GeminiSettings
from actors.testing.rules.gemini_shape import shaped
from actors.testing.script import Behaviour, Script, Turn
from actors.testing.server import Limits, LoopbackServer
from actors.testing.wires.gemini import GeminiWire

_METHOD = r"models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)"
_API = re.compile(rf"/v1(?:alpha|beta)?/{_METHOD}")
_VERTEX = re.compile(rf"/v1(?:beta1)?(?:/projects/[^/]+/locations/[^/]+)?/publishers/google/{_METHOD}")


class GeminiServer(LoopbackServer):
    """generateContent and streamGenerateContent: the model and the method are in the path.

    Models are under `/v1beta/models/`, on Vertex AI under `/v1/projects/<any>/locations/<any>/publishers/google/`.
    `models` names the models that exist and what each takes; None lets any name in, under the profile of
    `settings`, which also says for which account and with which secret signatures are made.
    """

    base_path = ""
    paths = frozenset()
    request_id_header = "x-request-id"

    def __init__(
        self,
        script: Script | Sequence[Turn] | Behaviour | None = None,
        *,
        vertex: bool = False,
        models: Mapping[str, GeminiProfile] | None = None,
        settings: GeminiSettings | None = None,
        mode: Mode = "strict",
        faults: Faults | None = None,
        api_key: str | None = None,
        write_bytes: int | None = None,
        host: str = "",
        limits: Limits | None = None,
    ) -> None:
        self._settings = replace(settings or GeminiSettings(), vertex=vertex)
        if models is not None:
            self._settings = replace(self._settings, models=models)
        api = "gemini" if self._settings.profile.signatures else "gemini_2"
        self.dialect = "vertex" if vertex else api
        self._mode: Mode = mode
        super().__init__(
            Script.of(script),
            GeminiWire(self._settings, host),
            faults=faults,
            api_key=api_key,
            write_bytes=write_bytes,
            limits=limits,
        )

    @property
    def endpoint(self) -> str:
        path = "/v1/projects/project-1/locations/global/publishers/google" if self._settings.vertex else ""
        return self.base_url + path

    def routed(self, request: HttpRequest) -> bool:
        return self._route(request) is not None

    def read(self, request: HttpRequest) -> Json:
        """Return the parsed body in one spelling, with the `model` of the path in it."""
        body, route = super().read(request), self._route(request)
        if not isinstance(body, dict) or route is None:
            return body
        try:
            body = shaped(body, ids=True)
        except Refused:  # the rules say what is wrong with it
            return body
        return {**body, "model": route["model"]}

    def streams(self, request: HttpRequest, parsed: Json) -> bool:
        route = self._route(request)
        return route is not None and route["method"] == "streamGenerateContent"

    def judge(self, request: HttpRequest) -> Refusal | None:
        route = self._route(request)
        settings = replace(self._settings, model=route["model"] if route else "")
        return validate(request.body, "gemini", mode=self._mode, settings=settings)

    def denied(self, request: HttpRequest) -> Refusal | None:
        if self.api_key is None:
            return None
        key = request.headers.get("x-goog-api-key") or request.headers.get("authorization", "")[7:]
        if hmac.compare_digest(key.encode(), self.api_key.encode()):
            return None
        if self._settings.vertex:
            return self.wire.failure(401)
        return replace(
            self.wire.failure(400), message="API key not valid. Please pass a valid API key.", param="api_key"
        )

    def _route(self, request: HttpRequest) -> re.Match[str] | None:
        return (_VERTEX if self._settings.vertex else _API).fullmatch(request.path)
