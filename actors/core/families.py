"""What a wire family can express, whatever a profile says: the fields whose values only some families can write.

A profile that comes with the project keeps to it. One that an operator writes is asked before it is used, so that
what cannot be written is a line about a field and not a fault in the middle of a session.
"""

import re
from collections.abc import Mapping

from actors.core.dialect import Dialect, Family
from actors.core.profiles import ANTHROPIC, BEDROCK, OPENAI_RESPONSES

CARRIERS: Mapping[Family, tuple[str, ...]] = {
    "openai_chat": ("none", "reasoning_content", "reasoning_details", "thinking_chunk"),
    "responses": ("none", "reasoning_item"),
    "anthropic": ("none", "anthropic_blocks"),
    "gemini": ("thought_signature",),
    "converse": ("none", "bedrock_reasoning"),
}
"""How each family can carry reasoning."""

_WRITES: Mapping[Family, dict[str, tuple[object, ...]]] = {
    "openai_chat": {
        "result_carrier": ("tool_message",),
        "result_error_flag": ("text",),
        "alternation": ("none", "fill"),
        "thinking_switch": ("none", "effort", "type", "reasoning"),
        "schema_subset": ("json_schema", "moonshot"),
    },
    "responses": {
        "result_carrier": ("item",),
        "result_error_flag": ("text",),
        "alternation": ("none", "fill"),
        "thinking_switch": ("none", "reasoning"),
        "thinking_followed": (True,),  # OAR-03
    },
    "anthropic": {"result_error_flag": ("is_error",), "thinking_switch": ("none", "anthropic")},
    "gemini": {
        "result_error_flag": ("response_error",),
        "first_roles": (frozenset({"user"}),),  # GEM-02
        "thinking_switch": ("none", "gemini", "gemini_budget"),
        "schema_subset": ("json_schema", "gemini"),
    },
    "converse": {"result_error_flag": ("status",), "thinking_switch": ("none", "anthropic")},
}
"""What each family can write, by field, where that is not what any family can."""
_OTHERWISE: dict[str, tuple[object, ...]] = {
    "result_carrier": ("user_block",),
    "alternation": ("merge_same", "fill"),
    "schema_subset": ("json_schema",),
}
"""What is written by a family that says nothing else of a field."""
_HOLDS: Mapping[Family, Mapping[str, frozenset[str]]] = {
    "openai_chat": {"result_media": frozenset(), "user_media": frozenset({"image"})},
    "responses": {"media_types": OPENAI_RESPONSES.media_types},
    "anthropic": {"media_types": ANTHROPIC.media_types, "last_roles": ANTHROPIC.last_roles},
    "converse": {"media_types": BEDROCK.media_types, "last_roles": BEDROCK.last_roles},
}
"""The most that a field can hold, where that is not what it can in any family."""
_ALONE: Mapping[str, tuple[object, Family]] = {
    "tools_required": (False, "converse"),
    "thinking_once": (False, "responses"),
}
"""Fields that have another value than this in one family alone."""
_MARKS: Mapping[Family, str] = {"openai_chat": "part", "anthropic": "block", "converse": "point"}
"""How each family marks the end of a prefix for a prompt cache, where it can."""
_DEMANDS = {
    "with_calls": ("reasoning_content", "anthropic_blocks"),
    "before_calls": ("thought_signature",),
}
_BY_VALUE = ("gemini", "converse")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})*[A-Za-z0-9+/_-]{2,4}={0,2}")


