"""Check the shapes of JSON values, with OpenAI's error messages, for both of its APIs.

Chat Completions and Responses refuse the same faults under different rule ids, so the rules are arguments.
"""

from collections.abc import Mapping

from actors.strict.rules.base import Json, RuleBroken, ServerRule, json_type_name
from actors.strict.rules.shapes import ShapeChecker, Tagged, Word

_TYPES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array of objects",
    bool: "a boolean",
    float: "a decimal",
    object: "any value",
}


class OpenAIShapeChecker(ShapeChecker):
    """The shape checks for one of OpenAI's APIs.

    Args:
        type_rule: The rule that is broken by a value of a wrong JSON type.
        missing_rule: The rule that is broken by a missing key.
        unknown_rule: The rule that is broken by an unknown key.
        word_rule: The rule that is broken by a value that is not one of the allowed values.
    """

    def __init__(
        self, type_rule: ServerRule, missing_rule: ServerRule, unknown_rule: ServerRule, word_rule: ServerRule
    ) -> None:
        self._type, self._missing, self._unknown = type_rule, missing_rule, unknown_rule
        self._word_rule = word_rule

    def require_described_type(self, value: Json, expected_type: type, path: str, description: str) -> Json:
        """Return a value if it has the required JSON type. Otherwise, raise a refusal that calls the type
        `description`.
        """
        if not isinstance(value, expected_type):
            raise self._type_refusal(path, description, value)
        return value

    def wrong_type_refusal(self, path: str, expected_type: type, value: Json) -> RuleBroken:
        return self._type_refusal(path, _TYPES[expected_type], value)

    def wrong_word_refusal(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return self.unlisted_value_refusal(path, value, shape.values)

    def wrong_tag_refusal(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        return self.unlisted_value_refusal(self.key_path(path, shape.tag), value, shape.listed)

    def unlisted_value_refusal(self, path: str, value: Json, allowed: tuple[str, ...]) -> RuleBroken:
        """Return the refusal of a value that is not one of `allowed`."""
        return self._word_rule.refuse(path, value=value, values=", ".join(map(repr, allowed)))

    def missing_key_refusal(self, path: str, key: str) -> RuleBroken:
        at = self.key_path(path, key)
        return self._missing.refuse(at, path=at, parent=path, key=key)

    def unknown_key_refusal(self, path: str, key: str) -> RuleBroken:
        at = self.key_path(path, key)
        return self._unknown.refuse(at, path=at)

    def _type_refusal(self, path: str, description: str, value: Json) -> RuleBroken:
        name = json_type_name(value)
        article = "" if name == "null" else "an " if name[0] in "aeio" else "a "
        return self._type.refuse(path, path=path, expected=description, got=article + name, kind=name)
