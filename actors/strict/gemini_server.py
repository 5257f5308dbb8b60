"""Serve Google's generateContent on a loopback port, as the Gemini API or as Vertex AI, and enforce its rules."""

import hmac
import re
from dataclasses import replace
from typing import Unpack

from actors.strict.credentials import OAuth
from actors.strict.loopback import HttpRequest
from actors.strict.rules import gemini, validate
from actors.strict.rules.base import Json, RuleBroken, ServerRefusal, dump, is_object, refusal_of
from actors.strict.rules.gemini import is_continuation
from actors.strict.rules.gemini_rules import GeminiSettings
from actors.strict.rules.gemini_shape import parse_request
from actors.strict.rules.reading import cached_result
from actors.strict.script import ScriptSource
from actors.strict.server import LoopbackServer, ServerOptions, bearer_token
from actors.strict.wires import Wire, gemini_models
from actors.strict.wires.gemini import GeminiWire

_METHOD = r"models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent|countTokens)"
_API = re.compile(rf"/v1(?:alpha|beta)?/{_METHOD}")
_MODELS = re.compile(r"/v1(?:alpha|beta)?/models")
_VERTEX = re.compile(rf"/v1(?:beta1)?(?:/projects/[^/]+/locations/[^/]+)?/publishers/google/{_METHOD}")

_UNREGISTERED = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
    "form of API consumer identity to call this API."
)
_CREDENTIALS = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
_NO_PROJECT = (
    "Your application is authenticating by using local Application Default Credentials. The "
    "generativelanguage.googleapis.com API requires a quota project, which is not set by default."
)


class GeminiServer(LoopbackServer):
    """A strict server for generateContent, streamGenerateContent and countTokens. The path contains the model and the
    method.

    Models are under `/v1beta/models/`, or on Vertex AI under `/v1/projects/<any>/locations/<any>/publishers/google/`.
    `settings` lists the models that exist, and contains the account and the secret for signatures. With `oauth`, the
    server accepts only bearer tokens.
    """

    _base_path = ""
    _paths = frozenset()
    _request_id_header = "x-request-id"

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        vertex: bool = False,
        settings: GeminiSettings | None = None,
        oauth: OAuth | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self._settings = replace(settings or GeminiSettings(), vertex=vertex)
        api = "gemini" if self._settings.profile.signatures else "gemini_2"
        self.dialect: str = "vertex" if vertex else api
        super().__init__(script, **options)
        self.oauth = oauth

    def _make_encoder(self, host: str) -> Wire:
        return GeminiWire(self._settings, host)

    @property
    def endpoint(self) -> str:
        path = "/v1/projects/project-1/locations/global/publishers/google" if self._settings.vertex else ""
        return self.base_url + path

    def _is_routed(self, request: HttpRequest) -> bool:
        return self._match_route(request) is not None

    def _parse_request(self, request: HttpRequest) -> Json:
        """Return the parsed body with normalised keys, and with the `model` from the path."""
        body, route = super()._parse_request(request), self._match_route(request)
        if not is_object(body) or route is None or route["method"] == "countTokens":
            return body
        try:
            body = cached_result(parse_request, body, True, True)
        except RuleBroken:  # `judge` reports the invalid body later
            return body
        return {**body, "model": route["model"]}

    def _is_streamed(self, request: HttpRequest, parsed: Json) -> bool:
        route = self._match_route(request)
        return route is not None and route["method"] == "streamGenerateContent"

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        route = self._match_route(request)
        settings = replace(self._settings, model=route["model"] if route else "")
        if route is None or route["method"] != "countTokens":
            refused = validate(request.body, "gemini", mode=self.mode, settings=settings)
            return refused or self._invalid_continuation(request, settings)
        return refusal_of(lambda: gemini.validate_count(request.body, settings))

    def _invalid_continuation(self, request: HttpRequest, settings: GeminiSettings) -> ServerRefusal | None:
        """Return a refusal if the request's continuation token belongs to another request; otherwise return None."""
        body = self._parse_request(request)
        if not is_object(body) or "continuationToken" not in body or is_continuation(body, settings):
            return None
        return replace(
            self._wire.status_error(400), message="Continuation token is invalid.", param="continuation_token"
        )

    def _direct_answer(self, request: HttpRequest) -> bytes | None:
        route = self._match_route(request)
        if route is None or route["method"] != "countTokens":
            return None
        return dump({"totalTokens": len(request.body) // 4})

    def _stored_resource(self, request: HttpRequest) -> bytes | None:
        is_list = request.method == "GET" and _MODELS.fullmatch(request.path) and not self._settings.vertex
        return dump(gemini_models(self._settings.models)) if is_list else None

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        if self.oauth is not None:
            return self._oauth_refusal(request, self.oauth)
        if self.api_key is None:
            return None
        key = request.headers.get("x-goog-api-key") or request.headers.get("authorization", "")[7:]
        if hmac.compare_digest(key.encode(), self.api_key.encode()):
            return None
        if self._settings.vertex:
            return self._wire.status_error(401)
        return replace(
            self._wire.status_error(400),
            message="API key not valid. Please pass a valid API key.",
            param="api_key",
        )

    def _oauth_refusal(self, request: HttpRequest, oauth: OAuth) -> ServerRefusal | None:
        token, project = bearer_token(request), request.headers.get("x-goog-user-project")
        if not token and "x-goog-api-key" not in request.headers:
            refusal = replace(self._wire.status_error(403), message=_UNREGISTERED)
        elif not token or oauth.state(token) != "valid":
            refusal = replace(self._wire.status_error(401), message=_CREDENTIALS)
        elif oauth.project not in (None, project):
            refusal = replace(self._wire.status_error(403), message=_NO_PROJECT)
        else:
            return None
        oauth.refusals += 1
        return refusal

    def _match_route(self, request: HttpRequest) -> re.Match[str] | None:
        return (_VERTEX if self._settings.vertex else _API).fullmatch(request.path)
