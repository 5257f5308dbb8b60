"""Check the schemas of tools and structured answers in Google's generateContent.

`Schema` is one of the provider's message types. `gemini_shape` checks its field names, and this module checks which
fields are allowed for which type. JSON Schema (`responseJsonSchema`) is checked leniently: undocumented keywords are
ignored, as on the host.
"""

from collections.abc import Iterator

from actors.strict.rules.base import Json, is_array, is_object, object_at
from actors.strict.rules.gemini_rules import RULES

_FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}


def check(schema: Json, path: str, *, is_filled: bool = False) -> None:
    """Check one `Schema` and its subschemas.

    If `is_filled` is True, every object must have properties, as answer schemas require.

    Raises:
        RuleBroken: At the first field that is not allowed for its type.
    """
    arms = schema.get("anyOf") or ()
    kind = schema.get("type", "TYPE_UNSPECIFIED")
    if not arms and kind == "TYPE_UNSPECIFIED":
        raise RULES["GEM-S10"].refuse(path, path=path)
    if kind == "ARRAY" and schema.get("items") is None:
        _refuse_schema(f"{path}.items", "missing field.")
    if schema.get("items") is not None and kind != "ARRAY":
        _refuse_schema(f"{path}.items", "field predicate failed: $type == Type.ARRAY")
    if schema.get("properties") and kind != "OBJECT":
        _refuse_schema(f"{path}.properties", "only allowed for OBJECT type")
    if kind == "OBJECT" and is_filled and not schema.get("properties"):
        raise RULES["GEM-S14"].refuse(path, path=f"{path}.properties")
    _check_values(schema, kind, path)
    for at, name in enumerate(schema.get("required") or ()):
        if name not in object_at(schema, "properties"):
            _refuse_schema(f"{path}.required[{at}]", "property is not defined")
    for step, inner in _subschemas(schema):
        check(inner, f"{path}.{step}", is_filled=is_filled)


def _check_values(schema: Json, schema_type: str, path: str) -> None:
    """Check the enumeration and the format of a schema."""
    values, form = schema.get("enum") or (), schema.get("format")
    if values and schema_type != "STRING":
        _refuse_schema(f"{path}.enum", "only allowed for STRING type")
    for at, value in enumerate(values):
        if not value:
            _refuse_schema(f"{path}.enum[{at}]", "cannot be empty")
    known = _FORMATS.get(schema_type, ())
    if form and known and form not in known:
        told = " and ".join(f"'{word}'" for word in known)
        _refuse_schema(f"{path}.format", f"only {told} are supported for {schema_type} type")


def _subschemas(schema: Json) -> Iterator[tuple[str, Json]]:
    for at, arm in enumerate(schema.get("anyOf") or ()):
        yield f"any_of[{at}]", arm
    for name, inner in object_at(schema, "properties").items():
        yield f"properties[{name}]", inner
    if schema.get("items") is not None:
        yield "items", schema["items"]


def _refuse_schema(path: str, reason: str) -> None:
    raise RULES["GEM-S13"].refuse(path, path=path, why=reason)


def check_json(schema: Json, path: str) -> None:
    """Check that no schema inside a JSON Schema combines a reference with other keywords.

    Raises:
        RuleBroken: A schema has a reference and other keywords.
    """
    if is_array(schema):
        for inner in schema:
            check_json(inner, path)
    if not is_object(schema):
        return
    if isinstance(schema.get("$ref"), str) and not all(key.startswith("$") for key in schema):
        raise RULES["GEM-S19"].refuse(path, path=path.lstrip("."))
    for key, inner in schema.items():
        check_json(inner, f"{path}.{key}")
