"""Check a tool call's arguments against the tool's JSON Schema, before the tool runs.

In:  an untrusted schema, and arguments that a model wrote.
Out: the missing and invalid arguments as a `tool_error` value, with descriptions for the model.

A schema cannot reach the network or a file, because references outside the schema are rejected. A schema cannot cause
backtracking, because only the linear regex engine runs; patterns with a lookaround or a backreference are left to the
tool. References cannot make a schema grow without bound: its size, its patterns, and its cost with expanded references
are measured before it is compiled. The errors under a recursive schema are listed only if the work stays within the
limit in `json_schema`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from actors.core.data.jsonio import JsonRefused, JsonValue, dump, parse, sanitise
from actors.core.schemas.json_schema import (
    SchemaCost,
    is_schema,
    patterns_of,
    schema_nodes,
    subschema_entries,
    without_patterns,
)
from actors.errors import ToolDefinitionError, nearest

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 48
MAX_SUBSCHEMAS = 10_000
MAX_PATTERNS = 256
MAX_PATTERN = 4096  # maximum characters of one regular expression
MAX_ERRORS = 16

_EXCERPT = 80  # maximum characters of an invalid value in a message to the model
_NAMED = 200  # maximum characters of a path, a name or a description of a valid value
# maximum number and length of the field names with which an unknown name is compared
_FIELDS, _FIELD = (
    200,
    64,
)
_PATTERN_BYTES = 256 * 1024
_TOO_DEEP = "arguments that satisfy the schema (they are nested too deeply to list the errors)"
_ALTERNATIVES = frozenset({"$ref", "allOf", "anyOf", "oneOf"})


class ArgumentError(Struct, frozen=True):
    """A missing or invalid argument of a tool call.

    Args:
        path: The path of the value, such as `stops[2].city`; empty for the complete arguments.
        expected: A description of a valid value.
        value: The beginning of the value's JSON; empty if the value is missing.
        is_missing: True for a required field that is missing.
    """

    path: str
    expected: str
    value: str = ""
    is_missing: bool = False


class ArgumentCheck:
    """A compiled schema. Several threads may use it at the same time."""

    def __init__(self, validator: "Validator", cost: SchemaCost, schema: JsonValue) -> None:
        self._validator = validator
        self._cost = cost
        self._schema = schema

    def errors(self, arguments: JsonValue) -> tuple[ArgumentError, ...]:
        """Return at most `MAX_ERRORS` errors, sorted by path. An empty result means that the arguments are valid.

        If listing the errors would take too long, the result is a single error that says so.
        """
        try:
            if self._validator.is_valid(arguments):
                return ()
            if not self._cost.can_explain(arguments):
                return (ArgumentError("", _TOO_DEEP, _excerpt(arguments)),)
            faults = islice(self._validator.iter_errors(arguments), MAX_ERRORS * 4)
            found = [error for fault in faults for error in _describe_fault(fault, self._schema)]
        except ValueError as error:  # the value has no JSON form, which is impossible for parsed arguments
            found = [ArgumentError("", "arguments that are valid JSON", _clip(str(error), _EXCERPT))]
        found.sort(key=lambda error: (error.path, not error.is_missing, error.expected, error.value))
        return tuple(found[:MAX_ERRORS])

    def is_valid(self, value: JsonValue) -> bool:
        """Return True if a value conforms to the schema."""
        return self._validator.is_valid(value)

    def validation_errors(self, value: JsonValue) -> "Iterable[ValidationError]":
        """Return an iterator over the validator's own errors for a value.

        The result is empty if listing the errors would take too long.
        """
        return self._validator.iter_errors(value) if self._cost.can_explain(value) else ()


def compile_schema(
    schema: Mapping[str, JsonValue], *, tool: str, every_pattern: bool = False
) -> ArgumentCheck:
    """Compile a tool's schema for checking arguments.

    Args:
        schema: The JSON Schema. It is copied, so later changes have no effect.
        tool: The tool's name, for error messages.
        every_pattern: True to reject patterns that need a backtracking engine (with a lookaround or a backreference).
            If False, these patterns are not checked, and the tool has to check them.

    Raises:
        ToolDefinitionError: The schema is not for an object, not self-contained, too large, deep or costly, or has a
            pattern that is too long or invalid.
    """
    named = repr(tool)[:_EXCERPT]  # like the schema, the name may be untrusted and long
    if not isinstance(schema, Mapping):
        raise ToolDefinitionError(
            f"Tool {named} has an unusable schema: it must be an object, not {type(schema).__name__}"
        )
    try:  # a strict, bounded copy, so that later changes of the schema have no effect
        plain: Any = parse(dump(dict(schema)), max_bytes=MAX_SCHEMA_BYTES, max_depth=MAX_SCHEMA_DEPTH)
        cost = SchemaCost(plain)
        if reason := _unusable_reason(plain) or cost.why_too_costly():
            raise ValueError(reason)
        return ArgumentCheck(_make_validator(plain, every_pattern=every_pattern), cost, plain)
    except (ValueError, TypeError) as error:
        reason = printable(_clip(str(error).partition("\n")[0], 2 * _NAMED))
        raise ToolDefinitionError(f"Tool {named} has an unusable schema: {reason}") from None


def _make_validator(
    schema: dict[str, Any], *, every_pattern: bool
) -> "Validator":  # Any: `JsonValue` would need casts
    # imported here, because most processes need no validator when they start
    from jsonschema_rs import FancyRegexOptions, RegexOptions, validator_for

    linear = RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=4 * _PATTERN_BYTES)
    backtracking = FancyRegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=4 * _PATTERN_BYTES)

    def can_compile(pattern: str, engine: RegexOptions | FancyRegexOptions) -> bool:
        try:
            validator_for({"pattern": pattern}, pattern_options=engine)
        except ValueError:
            return False
        return True

    try:
        return validator_for(schema, retriever=_deny_reference, pattern_options=linear)
    except ValueError:
        patterns = {pattern for node in schema_nodes(schema) for pattern in patterns_of(node)}
        unchecked = {
            pattern
            for pattern in patterns
            if not can_compile(pattern, linear) and can_compile(pattern, backtracking)
        }
        if every_pattern or not unchecked:
            raise
    weaker = without_patterns(schema, frozenset(unchecked))
    return validator_for(weaker, retriever=_deny_reference, pattern_options=linear)


def printable(text: str) -> str:
    """Return a string with its control characters escaped, so that it is safe for terminals and logs."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def tool_error(tool: str, errors: Sequence[ArgumentError], raw: str | None = None) -> dict[str, JsonValue]:
    """Return the `tool_error` value that the model receives as the result of a call with invalid arguments.

    If `errors` is empty, the arguments are not a JSON object, and the value quotes the beginning of their text, `raw`.
    """
    name = _clip(tool, _NAMED)
    if not errors:
        wrong = ArgumentError("", "one JSON object", _clip(raw or "", _EXCERPT))
        message = f"The arguments of {name} are not one JSON object. Call it again with valid JSON arguments."
        return _tool_error("malformed_arguments", name, message, [wrong])
    missing = ", ".join(error.path for error in errors if error.is_missing)
    parts = [f"missing: {missing}"] if missing else []
    parts += [
        f"{error.path or 'arguments'}: expected {error.expected}, got {error.value}"
        for error in errors
        if not error.is_missing
    ]
    message = f"{name} was not run. {'; '.join(parts)}. Call it again with corrected arguments."
    return _tool_error("invalid_arguments", name, message, errors)


