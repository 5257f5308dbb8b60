"""What the vendors of Chat Completions take otherwise, for the fold: keys, and a schema of Moonshot's kind."""

from collections.abc import Iterator, Mapping

from actors.core.check.state import shown
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
_SWITCHES = {"type": frozenset({"thinking"}), "reasoning": frozenset({"reasoning"})}
_PINS = {"provider": frozenset({"provider"})}
_FIELDS = {"reasoning_content", "reasoning_details"}
_TYPED = frozenset({"type", "anyOf", "$ref"})
_NAMED_SCHEMAS = {"properties", "patternProperties", "dependentSchemas", "$defs"}
_LISTED_SCHEMAS = {"anyOf", "oneOf", "allOf", "prefixItems"}
_ONE_SCHEMA = {"items", "contains", "not", "if", "then", "else"}


def top_keys(dialect: Dialect, usual: frozenset[str]) -> frozenset[str]:
    """Return the keys that a request may have."""
    if dialect.rules == "MIS":
        return _MISTRAL_TOP
    nothing: frozenset[str] = frozenset()
    return usual | _SWITCHES.get(dialect.thinking_switch, nothing) | _PINS.get(dialect.upstream_pin, nothing)


def message_keys(dialect: Dialect, usual: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    """Return the keys that a message may have, by the roles that there are."""
    if dialect.rules == "MIS":
        return _MISTRAL_KEYS
    if not dialect.developer_role:
        usual = {role: keys for role, keys in usual.items() if role != "developer"}
    if dialect.thinking_carrier in _FIELDS:
        return {**usual, "assistant": usual["assistant"] | {dialect.thinking_carrier}}
    return usual


def schema_faults(schema: JsonValue, path: str, *, is_root: bool = True) -> Iterator[str]:
    """Yield what Moonshot does not take in a JSON Schema, each with its place (KIM-07)."""
    if type(schema) is not dict:
        yield f"{path}: a schema is an object"
        return
    if not is_root and schema.keys().isdisjoint(_TYPED):
        yield f"{path}: a schema without a type"
    if "type" in schema and not schema.keys().isdisjoint(_TYPED - {"type"}):
        yield f"{path}: a type beside a choice or a reference"
    reference = schema.get("$ref")
    if type(reference) is str and not reference.startswith("#/$defs/"):
        yield f"{path}.$ref: a reference outside #/$defs/"
    required, members = schema.get("required"), schema.get("properties")
    known = members if type(members) is dict else {}
    for name in required if type(required) is list else ():
        if type(name) is not str or name not in known:
            yield f"{path}.required: {shown(name)} is not among the properties"
    for place, inner in _inside(schema):
        yield from schema_faults(inner, f"{path}.{place}", is_root=False)


def _inside(schema: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the schemas directly inside one, each with its place."""
    for key, value in schema.items():
        if key in _NAMED_SCHEMAS and type(value) is dict:
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        elif key in _LISTED_SCHEMAS and type(value) is list:
            yield from ((f"{key}[{at}]", item) for at, item in enumerate(value))
        elif key in _ONE_SCHEMA or (key == "additionalProperties" and type(value) is not bool):
            yield key, value