def impossible(dialect: Dialect) -> str | None:
    """Return what of a profile its family cannot express, as `field: reason`; None if there is nothing."""
    family, carrier = dialect.family, dialect.reasoning.carrier
    if (reason := _unwritten(dialect) or _unasked(dialect)) is not None:
        return reason
    if carrier not in CARRIERS[family]:
        return f"thinking_carrier: family {family} has {', '.join(map(repr, CARRIERS[family]))}"
    if not dialect.turns.drop_empty_text and family != "openai_chat":
        return f"drop_empty_text: family {family} refuses empty texts"
    if not dialect.turns.drop_empty_text and not dialect.turns.empty_answers:
        return "drop_empty_text: needs empty_answers"
    if dialect.request.stream_usage and dialect.request.keys and "stream_options" not in dialect.request.keys:
        return "stream_usage: request_keys do not have 'stream_options'"
    if dialect.media.urls and family in _BY_VALUE:
        return f"media_urls: family {family} takes media by value"
    if dialect.media.named_documents != (family == "converse"):
        return "named_documents: family converse names them, and no other"
    if dialect.turns.empty_result is not None and family not in ("openai_chat", "converse"):
        return "empty_result: has a meaning in families openai_chat and converse alone"
    if dialect.request.upstream_pin != "none" and family != "openai_chat":
        return f"upstream_pin: family {family} has no field for it"
    if dialect.reasoning.binding == "prefix" and not dialect.turns.calls_together:
        return (
            "thinking_binding: 'prefix' needs calls_together; who takes one call a message has no such prefix"
        )
    return _misplaced_demand(dialect)


def _unwritten(dialect: Dialect) -> str | None:
    """Return what no request of the family can hold."""
    family = dialect.family
    for field, written in (_OTHERWISE | _WRITES[family]).items():
        if getattr(dialect, field) not in written:
            return f"{field}: family {family} writes {' or '.join(map(_worded, written))} alone"
    for field, most in _HOLDS.get(family, {}).items():
        if beyond := getattr(dialect, field) - most:
            return f"{field}: family {family} cannot have {', '.join(map(repr, sorted(beyond)))}"
    for field, (usual, only) in _ALONE.items():
        if family != only and getattr(dialect, field) != usual:
            return f"{field}: has a meaning in family {only} alone"
    return None


def _unasked(dialect: Dialect) -> str | None:
    """Return what the family has no words for of how a prompt cache is asked for."""
    family, caching = dialect.family, dialect.caching
    if caching.marks != "none" and _MARKS.get(family) != caching.marks:
        return f"caching: family {family} has no mark {caching.marks!r}"
    if caching.marks == "part" and dialect.turns.empty_result is None:
        return "caching: marks 'part' need empty_result; a blank text takes no mark (ANT-33)"
    if caching.moving and caching.marks != "block":
        return "caching: moving needs marks 'block'"
    if caching.keyed and family not in ("openai_chat", "responses"):
        return f"caching: family {family} has no prompt_cache_key"
    if caching.keyed and dialect.request.keys and "prompt_cache_key" not in dialect.request.keys:
        return "caching: request_keys do not have 'prompt_cache_key'"
    if (caching.long == "ttl" and caching.marks == "none") or (
        caching.long == "retention" and not caching.keyed
    ):
        return f"caching: long {caching.long!r} needs {'marks' if caching.long == 'ttl' else 'keyed'}"
    return None


def _worded(value: object) -> str:
    return repr(sorted(value)) if isinstance(value, frozenset) else repr(value)


def _misplaced_demand(dialect: Dialect) -> str | None:
    required, placeholder = dialect.reasoning.required, dialect.reasoning.placeholder
    if required == "no":
        return None
    if dialect.reasoning.carrier not in _DEMANDS[required]:
        carriers = " or ".join(map(repr, _DEMANDS[required]))
        return f"thinking_required: {required!r} needs thinking_carrier {carriers}"
    if dialect.family == "anthropic" and not dialect.reasoning.first:
        return f"thinking_required: {required!r} needs thinking_first in family anthropic"
    if not placeholder.strip():
        return "thinking_placeholder: needs words where thinking_required is set"
    if required == "before_calls" and not _BASE64.fullmatch(placeholder):
        return "thinking_placeholder: must be base64 where it stands for a signature"
    return None
