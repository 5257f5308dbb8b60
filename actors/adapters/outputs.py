"""Request a structured answer by a schema, an answer tool or instructions, depending on the dialect.

`actors.adapters.settings` and the session use this module. A schema in the request is the most reliable way, but not
every model and host supports it. An answer tool changes the tool list, so it is not used in dialects that bind
reasoning to that list. Instructions are the least reliable way, but every model accepts them. They are appended to the
user's message (`actors.core.turn.output`), so the cached prefix does not change. The answer is always validated against
the complete schema, even if the provider supports only a subset of JSON Schema.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.rooted import flatten_root
from actors.adapters.thinking import will_think
from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.narrow import for_model
from actors.core.models.rules import OutputMeans
from actors.core.schemas.json_schema import map_subschemas
from actors.core.settings.values import ToolChoice
from actors.core.turn.output import OUTPUT_TOOL

if TYPE_CHECKING:
    from actors.adapters.schemas.closed import SchemaSize

NAME = "answer"
"""The name of the answer's schema in a request."""

_MAX_OPTIONAL, _MAX_UNIONS = 24, 16  # Anthropic's limits for optional properties and unions (ANT-S20)
_MAX_LEVELS = 20  # levels of nesting; `schemas.gemini` cuts schemas only at deeper levels
# The limits of OpenAI's strict schemas (OAC-S13).
_MAX_OBJECTS, _MAX_PROPERTIES, _MAX_VALUES, _MAX_CHARACTERS = 10, 5_000, 250, 15_000


def output_means(settings: Settings, dialect: Dialect) -> OutputMeans:
    """Return how a request asks for a structured answer: `schema`, `tool` or `prompt`. The settings must contain an
    output schema.
    """
    rules = dialect.request
    dialect = for_model(dialect, settings.model)
    facts = dialect.model
    if "output" in settings.omitted or rules.output == "prompt":
        return "prompt"
    if rules.output == "tool":
        excluded = facts.forced_choice == "without_thinking" and will_think(settings, dialect)
        is_free = rules.forced_choice == "yes" and facts.forced_choice != "never" and not excluded
        taken = any(tool.name == OUTPUT_TOOL for tool in settings.tools)
        return "tool" if is_free and not taken and dialect.reasoning.binding != "prefix" else "prompt"
    if not facts.schema_output or (settings.tools and not rules.output_beside_tools):
        return "prompt"
    return "schema" if _is_expressible(settings.output or Json(b"{}"), rules.output_schema) else "prompt"


def _is_expressible(schema: Json, subset: Literal["any", "closed", "filled"]) -> bool:
    """Return True if a subset of JSON Schema can express `schema`, whose root must be a plain object."""
    if subset == "any":
        return True
    # Imported lazily, because few requests need it.
    from actors.adapters.schemas.closed import close_schema, measure_schema

    made = close_schema(schema) if flatten_root(schema)[0] == schema else None
    if made is None or (size := measure_schema(made)).is_recursive:
        return False
    if subset == "filled":
        return size.empty_objects == 0 and size.depth <= _MAX_LEVELS
    return size.optional <= _MAX_OPTIONAL and size.unions <= _MAX_UNIONS


def request_output(settings: Settings, dialect: Dialect) -> Settings:
    """Return settings that request the structured answer by its schema or by an answer tool.

    If neither is possible, the returned settings do not request it, and the session describes the answer in the prompt.
    """
    match output_means(settings, dialect):
        case "schema":
            return settings
        case "tool":
            spec = ToolSpec(OUTPUT_TOOL, "Give your final answer.", settings.output or Json(b"{}"))
            alone = settings.tool_choice == "none" or not settings.tools
            choice = ToolChoice(OUTPUT_TOOL) if alone else settings.tool_choice
            choice = "required" if choice == "auto" else choice
            return replace(settings, tools=(*settings.tools, spec), tool_choice=choice, output=None)
        case _:
            return replace(settings, output=None)


def named_schema(schema: Json) -> dict[str, str | bool | Json]:
    """Return the answer's schema in the format of OpenAI's APIs. `strict` is set if this does not change the schema's
    meaning.
    """
    # Imported lazily, because few requests need it.
    from actors.adapters.schemas.closed import close_schema, measure_schema

    made = close_schema(schema, require_all=True)
    if made is None or not _is_strict(measure_schema(made)):
        return {"name": NAME, "schema": _without_unanchored_patterns(schema), "strict": False}
    return {"name": NAME, "schema": made, "strict": True}


def _is_strict(size: "SchemaSize") -> bool:
    """Return True if OpenAI's strict decoding accepts a closed schema of this size."""
    is_small = size.objects <= _MAX_OBJECTS and size.properties <= _MAX_PROPERTIES
    is_short = size.values <= _MAX_VALUES and size.characters <= _MAX_CHARACTERS
    return is_small and is_short and size.indistinct_choices == 0 and size.untyped_schemas == 0


@lru_cache(maxsize=256)
def _without_unanchored_patterns(schema: Json) -> Json:
    """Return a schema without patterns that lack `^` or `$`, because no grammar can be compiled for them."""

    def strip_patterns(value: JsonValue) -> JsonValue:
        if type(value) is not dict:
            return value
        return {
            key: map_subschemas(key, inner, strip_patterns)
            for key, inner in value.items()
            if _is_anchored(key, inner)
        }

    return dump(strip_patterns(parse(schema)))


def _is_anchored(key: str, value: JsonValue) -> bool:
    is_open = type(value) is str and not (value.startswith("^") and value.endswith("$"))
    return key != "pattern" or not is_open
