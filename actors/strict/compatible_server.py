"""Serve the vendors of the Chat Completions family on loopback ports, and enforce their rules.

    async with serve(MistralServer(), CompatibleServer(vendor="qwen")) as (mistral, qwen):
        ...

`CompatibleServer` serves any vendor, selected by name. The other classes are for vendors that need additional options
or have their own client library.

Plain `reasoning_content` has no signature, so the server stores a digest of it, to detect changed reasoning in later
requests. The key is a digest of the prefix: the messages of the request, and the ids of the calls in the answer. A
later request that repeats these messages and calls must repeat the reasoning unchanged. A request with a different
prefix, for example after a compaction, is not checked.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, Unpack

from actors.strict.faults import InjectedFault
from actors.strict.loopback import HttpRequest, LoopbackAnswer
from actors.strict.rules import HOSTS, validate
from actors.strict.rules.base import CompatibleSettings, Json, ServerRefusal, dump, is_object
from actors.strict.rules.host import does_model_think
from actors.strict.rules.openrouter import goes_to_anthropic
from actors.strict.rules.prompts import Prompt, anthropic_prompt, to_anthropic_format
from actors.strict.rules.reading import parse
from actors.strict.script import Call, ScriptSource, Think, Turn
from actors.strict.server import LoopbackServer, ServerOptions, bearer_token, is_same_key
from actors.strict.wires import Wire, joined_text, openai_models
from actors.strict.wires.compatible import VENDOR_FORMATS, CompatibleWire, VendorFormat

Upstreams: TypeAlias = Sequence[str] | Callable[[int, Json], str]
# Some vendors' clients and documentation disagree about `/v1`, so their servers accept paths with and without it.
_BASES: Mapping[str, tuple[str, ...]] = {
    "mistral": ("", "/v1"),
    "deepseek": ("", "/v1"),
    "openrouter": ("/api/v1",),
    "groq": ("/openai/v1",),
    "qwen": ("/compatible-mode/v1",),
    "glm": ("/api/paas/v4",),
}
_REASONING_RULES = {"kimi": "KIM-S03", "deepseek": "DSK-S03"}


class CompatibleOptions(ServerOptions, total=False):
    """The options that all servers of this family accept, in addition to `ServerOptions`.

    Args:
        settings: The models that exist. By default, every name exists and has the vendor's profile.
    """

    settings: CompatibleSettings | None


class CompatibleServer(LoopbackServer):
    """A strict server for any vendor of the Chat Completions family at `base_url` + `/chat/completions`.

    Args:
        vendor: Name of the vendor's dialect.
        settings: The models that exist. By default, every name exists and has the vendor's profile.

    Raises:
        ValueError: The vendor is unknown.
    """

    _request_id_header = "x-request-id"

    vendor: str

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        vendor: str,
        settings: CompatibleSettings | None = None,
        _vendor_format: VendorFormat | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if vendor not in HOSTS:
            raise ValueError(f"vendor={vendor!r} is unknown; use one of {', '.join(HOSTS)}")
        self.settings: CompatibleSettings = settings or CompatibleSettings()
        self.dialect = self.vendor = vendor
        bases = _BASES.get(vendor, ("/v1",))
        self._base_path, self._paths = bases[0], frozenset(f"{base}/chat/completions" for base in bases)
        self._vendor_format = _vendor_format or VENDOR_FORMATS.get(vendor, VendorFormat())
        super().__init__(script, **options)
        self._reasoning_digests = ReasoningDigests(self._limits.recordings)

    def _make_encoder(self, host: str) -> Wire:
        # The encoder receives a function, because `OpenRouterServer` replaces the settings for each request.
        self._writer = CompatibleWire(host, self.vendor, self._vendor_format, lambda: self.settings)
        return self._writer

    def judge(self, request: HttpRequest) -> ServerRefusal | None:
        refusal = validate(request.body, self.vendor, mode=self.mode, settings=self.settings)
        if refusal is None and self.mode == "strict" and self.vendor in _REASONING_RULES:
            refusal = self._changed_reasoning(parse(request.body))
        return refusal

    def _cache_prompt(self, request: HttpRequest, parsed: Json) -> Prompt | None:
        if self.vendor == "openrouter" and goes_to_anthropic(parsed, self.settings):
            cache_key = parsed.get("prompt_cache_key") or ""
            return anthropic_prompt(to_anthropic_format(parsed), cache_key=cache_key)
        return super()._cache_prompt(request, parsed)

    def _stored_resource(self, request: HttpRequest) -> bytes | None:
        listed = {path.removesuffix("/chat/completions") + "/models" for path in self._paths}
        is_list = request.method == "GET" and request.path in listed
        return dump(openai_models(self.settings.models)) if is_list else None

    def _changed_reasoning(self, request: Json) -> ServerRefusal | None:
        """Return a refusal if a request changes the reasoning of an earlier answer; otherwise return None."""
        host = HOSTS[self.vendor]
        models = self.settings.models
        profile = (models or {}).get(request["model"]) or self.settings.profile or host.profile
        at = (
            self._reasoning_digests.index_of_change(request["messages"])
            if does_model_think(request, profile)
            else None
        )
        return None if at is None else host.rules[_REASONING_RULES[self.vendor]].refuse(at=at).refusal

    def _encode_turn(self, turn: Turn, request: Json, request_number: int, is_streamed: bool) -> list[bytes]:
        thought = "".join(part.text for part in turn.parts if isinstance(part, Think))
        if turn.calls and thought and self.vendor in _REASONING_RULES:
            ids = [self._writer.call_id(turn, request, request_number, at) for at in range(len(turn.calls))]
            self._reasoning_digests.record_reasoning(request["messages"], ids, thought)
        return super()._encode_turn(turn, request, request_number, is_streamed)


class MistralServer(CompatibleServer):
    """A strict server for Mistral. It accepts paths with and without `/v1`, which Mistral's client library adds."""

    def __init__(self, script: ScriptSource = None, **options: Unpack[CompatibleOptions]) -> None:
        super().__init__(script, vendor="mistral", **options)


