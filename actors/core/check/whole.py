"""What OpenAI's two protocols have in common: messages are whole, and a call writes its arguments as text."""

import sys
from collections.abc import Iterator

from actors.core.check.state import CheckState
from actors.core.check.words import CHOICES, excerpt, kind_of, why_no_object
from actors.core.dialect import Dialect
from actors.core.jsonio import JsonValue

ROOTLESS = (*CHOICES, "enum", "not")
"""Keywords of a schema that OpenAI does not take at the root of a tool's."""
INPUT = {"function": "arguments", "custom": "input"}
"""What a call of each kind gives its tool: an object as text, or any text."""


class Whole(CheckState):
    """A state machine over messages, or items, that come whole."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.longest = dialect.turns.max_string or sys.maxsize

    def given(self, name: JsonValue, given: JsonValue, key: str, where: str) -> None:
        """Judge the name of the tool that is called, and what it is given under `key`."""
        if type(name) is not str or not self.is_name(name):
            self.named(name, where)
        if key == "arguments":
            why = why_no_object(given, strict=self.strict)
        else:
            why = "" if type(given) is str else "not a string"
        if why:
            self.fault("ALL-06", f"{where}.{key}", f"{excerpt(given)} is {why}")
        elif type(given) is str and len(given) > self.longest:
            self.length(given, f"{where}.{key}")

    def parts(self, content: JsonValue, where: str, rule: str) -> Iterator[tuple[str, JsonValue]]:
        """Yield the parts of a content, each with its place. A text has none."""
        if type(content) is str:
            self.length(content, where)
        elif type(content) is not list:
            self.fault(rule, where, f"a string or a list of parts, not {kind_of(content)}")
        elif not content:
            self.fault("ALL-11", where, "the list of parts is empty")
        else:
            yield from self.each(content, where, "parts")

    def text(self, text: JsonValue, key: str, kind: str, where: str) -> None:
        """Judge the text of a part, which stands under `key`."""
        if type(text) is not str:
            self.wanted(f"{key} is a string", where, text)
        elif not text and self.dialect.turns.drop_empty_text:
            self.fault("ALL-11 part", where, f"the {kind} part is empty")
        else:
            self.length(text, where)

    def length(self, text: str, where: str) -> None:
        if len(text) > self.longest:
            self.fault("ALL-02 long", where, f"a string of {len(text)} characters, at most {self.longest}")

    def chooses(self, choice: JsonValue, tools: JsonValue, key: str = "tool_choice") -> None:
        """Judge that what is said about tools is said of some."""
        if choice is not None and not tools:
            self.fault("ALL-14", key, "given without tools")
