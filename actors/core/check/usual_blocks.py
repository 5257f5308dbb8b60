"""Check the usual messages of Anthropic Messages: those that contain only texts, thinking, calls and results.

The fast parser decodes them as the types of this module, which checks their keys and the types of their values
(`actors.core.check.check_quickly`). A message that breaks a rule counts as unusual, so that `anthropic` checks it.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from actors.core.check.messages import AlternatingTurnsState
from actors.core.check.state import Unusual
from actors.core.dialects.dialect import AnthropicDialect


class _UsualBlock(msgspec.Struct, tag_field="type", forbid_unknown_fields=True, gc=False):
    """The base of usual blocks. A block of another type, or with other keys, is unusual."""


class _Text(_UsualBlock, tag="text"):
    text: str


class _Thinking(_UsualBlock, tag="thinking"):
    thinking: str
    signature: str


class _ToolUse(_UsualBlock, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]  # Any: any JSON. `Raw` would accept invalid UTF-8 and numbers that are too large


class _ToolResult(_UsualBlock, tag="tool_result"):
    tool_use_id: str
    content: str
    is_error: bool = False


_Block: TypeAlias = _Text | _Thinking | _ToolUse | _ToolResult | int


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["user", "assistant"]
    content: list[_Block]


_USUAL = msgspec.json.Decoder(list[_Message])


class UsualBlocksState(AlternatingTurnsState):
    """The check of usual messages, with the attributes of the `anthropic` check state that these messages change.

    Attributes:
        begins_with_thinking: Whether the last message begins with thinking.
        ends_with_thinking: Whether the last message ends with thinking.
        ends_with_whitespace: Whether the last message ends with a text that ends in whitespace.
        loop_thinks: Whether the message that opened the current tool loop begins with thinking; None before its first
            block.
        leading_block_count: The number of provider-specific blocks at the beginning of the last message.
        pending_server_calls: The ids of server tool calls without a result.
    """

    dialect: AnthropicDialect

    begins_with_thinking: bool = False
    ends_with_thinking: bool = False
    ends_with_whitespace: bool = False
    leading_block_count: int = 0
    loop_thinks: bool | None = None
    pending_server_calls: frozenset[str] = frozenset()
    block_count: int
    has_other_blocks: bool
    follows_unanswered: bool
    answered_calls: dict[str, None]

    @property
    def usual_messages(self) -> msgspec.json.Decoder[list[_Message]]:
        return _USUAL

    def check_usual(self, messages: list[_Message]) -> None:
        if self.pending_server_calls:
            raise Unusual
        resumes = self.role is not None
        if resumes and self.block_count:
            del messages[0].content[0]
        for message in messages:
            if not resumes:
                self.check_role(message.role)
            resumes = False
            for block in message.content:
                self.ends_with_thinking = self.ends_with_whitespace = False
                if self.role == "user":
                    self._check_usual_user_block(block)
                else:
                    self._check_usual_block(block)
                    if self.loop_thinks is None and self.block_count == self.leading_block_count:
                        self.loop_thinks = self.ends_with_thinking
                self.block_count += 1

    def _check_usual_user_block(self, block: _Block) -> None:
        if type(block) is _ToolResult:
            call_id = block.tool_use_id
            is_blank_error = block.is_error and not block.content.strip()
            if is_blank_error or self.has_other_blocks or self.follows_unanswered:
                raise Unusual
            if call_id not in self.open_calls:
                raise Unusual
            del self.open_calls[call_id]
            self.answered_calls[call_id] = None
        else:
            self._check_usual_text(block)

    def _check_usual_block(self, block: _Block) -> None:
        rules = self.dialect.reasoning
        if type(block) is _ToolUse:
            if not self.is_name(block.name):
                raise Unusual
            if rules.required == "with_calls" and not self.begins_with_thinking:
                raise Unusual
            self.open_call(block.id)
        elif type(block) is _Thinking:
            if self.block_count == self.leading_block_count:
                self.begins_with_thinking = True
            elif not self.begins_with_thinking and rules.must_be_first:
                raise Unusual
            if not block.signature or rules.carrier == "none":
                raise Unusual
            self.ends_with_thinking = True
        else:
            self._check_usual_text(block)

    def _check_usual_text(self, block: _Block) -> None:
        if type(block) is not _Text or not block.text or block.text.isspace():
            raise Unusual
        self.ends_with_whitespace = block.text[-1].isspace()
        self.has_other_blocks = True
