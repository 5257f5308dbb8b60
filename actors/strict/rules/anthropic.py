"""Check requests to Anthropic's `POST /v1/messages` in the provider's order.

This module checks the body, model, required parameters, unknown keys, values, tools and system prompt, in this order.
Then follow the messages (`anthropic_messages`), the cache breakpoints, and thinking (`anthropic_thinking`).
"""

from collections.abc import Iterable, Mapping, Sequence

from actors.strict.rules import anthropic_messages, anthropic_shapes, anthropic_thinking, schemas
from actors.strict.rules.anthropic_messages import ThreadStore, assume_thread, check_name, check_text
from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.anthropic_shapes import (
    COUNTED_KEYS,
    CUSTOM_TOOL_KEYS,
    OUTPUT_KEYS,
    TOOLSETS,
    WALK,
    check_cache_mark,
    is_provider_tool,
    optional_fields,
)
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    Json,
    Mode,
    RuleBroken,
    dump,
    is_array,
    is_object,
    object_at,
)
from actors.strict.rules.model_checks import restrict_to_model
from actors.strict.rules.reading import cached_result, key_of_check, parse, unchecked_items
from actors.strict.rules.shapes import ArrayOf, Fields, Maybe, Tagged, Word

_KEYS = COUNTED_KEYS | OUTPUT_KEYS
_INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"
_BINDING_BETA = "thinking-binding-controls-2026-08-01"
_UNSUPPORTED: Mapping[str, str] = {
    "enabled": "ANT-45",
    "adaptive": "ANT-46",
    "disabled": "ANT-47",
    "between_tools": "ANT-47-between",
}
_TOOL = key_of_check("ANT tool")
_MIN_BUDGET = 1024
_MIN_TOP_P = 0.95  # the minimum `top_p` with thinking


def validate(
    body: bytes,
    mode: Mode,
    settings: AnthropicSettings,
    *,
    count: bool = False,
    threads: ThreadStore | None = None,
) -> None:
    """Check one request body.

    Args:
        body: The request body.
        mode: The mode of the server.
        settings: The settings of the server.
        count: True for a request for a token count, which has no output parameters.
        threads: The threads that the host stores; None if there is no host, so that nothing is stored.

    Raises:
        RuleBroken: At the first broken rule.
    """
    check_request(parse_request(body), mode, settings, count=count, size=len(body), threads=threads)


def check_request(
    request: dict[str, Json],
    mode: Mode,
    settings: AnthropicSettings,
    *,
    count: bool = False,
    size: int | None = None,
    threads: ThreadStore | None = None,
) -> None:
    """Check a parsed request.

    `size` is the size of the request's body in bytes, if known; for the other arguments, see `validate`.
    """
    profile = profile_of(request, settings)
    for key in ("messages",) if count else ("messages", "max_tokens"):
        if request.get(key) is None:
            raise RULES["ANT-S01"].refuse(path=key)
    WALK.allow_only(request, COUNTED_KEYS if count else _KEYS, "")
    if request.get("thread") is not None:
        request = _with_thread(request, settings, threads or ThreadStore())
    _check_values(request, profile)
    _check_thinking(request, profile, settings)
    _check_tools(request.get("tools"))
    _check_choice(request, profile)
    _check_system(request.get("system"))
    anthropic_messages.check(request["messages"], mode, profile)
    _check_media(request["messages"], profile)
    anthropic_shapes.check_images(request["messages"])
    check_breakpoints(request)
    anthropic_thinking.check(request, mode, profile, settings)
    if profile.context_tokens is not None:
        tokens = (len(dump(request)) if size is None else size) // 4
        _check_window(tokens, request.get("max_tokens") or 0, profile, profile.context_tokens)


def _with_thread(request: Json, settings: AnthropicSettings, threads: ThreadStore) -> Json:
    """Add the stored messages to a request that continues a thread. Return any other request unchanged."""
    WALK.check(request["thread"], _THREAD, "thread")
    if request["thread"]["type"] == "continue":
        WALK.required_member(request, "messages", list)
    try:
        return threads.expand(request)
    except RuleBroken as unknown:
        if settings.signatures == "trust" and unknown.refusal.rule == "ANT-S21":
            return assume_thread(request)
        raise


def _check_window(tokens: int, max_tokens: int, profile: AnthropicProfile, limit: int) -> None:
    """Refuse a request that does not fit into the context window of `limit` tokens."""
    if tokens > limit:
        raise RULES["ANT-36"].refuse(tokens=tokens, limit=limit)
    if profile.window_counts_output and tokens + max_tokens > limit:
        raise RULES["ANT-37"].refuse(tokens=tokens, asked=max_tokens, limit=limit)


