"""Check the messages of the families `openai_chat` and `responses`, in which a fragment has only complete messages."""

import sys

import msgspec

from actors.core.check.json_values import excerpt, kind_of
from actors.core.check.state import CHOICES, CheckState
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.dialects.dialect import Dialect

_QUICK = msgspec.json.Decoder(dict[str, msgspec.Raw])

ROOTLESS = (*CHOICES, "enum", "not")  # keywords that OpenAI rejects at the root of a schema

INPUT = {"function": "arguments", "custom": "input"}
"""The key of a call's arguments, by the kind of the call. `arguments` is an object as a string, `input` any string."""


def non_object_reason(text: JsonValue, *, strict: bool = True) -> str:
    """Return the reason why `text` is not a string with a JSON object. Return "" if it is a string with an object."""
    if type(text) is not str:
        return "not a string"
    try:
        value = parse(text.encode()) if strict else _QUICK.decode(text)
    except (JsonRefused, msgspec.DecodeError, RecursionError):
        return "not JSON"
    return "" if type(value) is dict else "not an object"


class CompleteMessagesState(CheckState):
    """The check state shared by OpenAI's two protocols, in which the arguments of a call are a string."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.max_length: int = dialect.turns.max_string or sys.maxsize

    def check_arguments(self, name: JsonValue, arguments: JsonValue, key: str, path: str) -> None:
        """Check the tool name and the arguments of a call. `key` is the name of the field with the arguments."""
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name, path)
        if key == "arguments":
            why = non_object_reason(arguments, strict=self.strict)
        else:
            why = "" if type(arguments) is str else "not a string"
        if why:
            self.fault("ALL-06", f"{path}.{key}", f"{excerpt(arguments)} is {why}")
        elif type(arguments) is str and len(arguments) > self.max_length:
            self.check_length(arguments, f"{path}.{key}")

    def checked_parts(self, content: JsonValue, path: str, rule: str) -> list[tuple[str, JsonValue]]:
        """Return (path, part) pairs of a message's content. Return an empty list if the content is a string."""
        if type(content) is str:
            self.check_length(content, path)
        elif type(content) is not list:
            self.fault(rule, path, f"must be a string or a list of parts, not {kind_of(content)}")
        elif not content:
            self.fault("ALL-11", path, "the list of parts must not be empty")
        return self.checked_items(content, path, "parts") if type(content) is list else []

    def check_text(self, text: JsonValue, key: str, kind: str, path: str) -> None:
        if type(text) is not str:
            self.reject_type(f"{key} must be a string", path, text)
        elif not text and self.dialect.turns.drop_empty_text:
            self.fault("ALL-11 part", path, f"the {kind} part is empty")
        else:
            self.check_length(text, path)

    def check_length(self, text: str, path: str) -> None:
        if len(text) > self.max_length:
            self.fault(
                "ALL-02 long", path, f"the string has {len(text)} characters, at most {self.max_length}"
            )