def unknown_tool_error(tool: str, known: Iterable[str]) -> dict[str, JsonValue]:
    """Return the `tool_error` value for a call of an unknown tool.

    Its message suggests a similar name, or lists the known tools.
    """
    name, names = _clip(tool, _NAMED), list(known)
    close = nearest(name, names)
    hint = f" Did you mean {close}?" if close else f" Tools: {', '.join(names[:MAX_ERRORS]) or 'none'}."
    return _tool_error("unknown_tool", name, f"There is no tool {name}.{_clip(hint, 1000)}")


def _tool_error(
    kind: str, tool: str, message: str, errors: Sequence[ArgumentError] = ()
) -> dict[str, JsonValue]:
    wrong = [error for error in errors if not error.is_missing]
    value: dict[str, JsonValue] = {
        "kind": kind,
        "tool": tool,
        "missing": [error.path for error in errors if error.is_missing],
        "wrong": [{"path": error.path, "expected": error.expected, "got": error.value} for error in wrong],
        "message": _clip(message, 2000),
    }
    return {"tool_error": value}


def _unusable_reason(schema: dict[str, Any]) -> str | None:  # Any: `JsonValue` would need casts
    """Return the reason why a schema cannot be a tool's schema, or None."""
    # a root with alternatives needs no type, because the providers' errors about alternatives are more precise
    untyped = "object" if not _ALTERNATIVES.isdisjoint(schema) else None
    if (kind := schema.get("type", untyped)) != "object":
        return f"its type is {kind!r}, but providers accept only 'object'"
    if (found := _invalid_subschema(schema)) is not None:
        place, value = found
        return f"'{place}' is {_excerpt(value)}, but must be a schema; write an object, such as {{}} for any value"
    inside = list(schema_nodes(schema))
    patterns = [pattern for node in inside for pattern in patterns_of(node)]
    for what, size, most in (
        ("{} subschemas", len(inside), MAX_SUBSCHEMAS),
        ("{} patterns", len(patterns), MAX_PATTERNS),
        ("a pattern of {} characters", max(map(len, patterns), default=0), MAX_PATTERN),
    ):
        if size > most:
            return f"it has {what.format(size)}, but at most {most} are allowed"
    return _unmeasurable_reason(inside)