def _check_media(messages: Sequence[Json], profile: AnthropicProfile) -> None:
    """Refuse a request with too many images and documents."""
    counted = [cached_result(_count_media, message) for message in messages]
    images, documents = (sum(counts) for counts in zip(*counted, strict=True))
    if profile.media is not None and images + documents > profile.media:
        raise RULES["ANT-54"].refuse(images=images, documents=documents, most=profile.media)


def _count_media(message: Json) -> tuple[int, int]:
    """Return the number of images and the number of documents in a message."""
    kinds = [block.get("type") for block in _nested_blocks(message.get("content"))]
    return kinds.count("image"), kinds.count("document")


def _nested_blocks(content: Json) -> Iterable[Json]:
    """Yield the blocks of a message, and the blocks inside its results."""
    for block in content if is_array(content) else ():
        if is_object(block):
            yield block
            yield from _nested_blocks(block.get("content"))


def parse_request(body: bytes) -> dict[str, Json]:
    """Return the JSON object of a request body.

    Raises:
        RuleBroken: The body is not strict JSON, or not an object.
    """
    try:
        request = parse(body)
    except ValueError as why:
        text, _, place = str(why).rpartition(" at ")
        surrogate = "surrogate" in text or "hex escape" in text
        told = f"no low surrogate in string: {place}" if surrogate else f"{text}: {place}"
        raise RULES["ANT-31"].refuse(why=told) from why
    whole: dict[str, Json] = WALK.require_type(request, dict, "body")
    return whole


def profile_of(request: dict[str, Json], settings: AnthropicSettings) -> AnthropicProfile:
    """Return the profile of a request's model.

    Raises:
        RuleBroken: The model is missing or does not exist.
    """
    model = request.get("model")
    if model is None:
        raise RULES["ANT-S01"].refuse(path="model")
    WALK.require_type(model, str, "model")
    if settings.models is None:
        return restrict_to_model(settings.profile, model)
    if model not in settings.models:
        raise RULES["ANT-38"].refuse(model=model)
    return settings.models[model]


def _check_values(request: dict[str, Json], profile: AnthropicProfile) -> None:
    asked = WALK.optional_member(request, "max_tokens", int)
    if asked is not None and asked < 1:
        raise RULES["ANT-S08"].refuse(path="max_tokens", limit=1)
    if asked is not None and asked > profile.max_output_tokens:
        raise RULES["ANT-35"].refuse(asked=asked, limit=profile.max_output_tokens, model=request["model"])
    _check_sampling(request, profile)
    WALK.optional_member(request, "stream", bool)
    for at, text in enumerate(WALK.optional_member(request, "stop_sequences", list) or ()):
        if not WALK.require_type(text, str, f"stop_sequences.{at}").strip():
            raise RULES["ANT-S17"].refuse()
    config: dict[str, Json] = WALK.optional_member(request, "output_config", dict) or {}
    WALK.allow_only(config, frozenset({"effort", "format", "task_budget"}), "output_config")
    effort = WALK.optional_member(config, "effort", str, "output_config")
    if effort is not None and effort not in profile.efforts:
        levels = ", ".join(sorted(profile.efforts))
        raise RULES["ANT-49" if levels else "ANT-49-none"].refuse(effort=effort, levels=levels)
    thinking: dict[str, Json] = WALK.optional_member(request, "thinking", dict) or {}
    if thinking.get("type") == "between_tools" and effort in ("xhigh", "max"):
        raise RULES["ANT-49-between"].refuse(effort=effort)
    # Before `output_config` existed, the structured outputs beta used a separate parameter for the format.
    config = {"format": request.get("output_format"), **config}
    if config["format"] is not None and not profile.schemas:
        raise RULES["ANT-S31"].refuse()
    anthropic_shapes.check_answer_schema(config)


def _check_sampling(request: dict[str, Json], profile: AnthropicProfile) -> None:
    for key in ("temperature", "top_p", "top_k"):
        if not profile.sampling and request.get(key) is not None:
            raise RULES["ANT-56"].refuse(key=key)
    for key in ("temperature", "top_p"):
        value = request.get(key)
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise RULES["ANT-S02"].refuse(path=key, kind="number")
        if value > 1:
            raise RULES["ANT-S14"].refuse(path=key, limit=1)
        if value < 0:
            raise RULES["ANT-S08"].refuse(path=key, limit=0)
    top, thinking = request.get("top_p"), request.get("thinking")
    if profile.one_sampling and None not in (top, request.get("temperature")):
        raise RULES["ANT-S15"].refuse()
    thinks = is_object(thinking) and thinking.get("type") in ("enabled", "adaptive")
    heat = request.get("temperature")
    if profile.is_known and heat not in (None, 1) and _model_thinks(request, profile):
        raise RULES["ANT-S10"].refuse()
    if top is not None and top < _MIN_TOP_P and thinks:
        raise RULES["ANT-S16"].refuse()


