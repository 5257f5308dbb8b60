"""What the vendors of Chat Completions take otherwise, for the fold: keys, and a schema of Moonshot's kind."""

from collections.abc import Iterator, Mapping

from actors.core.dialect import Dialect
from actors.core.jsonio import JsonValue

_MISTRAL_TOP = frozenset(
    """frequency_penalty guardrails max_tokens messages metadata model n parallel_tool_calls prediction
    presence_penalty prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt stop
    stream temperature tool_choice tools top_p""".split()  # noqa: SIM905  as a list it is a page
)
_MISTRAL_KEYS = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
_SWITCHES = {"type": frozenset({"thinking"}), "reasoning": frozenset({"reasoning", "provider"})}
_FIELDS = {"reasoning_content", "reasoning_details"}
_TYPED = {"type", "anyOf", "oneOf", "allOf", "$ref"}


def top_keys(dialect: Dialect, usual: frozenset[str]) -> frozenset[str]:
    """Return the keys that a request may have."""
    if dialect.rules == "MIS":
        return _MISTRAL_TOP
    return usual | _SWITCHES.get(dialect.thinking_switch, frozenset())


def message_keys(dialect: Dialect, usual: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    """Return the keys that a message may have, by the roles that there are."""
    if dialect.rules == "MIS":
        return _MISTRAL_KEYS
    if dialect.thinking_carrier in _FIELDS:
        return {**usual, "assistant": usual["assistant"] | {dialect.thinking_carrier}}
    return usual


def unfit(schema: JsonValue, path: str) -> Iterator[str]:
    """Yield what Moonshot does not take in a JSON Schema, each with its place (KIM-07)."""
    if type(schema) is list:
        for index, item in enumerate(schema):
            yield from unfit(item, f"{path}[{index}]")
    if type(schema) is not dict:
        return
    reference = schema.get("$ref")
    if type(reference) is str and not reference.startswith("#/$defs/"):
        yield f"{path}.$ref: a reference outside #/$defs/"
    named = schema.get("properties")
    for name, item in named.items() if type(named) is dict else ():
        if type(item) is not dict or item.keys().isdisjoint(_TYPED):
            yield f"{path}.properties.{name}: a property without a type"
        yield from unfit(item, f"{path}.properties.{name}")
    for key in ("items", "anyOf", "oneOf", "allOf"):
        yield from unfit(schema.get(key), f"{path}.{key}")
    definitions = schema.get("$defs")
    for name, item in definitions.items() if type(definitions) is dict else ():
        yield from unfit(item, f"{path}.$defs.{name}")
