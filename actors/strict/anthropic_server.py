"""A strict loopback server that speaks Anthropic Messages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.strict.cache import PromptCache
from actors.strict.catalogue import anthropic_models
from actors.strict.faults import Faults
from actors.strict.loopback import HttpRequest
from actors.strict.oauth import OAuth
from actors.strict.rules import anthropic
from actors.strict.rules.anthropic import profile_of
from actors.strict.rules.anthropic_threads import ThreadStore
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    Json,
    Mode,
    RuleBroken,
    ServerRefusal,
    dumped,
)
from actors.strict.rules.prompts import Prompt, anthropic_prompt
from actors.strict.rules.reading import parse
from actors.strict.script import Behaviour, Script, Turn
from actors.strict.server import LoopbackServer, ServerLimits, bearer, same
from actors.strict.wire import AnthropicWire

OAUTH_BETA = "oauth-2025-04-20"
"""What the `anthropic-beta` header must hold beside a bearer token."""


class AnthropicServer(LoopbackServer):
    """Anthropic Messages at `base_url` + `/v1/messages`, and its token count.

    `models` names the models that exist and what each takes; None lets any name in, under the profile of
    `settings`, which also says with which secret and for which account thinking is signed. The betas of a
    request come from its `anthropic-beta` header. A thread that a request creates is kept, and may be continued by the
    id of its last answer. With `oauth` it is an account without a key: bearer tokens let in
    beside the beta header `oauth-2025-04-20`, and no key does.
    """

    dialect = "anthropic"
    base_path = ""
    paths = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
    request_id_header = "request-id"

    def __init__(
        self,
        script: Script | Sequence[Turn] | Behaviour | None = None,
        *,
        models: Mapping[str, AnthropicProfile] | None = None,
        settings: AnthropicSettings | None = None,
        mode: Mode = "strict",
        faults: Faults | None = None,
        api_key: str | None = None,
        write_bytes: int | None = None,
        host: str = "",
        limits: ServerLimits | None = None,
        cache: PromptCache | None = None,
        oauth: OAuth | None = None,
    ) -> None:
        self._settings = settings or AnthropicSettings()
        if models is not None:
            self._settings = replace(self._settings, models=models)
        self._mode: Mode = mode
        super().__init__(
            Script.of(script),
            AnthropicWire(self._settings, mode, host),
            faults=faults,
            api_key=api_key,
            write_bytes=write_bytes,
            limits=limits,
            cache=cache,
        )
        self.oauth = oauth
        self._threads = ThreadStore(self._limits.recordings)

    def read(self, request: HttpRequest) -> Json:
        """Return the parsed body, behind the thread that it continues where that is kept."""
        parsed = super().read(request)
        try:
            return self._threads.continued(parsed)
        except (RuleBroken, TypeError, KeyError, AttributeError):  # the rules report the fault
            return parsed

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        settings = replace(self._settings, betas=_betas(request))
        count = request.path.endswith("/count_tokens")
        try:
            anthropic.validate(request.body, self._mode, settings, count=count, threads=self._threads)
        except RuleBroken as refused:
            return refused.refusal
        return None

    def prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        profile = profile_of(parsed, self._settings)
        return anthropic_prompt(parsed, _betas(request), minimum=profile.cache_minimum)

    def stored(self, request: HttpRequest) -> bytes | None:
        is_list = (request.method, request.path) == ("GET", "/v1/models")
        return dumped(anthropic_models(self._settings.models)) if is_list else None

    def denied(self, request: HttpRequest) -> ServerRefusal | None:
        if self.oauth is not None:
            return _unauthorised(request, self.oauth)
        if self.api_key is None:
            return None
        key = request.headers.get("x-api-key") or bearer(request)
        if not same(key, self.api_key):
            return self.wire.failure(401)
        if "anthropic-version" not in request.headers:
            return replace(self.wire.failure(400), message="anthropic-version: header is required")
        return None

    def direct_answer(self, request: HttpRequest) -> bytes | None:
        if not request.path.endswith("/count_tokens"):
            return None
        tokens = len(request.body) // 4
        edited = self.read(request).get("context_management") is not None
        edits = {"context_management": {"original_input_tokens": tokens}} if edited else {}
        return dumped({"input_tokens": tokens, **edits})

    def _parts(self, turn: Turn, request: Json, order: int, streamed: bool) -> list[bytes]:
        if request.get("thread") is not None:
            answer = parse(self.wire.response(turn, request, order))
            self._threads.keep(request, answer["id"], answer["content"])
        return super()._parts(turn, request, order, streamed)


def _betas(request: HttpRequest) -> frozenset[str]:
    return frozenset(beta.strip() for beta in request.headers.get("anthropic-beta", "").split(","))


def _unauthorised(request: HttpRequest, oauth: OAuth) -> ServerRefusal | None:
    """Return the refusal of a request to an account that is reached by bearer tokens, or None."""
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