def _invalid_subschema(
    schema: dict[str, Any],
) -> tuple[str, JsonValue] | None:  # Any: `JsonValue` would need casts
    """Return the path and the value of the first invalid subschema; None if all subschemas are valid."""
    for keyword, value in schema.items():
        for place, inner in subschema_entries(keyword, value):
            path = keyword + place
            if not is_schema(inner):
                return path, inner
            if isinstance(inner, dict) and (found := _invalid_subschema(inner)) is not None:
                return f"{path}.{found[0]}", found[1]
    return None


def _unmeasurable_reason(objects: list[dict[str, Any]]) -> str | None:  # Any: `JsonValue` would need casts
    """Describe the first reference that `SchemaCost` cannot follow. Return None if it can follow all references."""
    root, *inner = objects
    for key in (
        "$dynamicRef",
        "$recursiveRef",
    ):  # the validator resolves these references only during validation
        if any(isinstance(node.get(key), str) for node in objects):
            return f"it uses {key}; use $ref"
    for key in ("$id", "id") if "draft-04" in str(root.get("$schema")) else ("$id",):
        # an `$id` changes the target of '#' references inside it
        if any(isinstance(node.get(key), str) for node in inner):
            return f"it contains another schema with an {key}; remove the {key} and refer to the schema as '#/...'"
    for node in objects:
        if isinstance(reference := node.get("$ref"), str) and not reference.startswith("#"):
            return (
                f"it refers to {_clip(reference, _EXCERPT)!r}; a schema must contain every definition that it refers "
                "to, as '#/...'"
            )
    return None


def _deny_reference(uri: str) -> JsonValue:
    raise ValueError("a schema must contain every definition that it refers to")


def _describe_fault(fault: "ValidationError", schema: JsonValue = None) -> list[ArgumentError]:
    """Convert a validation error to errors for the model. With `schema`, suggest a known field for an unknown one."""
    path = list(fault.instance_path)
    match fault.kind.as_dict():
        case {"property": str(name)} if fault.kind.name == "required":
            missing = ArgumentError(dotted_path([*path, name]), "a value", is_missing=True)
            return [missing, *_likely_misspelling(name, fault, schema)]
        case {"unexpected": [*names]}:
            values = fault.instance if isinstance(fault.instance, dict) else {}
            fields = _missing_fields(fault, schema)
            return [
                ArgumentError(
                    dotted_path([*path, name]),
                    _unknown_field_message(name, fields),
                    _excerpt(values.get(name)),
                )
                for name in sorted(map(str, names))[:MAX_ERRORS]
            ]
        case details:
            return [
                ArgumentError(dotted_path(path), _describe_expected(fault, details), _excerpt(fault.instance))
            ]


