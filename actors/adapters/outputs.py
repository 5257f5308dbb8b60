"""The form of an answer by a dialect's own means: a schema in the request, a tool that stands for the answer, or words.

Words are the weakest, and every model takes them: they go with the user's message (`actors.core.output`), so the
prefix before it stands. A schema of the request is better where the provider has it. A tool that stands for the answer
changes the tools, which reasoning may be bound to: it is for dialects that bind none. Whatever the means, the answer is
validated against the whole schema, so what a provider's subset cannot say costs guidance and no safety.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas import Schema, below, listed
from actors.core.concerns import OutputMeans
from actors.core.dialect import Dialect
from actors.core.jsonio import Json, JsonValue, dump, parse
from actors.core.output import OUTPUT_TOOL

NAME = "answer"
"""What a schema of the request is called."""

_UNSAID = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems maxItems
    uniqueItems minProperties maxProperties default examples title contains minContains maxContains
    $schema""".split()  # noqa: SIM905  as a list it is a page
)
"""What strict schemas may not say. The value is validated against it all the same."""
_UNSAYABLE = frozenset(
    """oneOf allOf not if then else patternProperties propertyNames dependentSchemas dependentRequired prefixItems
    unevaluatedProperties unevaluatedItems""".split()  # noqa: SIM905  likewise
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def means(settings: Settings, dialect: Dialect) -> OutputMeans:
    """Return how a model is told the form of its answer, for settings that have one."""
    rules = dialect.request
    if rules.output == "prompt" or re.fullmatch(rules.output_models, settings.model) is None:
        return "prompt"
    if rules.output == "tool":
        always = dialect.reasoning.required == "with_calls" and settings.thinking != "off"
        thinks = always or settings.thinking in ("adaptive", "manual")
        is_free = rules.forced_choice == "yes" or (rules.forced_choice == "not_when_thinking" and not thinks)
        taken = any(tool.name == OUTPUT_TOOL for tool in settings.tools)
        return "tool" if is_free and not taken and dialect.reasoning.binding != "prefix" else "prompt"
    if settings.tools and not rules.output_beside_tools:
        return "prompt"
    is_strict = rules.output_schema == "strict"
    return "prompt" if is_strict and strict(settings.output or Json(b"{}")) is None else "schema"


def asked_form(settings: Settings, dialect: Dialect) -> Settings:
    """Return settings with the form of the answer as the request says it: in no way, where words do."""
    match means(settings, dialect):
        case "schema":
            return settings
        case "tool":
            spec = ToolSpec(OUTPUT_TOOL, "Give your final answer.", settings.output or Json(b"{}"))
            alone = settings.tool_choice == "none" or not settings.tools
            choice: Literal["answer", "required"] = "answer" if alone else "required"
            return replace(settings, tools=(*settings.tools, spec), tool_choice=choice, output=None)
        case _:
            return replace(settings, output=None)


@lru_cache(maxsize=256)
def strict(schema: Json) -> Json | None:
    """Return a schema in which every object is closed, as strict providers want it; None where that changes it.

    What it may not say is left out; recursion and open objects cannot be said at all.
    """
    root = parse(schema)
    try:
        return dump(_closed(root)) if type(root) is dict and not _recursive(root) else None
    except _Unsayable:
        return None


class _Unsayable(Exception):
    """A schema that strict providers take in no form."""


def _closed(schema: JsonValue) -> JsonValue:
    if type(schema) is not dict:
        raise _Unsayable
    if _UNSAYABLE & schema.keys():
        raise _Unsayable
    made: Schema = {
        key: below(key, value, _closed)
        for key, value in schema.items()
        if key not in _UNSAID and (key != "format" or value in _FORMATS) and key != "additionalProperties"
    }
    if "object" in (schema.get("type"), *listed(schema.get("type"))):
        if "properties" not in schema or schema.get("additionalProperties", False) is not False:
            raise _Unsayable
        made["additionalProperties"] = False
    return made


def _recursive(root: Schema) -> bool:
    """Say whether a definition leads back to itself, or a reference elsewhere than to one."""
    defined = root.get("$defs")
    definitions = defined if type(defined) is dict else {}

    def loops(value: JsonValue, followed: tuple[str, ...]) -> bool:
        if type(value) is list:
            return any(loops(item, followed) for item in value)
        if type(value) is not dict:
            return False
        reference = value.get("$ref")
        if type(reference) is str:
            name = reference.removeprefix("#/$defs/")
            if name in followed or name not in definitions or len(followed) > _LONGEST:
                return True
            return loops(definitions[name], (*followed, name))
        return any(loops(item, followed) for key, item in value.items() if key != "$defs")

    return loops(root, ())


_LONGEST = 16  # references in a row


def named_schema(schema: Json) -> dict[str, str | bool | Json]:
    """Return a schema of the answer as OpenAI's wires have it: strict where every property of it is demanded."""
    closed = strict(schema)
    is_strict = closed is not None and _fully_required(closed)
    said = closed if closed is not None and is_strict else schema
    return {"name": NAME, "schema": said, "strict": is_strict}


def _fully_required(schema: Json) -> bool:
    """Say whether every object demands every property it has: OpenAI's strict mode has no others."""

    def full(value: JsonValue) -> bool:
        if type(value) is list:
            return all(map(full, value))
        if type(value) is not dict:
            return True
        properties = value.get("properties")
        names = list(properties) if type(properties) is dict else []
        return set(names) <= {str(name) for name in listed(value.get("required"))} and all(
            map(full, value.values())
        )

    return full(parse(schema))