class KimiServer(CompatibleServer):
    """A strict server for Kimi. Call ids have the form `functions.name:index`.

    With `short_ids`, they have the form `name:index`, as on Kimi's coding endpoint.
    """

    def __init__(
        self, script: ScriptSource = None, *, short_ids: bool = False, **options: Unpack[CompatibleOptions]
    ) -> None:
        vendor_format = replace(VENDOR_FORMATS["kimi"], ids="kimi_short" if short_ids else "kimi")
        super().__init__(script, vendor="kimi", _vendor_format=vendor_format, **options)


class DeepSeekServer(CompatibleServer):
    """A strict server for DeepSeek. It accepts paths with and without `/v1`."""

    def __init__(self, script: ScriptSource = None, **options: Unpack[CompatibleOptions]) -> None:
        super().__init__(script, vendor="deepseek", **options)


class OpenRouterServer(CompatibleServer):
    """A strict server for the gateway OpenRouter, including its upstream providers.

    `upstreams` is a sequence of upstreams, one per request; the last one serves all further requests. Alternatively, it
    is a function that receives the request number and the parsed body, and returns an upstream. None selects the
    upstream in `settings`. A request may select its upstream (`provider.order` with `allow_fallbacks` false).
    """

    def __init__(
        self,
        script: ScriptSource = None,
        *,
        upstreams: Upstreams | None = None,
        **options: Unpack[CompatibleOptions],
    ) -> None:
        super().__init__(script, vendor="openrouter", **options)
        self._upstreams = upstreams or (self.settings.upstream,)

    def answer(self, request: HttpRequest) -> LoopbackAnswer:
        """Check a request by the rules of its upstream, record the exchange, and return the answer."""
        upstream = self._select_upstream(self.received, self._parse_request(request))
        self.settings: CompatibleSettings = replace(self.settings, upstream=upstream)
        return super().answer(request)

    def _select_upstream(self, request_number: int, parsed: Json) -> str:
        wanted = parsed.get("provider") if is_object(parsed) else None
        if is_object(wanted) and wanted.get("order") and wanted.get("allow_fallbacks") is False:
            return str(wanted["order"][0])
        if callable(self._upstreams):
            return self._upstreams(request_number, parsed)
        return self._upstreams[min(request_number, len(self._upstreams) - 1)]


