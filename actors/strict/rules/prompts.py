"""Convert a request body to the prompt that a provider's cache stores.

A prompt is a sequence of pieces in the provider's order: tools, system, parameters, messages. A cache mark on a piece
is not part of its text, because clients move the marks. Requests to Bedrock, and requests to Anthropic through
OpenRouter, are first converted to Anthropic's own format.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from actors.strict.rules.base import Json, dump, is_array, is_object, object_at

MINIMUM = 1024
"""The default minimum number of tokens in a cached prefix."""
DAY = 24 * 3600.0
"""The lifetime in seconds of a cache entry with a `prompt_cache_retention` of 24 hours."""
SECONDS: Mapping[str, float] = {"5m": 300, "1h": 3600}
"""The lifetime in seconds of a cache entry after its last use, by the mark's `ttl`. Automatic caches use `5m`."""
ROUTED = frozenset({"openai_chat", "openai_responses", "xai", "mistral", "kimi"})
"""Hosts on which `prompt_cache_key` selects the machine, and therefore which automatic cache is used."""
AUTOMATIC = ROUTED | {"deepseek", "gemini", "gemini_2", "vertex", "openrouter"}
"""Hosts that cache automatically. OpenRouter does so if its upstream does."""
_GROUPS = frozenset({"tool_use", "tool_result"})
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


class Piece(NamedTuple):
    """A part of a prompt after which a cached prefix may end.

    Args:
        text: The encoded text of the piece.
        group: `tool_use` for a call, `tool_result` for a result, otherwise empty. Adjacent pieces with the same `group`
            count as one piece in the search for cache entries.
        cache_lifetime: The lifetime in seconds of the cache entry that ends with this piece; None if the piece has no
            cache mark.
    """

    text: bytes
    group: str = ""
    cache_lifetime: float | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """The cacheable prompt of one request.

    Args:
        model: The model of the request.
        pieces: The pieces in the provider's order.
        marked: Whether the provider caches only at cache marks. Otherwise, its cache is automatic.
        parameters: The encoded request parameters that invalidate cached messages if they change.
        prefix: The number of pieces before the messages. Cache entries that end there do not depend on `parameters`.
        cache_key: The request's `prompt_cache_key`, which is the same in all requests of a conversation; may be empty.
        routed: Whether `cache_key` selects the machine that serves the request.
        minimum: The minimum number of tokens of a cache entry.
        lifetime: The lifetime in seconds of an automatic cache's entry after its last use.
    """

    model: str
    pieces: tuple[Piece, ...]
    marked: bool
    parameters: bytes = b""
    prefix: int = 0
    cache_key: str = ""
    routed: bool = False
    minimum: int = MINIMUM
    lifetime: float = SECONDS["5m"]


def anthropic_prompt(
    request: Json, betas: Iterable[str] = (), *, minimum: int = MINIMUM, cache_key: str = ""
) -> Prompt:
    """Return the prompt of a valid request to Anthropic Messages.

    `betas` are the values of the request's `anthropic-beta` header. For the other arguments, see `Prompt`.
    """
    tools = [_prompt_piece(tool, "") for tool in request.get("tools") or ()]
    prefix = [*tools, *(_prompt_piece(block, "") for block in _as_blocks(request.get("system") or []))]
    said = [
        _prompt_piece(block, message["role"])
        for message in request["messages"]
        for block in _as_blocks(message.get("content") or [])
    ]
    pieces = [*prefix, *said]
    if (mark := request.get("cache_control")) is not None and (
        at := _last_markable(request, len(pieces))
    ) is not None:
        pieces[at] = pieces[at]._replace(cache_lifetime=_mark_lifetime(mark))
    effort = object_at(request, "output_config").get("effort")
    thinking = request.get("thinking") or {"type": "disabled"}
    choice = request.get("tool_choice") or {"type": "auto"}
    parameters = dump([thinking, effort, choice, sorted(filter(None, betas))])
    return Prompt(
        request["model"],
        tuple(pieces),
        marked=True,
        parameters=parameters,
        prefix=len(prefix),
        cache_key=cache_key,
        minimum=minimum,
    )


