"""The shape walk with OpenAI's messages. Its two APIs refuse the same faults by different rules."""

from collections.abc import Mapping

from actors.strict.rules.base import Json, RuleBroken, ServerRule, kind
from actors.strict.rules.shapes import ShapeWalk, Tagged, Word

_TYPES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array of objects",
    bool: "a boolean",
    float: "a decimal",
    object: "any value",
}


class OpenAIWalk(ShapeWalk):
    """The shape walk of one API.

    Args:
        type_rule: The rule for a value of another JSON type.
        missing_rule: The rule for a missing key.
        unknown_rule: The rule for an unknown key.
        word_rule: The rule for a value that is not among the allowed ones.
    """

    def __init__(
        self, type_rule: ServerRule, missing_rule: ServerRule, unknown_rule: ServerRule, word_rule: ServerRule
    ) -> None:
        self._type, self._missing, self._unknown = type_rule, missing_rule, unknown_rule
        self._word_rule = word_rule

    def typed_as(self, value: Json, wanted: type, path: str, expected: str) -> Json:
        """Return a value of a required JSON type, which a refusal names as `expected`."""
        if not isinstance(value, wanted):
            raise self._wrong(path, expected, value)
        return value

    def wrong_type(self, path: str, wanted: type, value: Json) -> RuleBroken:
        return self._wrong(path, _TYPES[wanted], value)

    def wrong_word(self, path: str, value: Json, shape: Word) -> RuleBroken:
        return self.none_of(path, value, shape.values)

    def wrong_tag(self, path: str, value: Json, shape: Tagged) -> RuleBroken:
        return self.none_of(self.key(path, shape.tag), value, shape.listed)

    def none_of(self, path: str, value: Json, words: tuple[str, ...]) -> RuleBroken:
        """Return the refusal of a value that is not among the words."""
        return self._word_rule.refuse(path, value=value, values=", ".join(map(repr, words)))

    def missing(self, path: str, key: str) -> RuleBroken:
        at = self.key(path, key)
        return self._missing.refuse(at, path=at, parent=path, key=key)

    def unknown(self, path: str, key: str) -> RuleBroken:
        at = self.key(path, key)
        return self._unknown.refuse(at, path=at)

    def _wrong(self, path: str, expected: str, value: Json) -> RuleBroken:
        name = kind(value)
        article = "" if name == "null" else "an " if name[0] in "aeio" else "a "
        return self._type.refuse(path, path=path, expected=expected, got=article + name, kind=name)