class GroqServer(CompatibleServer):
    """A strict server for Groq.

    If the script's turn contains a malformed call or lacks a forced call, the server answers with an error.
    """

    def __init__(self, script: ScriptSource = None, **options: Unpack[CompatibleOptions]) -> None:
        super().__init__(script, vendor="groq", **options)

    def _serve_turn(
        self, request: HttpRequest, parsed: Json, fault: InjectedFault | None, request_number: int
    ) -> LoopbackAnswer:
        failed = _malformed_call_refusal(self.script.turn(parsed), parsed) if fault is None else None
        if failed is None:
            return super()._serve_turn(request, parsed, fault, request_number)
        self.script.advance()
        return self._refusal_answer(failed, request_number)


class AzureServer(CompatibleServer):
    """A strict server for Azure OpenAI at `/openai/v1`. With `deployment`, the server uses the classic path instead.

    The classic path, `/openai/deployments/DEPLOYMENT`, requires the query parameter `api-version`. The key may be in
    the header `api-key` or in a bearer token.
    """

    def __init__(
        self, script: ScriptSource = None, *, deployment: str = "", **options: Unpack[CompatibleOptions]
    ) -> None:
        super().__init__(script, vendor="azure", **options)
        self._deployment = deployment
        self._base_path = f"/openai/deployments/{deployment}" if deployment else "/openai/v1"
        self._paths = frozenset({f"{self._base_path}/chat/completions"})

    @property
    def endpoint(self) -> str:
        return f"{self.base_url}?api-version=2024-10-21" if self._deployment else self.base_url

    def _is_routed(self, request: HttpRequest) -> bool:
        has_version = re.search(r"(?:^|&)api-version=[^&]", request.query) is not None
        return super()._is_routed(request) and (has_version or not self._deployment)

    def _credential_refusal(self, request: HttpRequest) -> ServerRefusal | None:
        key = request.headers.get("api-key") or bearer_token(request)
        if self.api_key is None or is_same_key(key, self.api_key):
            return None
        return self._wire.status_error(401)


def _malformed_call_refusal(turn: Turn, request: Json) -> ServerRefusal | None:
    rules = HOSTS["groq"].rules
    declared = {tool["function"]["name"] for tool in request.get("tools") or () if "function" in tool}
    for call in turn.calls:
        if call.name not in declared or not _has_object_arguments(call):
            text = dump({"name": call.name, "arguments": call.raw or dict(call.arguments)}).decode()
            return replace(rules["GRQ-01"].refuse().refusal, detail={"failed_generation": text})
    if request.get("tool_choice") == "required" and not turn.calls:
        return replace(rules["GRQ-02"].refuse().refusal, detail={"failed_generation": joined_text(turn)})
    return None


def _has_object_arguments(call: Call) -> bool:
    try:
        return call.raw is None or is_object(parse(call.raw.encode()))
    except ValueError:
        return False


class ReasoningDigests:
    """Digests of the reasoning in earlier answers, by prefix. If there are more than `limit` prefixes, the oldest is
    removed with its digests.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[bytes, set[bytes]] = OrderedDict()

    def record_reasoning(self, messages: Iterable[Json], call_ids: Iterable[str], reasoning: str) -> None:
        """Record the reasoning of an answer to `messages` that contains the calls `call_ids`."""
        prefix = hashlib.sha256()
        for message in messages:
            prefix.update(dump(message))
        prefix.update(dump(list(call_ids)))
        self._known.setdefault(prefix.digest(), set()).add(_digest(reasoning))
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

    def index_of_change(self, messages: Iterable[Json]) -> int | None:
        """Return the index of the first message with calls whose reasoning was changed; None if there is none."""
        prefix = hashlib.sha256()
        for at, message in enumerate(messages):
            if calls := message.get("tool_calls"):
                here = prefix.copy()
                here.update(dump([call["id"] for call in calls]))
                known = self._known.get(here.digest())
                if known is not None and _digest(message.get("reasoning_content") or "") not in known:
                    return at
            prefix.update(dump(message))
        return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