def _likely_misspelling(name: str, fault: "ValidationError", schema: JsonValue) -> list[ArgumentError]:
    """Return an error for the unknown field that is probably a misspelling of the missing field `name`.

    Return an empty list if no field looks like a misspelling, or if the schema rejects unknown fields, because the
    validator already reports them.
    """
    node = _object_schema(fault, schema)
    if not isinstance(fault.instance, dict) or node.get("additionalProperties") is False:
        return []
    fields = node.get("properties")
    unknown = (each for each in fault.instance if not isinstance(fields, dict) or each not in fields)
    close = nearest(name, islice((each for each in unknown if len(each) <= _FIELD), _FIELDS))
    if close is None or len(name) > _FIELD:
        return []
    place = dotted_path([*fault.instance_path, close])
    return [ArgumentError(place, _unknown_field_message(close, [name]), _excerpt(fault.instance[close]))]


def _missing_fields(fault: "ValidationError", schema: JsonValue) -> list[str]:
    """Return fields that the schema defines and the object does not have, at most `_FIELDS`."""
    fields, given = _object_schema(fault, schema).get("properties"), fault.instance
    if not (isinstance(fields, dict) and isinstance(given, dict)):
        return []
    absent = (name for name in fields if name not in given and len(name) <= _FIELD)
    return list(islice(absent, _FIELDS))


def _object_schema(fault: "ValidationError", schema: JsonValue) -> dict[str, JsonValue]:
    """Return the schema of the object that a validation error concerns; an empty schema if it is not found."""
    node = schema
    for part in list(fault.schema_path)[:-1]:
        if isinstance(node, dict):
            node = node.get(str(part))
        else:
            node = node[part] if isinstance(node, list) and isinstance(part, int) else None
    return node if isinstance(node, dict) else {}


def _unknown_field_message(name: str, fields: Sequence[str]) -> str:
    close = nearest(name, fields) if len(name) <= _FIELD else None
    return "no such field" if close is None else f"no such field; did you mean {close!r}?"


def _describe_expected(fault: "ValidationError", details: Mapping[str, Any]) -> str:  # Any: untyped details
    words = f"a value that satisfies {fault.kind.name}"
    if told := _EXPECTED.get(fault.kind.name):
        words = told(*details.values())
    elif branches := [branch for branch in details.get("context", ()) if branch]:
        words = " or ".join(dict.fromkeys(_describe_branch(branch, fault) for branch in branches))
    return _clip(words, _NAMED)


def _describe_branch(branch: Sequence["ValidationError"], outer: "ValidationError") -> str:
    """Return a description of one alternative in an `anyOf` or `oneOf`, taken from the alternative's first error."""
    fault = branch[0]
    inner = list(fault.instance_path)[len(list(outer.instance_path)) :]
    first = _describe_fault(fault)[0]
    words = f"{dotted_path([*inner, first.path.rpartition('.')[2]])}" if first.is_missing else first.expected
    return f"({words} required)" if first.is_missing else f"{dotted_path(inner)} {words}" if inner else words


def dotted_path(parts: Sequence[str | int]) -> str:
    """Return a path such as `stops[2].city`, shortened to `_NAMED` characters."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return _clip(text, _NAMED)


def _excerpt(value: Any) -> str:  # Any: the validator's details are untyped
    try:
        return _clip(dump(value).decode(), _EXCERPT)
    except JsonRefused:
        return type(value).__name__


def _clip(text: str, size: int) -> str:
    text = sanitise(text[: size + 1])
    return text if len(text) <= size else text[: size - 1] + "…"


# For each violated keyword, a function that describes a valid value, given the details that the validator reports.
_EXPECTED: Mapping[str, Callable[[Any], str]] = {  # Any: the type of the details depends on the keyword
    "maximum": "at most {}".format,
    "minimum": "at least {}".format,
    "exclusiveMaximum": "less than {}".format,
    "exclusiveMinimum": "more than {}".format,
    "maxLength": "at most {} characters".format,
    "minLength": "at least {} characters".format,
    "maxItems": "at most {} items".format,
    "minItems": "at least {} items".format,
    "maxProperties": "at most {} fields".format,
    "minProperties": "at least {} fields".format,
    "pattern": "text matching {}".format,
    "format": "a {}".format,
    "type": " or ".join,
    "enum": lambda options: f"one of {', '.join(map(_excerpt, options))}",
    "const": _excerpt,
}
