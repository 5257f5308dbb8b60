"""What a provider family demands of a transcript, as data.

One frozen record a profile. The renderer reads it, `actors.core.check` judges by it, and
docs/reference/rulebook.md is generated from it. A vendor that differs from a family in three rules is
three fields here, by `derive`, and not a module. Rule ids such as ANT-07 are explained in the rulebook.
"""

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from actors.core.identity import Binding
from actors.errors import UnknownTarget

Family: TypeAlias = Literal["openai_chat", "anthropic"]
IdStyle: TypeAlias = Literal["openai", "anthropic"]
Role: TypeAlias = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One profile. Field names are those of the rulebook.

    Args:
        name: The profile's name, as `dialect()` takes it.
        family: The wire family: which adapter encodes and decodes, which fold checks.
        id_style: How the ids we mint look (REQ-915-018 to -021).
        id_pattern: What every emitted id must match in full.
        id_max_len: Longest id accepted, in characters.
        id_unique_scope: Where a repeated call id is refused.
        native_id_passthrough: Whether a call made by the same binding keeps the id its provider gave it.
        tool_name_pattern: What a tool name must match in full, in `tools` and in history alike.
        args_encoding: Arguments as a JSON string or as a JSON object.
        result_carrier: A `tool` message for each result, or blocks at the head of one user message.
        result_error_flag: How a failed result is marked: a flag, or a word before its text.
        error_prefix: That word.
        result_media, user_media: Media kinds (`image`, `document`) a result or a user message can hold.
        media_types: MIME types it takes, of those kinds.
        media_bytes: Most bytes of one image, decoded (ANT-30); None where no cap is stated.
        system_placement: Where the system prompt goes.
        first_roles, last_roles: Roles a transcript may begin and end with.
        alternation: `merge_same` puts neighbours of one role into one message, as a block list.
        drop_empty_text: Whether empty and whitespace-only texts are left out.
        max_tools: Most tools a request may declare.
        thinking_carrier: How native thinking travels.
        thinking_binding: Who may open a sealed thinking block: nobody, the same model of the same account,
            or only the same with an unchanged prefix.
        thinking_first: Whether a message that holds thinking must begin with it (ANT-39). The newest models write
            and take it in the middle; until a profile says so, thinking elsewhere is not sent.
        max_string: Longest string accepted, in characters.
        filler_first, filler_last: Constant texts where the protocol needs a message and there is none.
        max_tokens_default: What a request asks for where the field is required and nobody said.
        overflow_patterns: Regular expressions that recognise a context overflow in an error text.
    """

    name: str
    family: Family
    id_style: IdStyle
    id_pattern: str
    id_max_len: int
    id_unique_scope: Literal["message", "transcript"] = "transcript"
    native_id_passthrough: bool = True
    tool_name_pattern: str
    args_encoding: Literal["json_string", "object"]
    result_carrier: Literal["tool_message", "user_block"]
    result_error_flag: Literal["text", "is_error"]
    error_prefix: str = "ERROR: "
    result_media: frozenset[str] = frozenset()
    user_media: frozenset[str] = frozenset({"image"})
    media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    media_bytes: int | None = None
    system_placement: Literal["first_message", "top_level"]
    first_roles: frozenset[Role] = frozenset({"user", "assistant"})
    last_roles: frozenset[Role] = frozenset({"user", "tool"})
    alternation: Literal["none", "merge_same"]
    drop_empty_text: bool = True
    max_tools: int | None = None
    thinking_carrier: Literal["none", "anthropic_blocks"]
    thinking_binding: Literal["none", "model", "prefix"]
    thinking_first: bool = True
    max_string: int | None = None
    filler_first: str = "(The conversation so far follows.)"
    filler_last: str = "(Please continue.)"
    max_tokens_default: int | None = None
    overflow_patterns: tuple[str, ...] = ()

    def derive(self, **changes: Any) -> "Dialect":  # Any: each field has its own type, checked by `replace`
        """Return this profile with some fields changed, for a vendor or by an operator's override."""
        return replace(self, **changes)

    def opens(self, sealed_by: Binding, reader: Binding | None) -> bool:
        """Say whether a block sealed by one binding may be replayed to `reader`.

        What is bound to its prefix goes back only to the very binding that has it in its lane: another backend with
        the same model may have been shown the conversation otherwise.
        """
        if reader is None or self.thinking_carrier == "none" or self.thinking_binding == "none":
            return False
        if self.thinking_binding == "prefix":
            return sealed_by == reader
        return (sealed_by.dialect, sealed_by.endpoint, sealed_by.account, sealed_by.model) == (
            reader.dialect,
            reader.endpoint,
            reader.account,
            reader.model,
        )


OVERFLOW = (
    r"context_length_exceeded",
    r"prompt is too long",
    r"input length and .max_tokens. exceed context limit",
    r"input token count .* exceeds the maximum",
    r"maximum context length is",
    r"exceeds the context window",
    r"maximum prompt length is",
    r"Input is too long for requested model",
    r"exceeded model token limit",
    r"too large for model with .* maximum context length",
    r"exceeds the available context size",
    r"exceed_context_size_error",
    r"context window exceeds limit",
    r"reduce the length of the messages",
    r"greater than the context length",
)

OPENAI_CHAT = Dialect(
    name="openai_chat",
    family="openai_chat",
    id_style="openai",
    id_pattern=r"[A-Za-z0-9_-]{1,40}",  # 40 by OAC-03; the character set is what we choose to emit
    id_max_len=40,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # OAC-10
    args_encoding="json_string",
    result_carrier="tool_message",
    result_error_flag="text",
    system_placement="first_message",
    alternation="none",
    max_tools=128,  # OAC-09
    thinking_carrier="none",
    thinking_binding="none",
    max_string=1_048_576,  # OAC-14
    overflow_patterns=OVERFLOW,
)

ANTHROPIC = Dialect(
    name="anthropic",
    family="anthropic",
    id_style="anthropic",
    id_pattern=r"[a-zA-Z0-9_-]{1,64}",  # ANT-07; 64 is the safe choice, no cap is stated
    id_max_len=64,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",  # ANT-08
    args_encoding="object",
    result_carrier="user_block",
    result_error_flag="is_error",
    result_media=frozenset({"image", "document"}),
    user_media=frozenset({"image", "document"}),
    media_types=frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}),
    media_bytes=5 * 1024 * 1024,
    system_placement="top_level",
    first_roles=frozenset({"user"}),  # ANT-24
    last_roles=frozenset({"user"}),  # ANT-27
    alternation="merge_same",
    thinking_carrier="anthropic_blocks",
    thinking_binding="prefix",  # ANT-44: treated as bound everywhere, which older models accept too
    max_tokens_default=8192,  # the field is required
    overflow_patterns=OVERFLOW,
)

PROFILES: dict[str, Dialect] = {profile.name: profile for profile in (OPENAI_CHAT, ANTHROPIC)}
ALIASES = {"openai": "openai_chat"}


def dialect(name: str) -> Dialect:
    """Return the profile of this name; `openai` stands for `openai_chat`.

    Raises:
        UnknownTarget: There is no such profile.
    """
    found = PROFILES.get(ALIASES.get(name, name))
    if found is not None:
        return found
    close = get_close_matches(name, [*PROFILES, *ALIASES], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(PROFILES)}"
    raise UnknownTarget(f"No dialect {name!r}; {hint}")