def automatic_prompt(request: Json, host: str) -> Prompt:
    """Return the prompt of a request to a host with an automatic cache.

    The prompt is a single piece, because this cache has no marks.
    """
    parts = [request.get("tools"), request.get("instructions"), request.get("systemInstruction")]
    said = request.get("messages") or request.get("input") or request.get("contents") or ()
    items = [part for part in parts if part] + ([said] if isinstance(said, str) else list(said))
    text = dump(items)
    if any(mark in text for mark in _MARKS_AS_BYTES):
        text = dump(_without_marks(items))
    cache_key = request.get("prompt_cache_key") or ""
    lifetime = DAY if request.get("prompt_cache_retention") == "24h" else SECONDS["5m"]
    return Prompt(
        request["model"],
        (Piece(text),),
        marked=False,
        cache_key=cache_key,
        routed=host in ROUTED,
        lifetime=lifetime,
    )


def cache_mark(block: Json) -> Json:
    """Return the cache mark of a block. If the block itself has none, return the last mark inside it, or None."""
    inner = block.get("content")
    parts = inner if is_array(inner) else []
    marks = [part["cache_control"] for part in parts if is_object(part) and part.get("cache_control")]
    return block.get("cache_control") or (marks[-1] if marks else None)


def _prompt_piece(block: Json, role: str) -> Piece:
    mark, kind = None, block.get("type", "")
    if "cache_control" in block or is_array(block.get("content")):
        mark, block = cache_mark(block), _without_marks(block)
    group = kind if kind in _GROUPS else ""
    return Piece(role.encode() + dump(block), group, None if mark is None else _mark_lifetime(mark))


def _mark_lifetime(mark: Json) -> float:
    return SECONDS[mark.get("ttl") or "5m"]


def _as_blocks(content: Json) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _last_markable(request: Json, count: int) -> int | None:
    """Return the index of the last of `count` pieces that may have a cache mark; None if no piece may have one."""
    said = [block for message in request["messages"] for block in _as_blocks(message["content"])]
    behind = 0
    for block in reversed(said):
        behind += 1
        if block["type"] not in _UNMARKABLE and block.get("text") != "":
            return count - behind
    return count - behind - 1 if count > behind else None


def _without_marks(value: Json) -> Json:
    """Return a message, block or tool without its cache marks."""
    if is_array(value):
        return [_without_marks(item) for item in value]
    if not is_object(value):
        return value
    kept = {key: item for key, item in value.items() if key not in _MARKS}
    return kept | {"content": _without_marks(kept["content"])} if "content" in kept else kept


_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_MARKS_AS_BYTES = tuple(f'"{mark}":'.encode() for mark in _MARKS)


def to_anthropic_format(request: Json) -> Json:
    """Convert the parts of a Chat Completions request that the cache depends on to Anthropic's format."""
    system: list[Json] = []
    messages: list[Json] = []
    for message in request["messages"]:
        made = list(_convert_message(message))
        if message["role"] in ("system", "developer"):
            system += made
        elif made:
            role = "assistant" if message["role"] == "assistant" else "user"
            messages.append({"role": role, "content": made})
    kept = {key: request[key] for key in ("tools", "cache_control") if request.get(key)}
    choice = {"tool_choice": {"type": request["tool_choice"]}} if request.get("tool_choice") else {}
    thinking = {"thinking": request["reasoning"]} if request.get("reasoning") else {}
    return {"model": request["model"], "system": system, "messages": messages, **kept, **choice, **thinking}


def _convert_message(message: Json) -> Iterator[Json]:
    content = message.get("content")
    parts = _as_blocks(content) if content else []
    if message["role"] == "tool":
        yield {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": parts}
        return
    if details := message.get("reasoning_details"):
        yield {"type": "thinking", "details": details}
    yield from parts
    yield from ({"type": "tool_use", "call": call} for call in message.get("tool_calls") or ())