def _model_thinks(request: dict[str, Json], profile: AnthropicProfile) -> bool:
    """Return True if the model thinks before it answers this request."""
    kind = object_at(request, "thinking").get("type")
    return profile.thinks_by_default if kind is None else kind != "disabled"


def _check_thinking(request: dict[str, Json], profile: AnthropicProfile, settings: AnthropicSettings) -> None:
    config = request.get("thinking")
    if config is None:
        return
    WALK.check(config, _THINKING, "thinking", (profile, settings))
    if config["type"] == "enabled":
        _check_budget(request, config, is_interleaved=_INTERLEAVED_BETA in settings.betas)


def _check_thinking_type(
    config: Json, path: str, context: tuple[AnthropicProfile, AnthropicSettings]
) -> None:
    profile, settings = context
    if config["type"] not in profile.thinking:
        raise RULES[_UNSUPPORTED[config["type"]]].refuse()
    if "block_binding" in config and _BINDING_BETA not in settings.betas:
        raise RULES["ANT-50"].refuse(path=f"{path}.{config['type']}")


def _check_budget(request: dict[str, Json], config: dict[str, Json], *, is_interleaved: bool) -> None:
    """Check the token budget of thinking.

    `is_interleaved` is True if the model may think between tool calls. In this case, the budget may exceed
    `max_tokens`.
    """
    budget = WALK.required_member(config, "budget_tokens", int, "thinking.enabled")
    if budget < _MIN_BUDGET:
        raise RULES["ANT-S08"].refuse(path="thinking.enabled.budget_tokens", limit=_MIN_BUDGET)
    if "max_tokens" in request and request["max_tokens"] <= budget and not is_interleaved:
        raise RULES["ANT-S09"].refuse()
    if request.get("temperature") not in (None, 1):
        raise RULES["ANT-S10"].refuse()


def _check_tools(tools: Json) -> None:
    if tools is None:
        return
    for at, tool in unchecked_items(WALK.require_type(tools, list, "tools"), _TOOL):
        _check_tool(WALK.require_type(tool, dict, f"tools.{at}"), f"tools.{at}")
    names = [tool["name"] for tool in tools if tool.get("name") is not None]
    if len(set(names)) != len(names):
        raise RULES["ANT-09"].refuse()


def _check_tool(tool: dict[str, Json], path: str) -> None:
    which = WALK.optional_member(tool, "type", str, path) or "custom"
    if which != "custom":
        _check_provider_tool(tool, which, path)
        return
    path = f"{path}.custom"
    check_name(WALK.required_member(tool, "name", str, path), f"{path}.name")
    WALK.allow_only(tool, CUSTOM_TOOL_KEYS, path)
    WALK.optional_member(tool, "description", str, path)
    schema = WALK.required_member(tool, "input_schema", dict, path)
    WALK.check(schema, _SCHEMA, f"{path}.input_schema")
    if schema.keys() & {"oneOf", "allOf", "anyOf"}:
        raise RULES["ANT-S13"].refuse(path=f"{path}.input_schema")
    if schemas.has_odd_key(schema):
        raise RULES["ANT-57"].refuse(path=f"{path}.input_schema")
    if schemas.first_invalid_subschema(schema) is not None:
        raise RULES["ANT-S30"].refuse(path=f"{path}.input_schema")
    check_cache_mark(tool, path)


def _check_provider_tool(tool: dict[str, Json], tool_type: str, path: str) -> None:
    """Check a provider-defined tool, such as web search."""
    if not is_provider_tool(tool_type):
        tags = "'custom' and the tools of the provider, such as 'web_search_20260318'"
        raise RULES["ANT-S04"].refuse(path=path, tag=tool_type, tags=tags)
    named = TOOLSETS.get(tool_type, "name")
    if named is not None:
        WALK.required_member(tool, named, str, f"{path}.{tool_type}")
    check_cache_mark(tool, f"{path}.{tool_type}")


def _check_choice(request: dict[str, Json], profile: AnthropicProfile) -> None:
    choice = request.get("tool_choice")
    if choice is None:
        return
    WALK.check(choice, _CHOICE, "tool_choice")
    which = choice["type"]
    if not request.get("tools") and not request.get("mcp_servers"):
        raise RULES["ANT-S11"].refuse()
    if which in ("auto", "none"):
        return
    if not profile.forced_tool_choice:
        raise RULES["ANT-48"].refuse()
    if object_at(request, "thinking").get("type") == "enabled" or (
        profile.is_known and _model_thinks(request, profile)
    ):
        raise RULES["ANT-48-thinking"].refuse()
    if which == "tool":
        name = WALK.required_member(choice, "name", str, "tool_choice.tool")
        if all(tool.get("name") != name for tool in request.get("tools") or ()):
            raise RULES["ANT-S12"].refuse(name=name)


