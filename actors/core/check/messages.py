"""Define the two base classes of the families' check states.

`CompleteMessagesState` is for `openai_chat` and `responses`, in which a fragment contains only complete messages.
`AlternatingTurnsState` is for `anthropic`, `gemini` and `converse`, in which two roles take turns.
"""

import sys
from typing import ClassVar

import msgspec

from actors.core.check.json_values import excerpt, kind_of
from actors.core.check.state import CHOICES, CheckState
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.dialects.dialect import Dialect

_QUICK = msgspec.json.Decoder(dict[str, msgspec.Raw])
ROOTLESS = (*CHOICES, "enum", "not")  # keywords that OpenAI rejects at the root of a schema
INPUT = {"function": "arguments", "custom": "input"}
"""The key of a call's arguments, by type of call. `arguments` is an object as a string, `input` is any string."""


def non_object_reason(text: JsonValue, *, strict: bool = True) -> str:
    """Return the reason why `text` is not a string that contains a JSON object; empty if it is such a string."""
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


class AlternatingTurnsState(CheckState):
    """The check state shared by `anthropic`, `gemini` and `converse`.

    In these families, two roles take turns, and results are blocks of user messages. After a message with calls, the
    next user message must begin with their results. The last message of a fragment may be incomplete, so checks of
    complete messages run when the next message begins, or at the end.

    Attributes:
        model_role: The model's role on the wire.
        may_end_empty: Whether the last message of the model may be empty.
        has_other_blocks: Whether the last user message contains blocks that are not results.
        follows_unanswered: Whether the last user message directly follows another user message, after which calls still
            had no result.
    """

    open_blocks_key: ClassVar[str | None] = "content"
    model_role: ClassVar[str] = "assistant"
    may_end_empty: ClassVar[bool] = False

    has_other_blocks: bool = False
    follows_unanswered: bool = False
    role: str | None
    message_count: int
    block_count: int

    def check_messages(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        key, model = str(self.open_blocks_key), self.model_role
        for value in messages:
            if type(value) is not dict:
                self.message_count += 1
                self.reject_type("a message must be an object", self.message_path, value)
                continue
            given = value["role"] if "role" in value else None
            role = "user" if given == "user" else model
            if resumes:
                resumes = False
            elif role == given:
                self.check_role(role)
            else:
                self.message_count += 1
                if self.read_other_role(value, given):
                    continue
                self.fault(
                    "ALL-02 role",
                    self.message_path,
                    f"role {excerpt(given)} is neither user nor {self.model_role}",
                )
                continue
            if len(value) != 2 or key not in value:
                self.allow_only(self.message_path, value, ("role", key))
            self.check_content(value[key] if key in value else None)

    def check_role(self, role: str) -> None:
        """Check that a message of `role` may begin here, and begin it."""
        if not self.block_count and self.role is not None:
            self.fault("ALL-11", self.message_path, "the message is empty")
        self.begin_message(role)
        self.message_count += 1
        if role == self.role and not self.continues_turn(role):
            self.fault("CMP-01 turns", self.message_path, f"role {role} occurs twice in a row")
        elif self.role is None and role not in self.dialect.turns.first_roles:
            self.fault("ALL-09", self.message_path, f"a transcript cannot begin with role {role}")
        self.role, self.block_count = role, 0

    def read_other_role(self, message: dict[str, JsonValue], role: JsonValue) -> bool:
        """Check a message whose role is neither the user's nor the model's.

        Return False if the family does not have this role.
        """
        return False

    def continues_turn(self, role: str) -> bool:
        """Return True if a message of `role` may follow another message of the same role."""
        return False

    def begin_message(self, role: str) -> None:
        """Check the previous message, which is now complete, before a message of `role` begins.

        The attributes that describe the last message are reset for the new one.
        """
        raise NotImplementedError

    def check_content(self, content: JsonValue) -> None:
        """Check the content of a message, block by block."""
        if type(content) is list:
            for block in content:
                self.check_block(block)
                self.block_count += 1
        else:
            self.reject_type(
                "must be a list of blocks", f"{self.message_path}.{self.open_blocks_key}", content
            )
            self.block_count += 1  # avoids a second fault for an empty message

    def check_block(self, block: JsonValue) -> None:
        """Check one block of the last message and update the state."""
        raise NotImplementedError

    def check_end(self, *, manual_thinking: bool) -> None:
        super().check_end(manual_thinking=manual_thinking)
        if self.role and not self.block_count and (self.role == "user" or not self.may_end_empty):
            self.fault("ALL-11", self.message_path, "the message is empty")

    def close_call(self, call_id: JsonValue, key: str) -> None:
        """Check the position of a result, and remove its call from `open_calls`."""
        if type(call_id) is not str:
            self.reject_type(f"{key} must be a string", "", call_id)
        elif call_id in self.open_calls:
            if self.has_other_blocks:
                what = f"the result of {excerpt(call_id)} follows other content"
                self.fault("ANT-03 order", "", what, call_id)
            if self.follows_unanswered:
                what = f"the result of {excerpt(call_id)} is in a second user message"
                self.fault("ANT-12", "", what, call_id)
            del self.open_calls[call_id]
            self.answered_calls[call_id] = None
        elif call_id in self.answered_calls:
            self.fault("OAC-02 second", "", f"a second result for tool call {excerpt(call_id)}", call_id)
        else:
            what = f"a result for {excerpt(call_id)}, but the previous message has no such call"
            self.fault("OAC-02 stray", "", what, call_id)