def _check_system(system: Json) -> None:
    if system is not None and not isinstance(system, str):
        WALK.check(system, _SYSTEM, "system")


def _check_system_block(block: Json, path: str, context: object) -> None:
    check_cache_mark(block, path)
    check_text(block, "system", path)


def check_marked_texts(message: dict[str, Json]) -> None:
    """Refuse a cache breakpoint on empty text anywhere in a message."""
    for block in _nested_blocks(message.get("content")):
        if (
            block.get("type") == "text"
            and block.get("cache_control") is not None
            and not block["text"].strip()
        ):
            raise RULES["ANT-33"].refuse(path="messages")


def check_breakpoints(request: dict[str, Json]) -> None:
    """Refuse more than four cache breakpoints, and a one-hour breakpoint after a five-minute breakpoint."""
    short_at, count = False, 0
    if request.get("cache_control") is not None:
        check_cache_mark(request, "")
        count = 1
    for path, mark in _cache_marks(request):
        count += 1
        if mark.get("ttl", "5m") == "5m":
            short_at = True
        elif short_at:
            raise RULES["ANT-34-ttl"].refuse(path=path)
    if count > 4:
        raise RULES["ANT-32"].refuse(count=count)


def _cache_marks(request: dict[str, Json]) -> Iterable[tuple[str, Json]]:
    """Yield (path, cache breakpoint) for each breakpoint of a request."""
    yield from _marks_with_paths(_cacheable_prefix(request))
    for at, message in enumerate(request["messages"]):
        for path, mark in cached_result(_message_marks, message):
            yield f"messages.{at}.{path}", mark


def _message_marks(message: Json) -> tuple[tuple[str, Json], ...]:
    """Return (path, cache breakpoint) for each breakpoint of a message."""
    return tuple(_marks_with_paths(_cacheable_parts(message)))


def _marks_with_paths(blocks: Iterable[tuple[str, Json]]) -> Iterable[tuple[str, Json]]:
    """Return (path, cache breakpoint) for each block that has a breakpoint, given (path, block) pairs."""
    return ((path, mark) for path, block in blocks if (mark := block.get("cache_control")) is not None)


def cacheable_blocks(request: dict[str, Json]) -> Iterable[tuple[str, dict[str, Json]]]:
    """Yield (path, block) for every tool and block that may have a cache breakpoint, in the provider's order."""
    yield from _cacheable_prefix(request)
    for at, message in enumerate(request["messages"]):
        yield from ((f"messages.{at}.{path}", part) for path, part in _cacheable_parts(message))


def _cacheable_prefix(request: dict[str, Json]) -> Iterable[tuple[str, dict[str, Json]]]:
    """Yield (path, block) for each tool, and then for each block of the system prompt."""
    for at, tool in enumerate(request.get("tools") or ()):
        yield f"tools.{at}", tool
    system = request.get("system")
    for at, block in enumerate(system if is_array(system) else ()):
        yield f"system.{at}", block


def _cacheable_parts(message: Json) -> Iterable[tuple[str, dict[str, Json]]]:
    """Yield (path, block) for each block of a message, including the blocks inside tool results."""
    content = message.get("content")
    for number, block in enumerate(content if is_array(content) else ()):
        yield f"content.{number}", block
        inner = block.get("content")
        for deep, part in enumerate(inner if is_array(inner) else ()):
            if is_object(part):
                yield f"content.{number}.content.{deep}", part


_BINDING = Maybe(dict, null=True)
_THINKING_SHAPES = {
    "adaptive": Fields(optional_fields("type display", block_binding=_BINDING)),
    "between_tools": Fields(optional_fields("type")),
    "disabled": Fields(optional_fields("type", block_binding=_BINDING)),
    "enabled": Fields(optional_fields("type budget_tokens display", block_binding=_BINDING)),
}
_THINKING = Tagged("type", _THINKING_SHAPES, tuple(_THINKING_SHAPES), _check_thinking_type)
_CHOICES = {
    "any": Fields(optional_fields("type disable_parallel_tool_use")),
    "auto": Fields(optional_fields("type disable_parallel_tool_use")),
    "none": Fields(optional_fields("type")),
    "tool": Fields(optional_fields("type name disable_parallel_tool_use")),
}
_CHOICE = Tagged("type", _CHOICES, tuple(_CHOICES))
_THREADS = {
    "create": Fields(optional_fields("type")),
    "continue": Fields(optional_fields("type", previous_message_id=str)),
}
_THREAD = Tagged("type", _THREADS, tuple(_THREADS))
_SCHEMA = Fields({"type": Word("object", reports_wrong_type=True)}, closed="open")
_SYSTEM = ArrayOf(
    Fields(
        optional_fields("cache_control citations", type=Word("text", reports_wrong_type=True), text=str),
        closed="last",
        check=_check_system_block,
    )
)
