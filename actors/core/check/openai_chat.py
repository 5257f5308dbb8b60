"""What OpenAI Chat Completions demands, message by message.

The heart is the group: an assistant message with tool calls opens it, each tool message takes one call
out, and nothing else may come before the last is out. All else is shape: roles, content, keys, ids, names
and arguments. Several system messages and runs of one role are accepted there, and so here; what vendors of
the family demand besides is told by the dialect.
"""

import sys
from collections.abc import Sequence

from actors.core.check.openai_chat_head import CALL_KEYS, INPUT, OpenAIChatHead
from actors.core.check.words import kind_of, listed, shown, why_no_object
from actors.core.dialect import Dialect
from actors.core.jsonio import JsonValue

_TEXT_ONLY = frozenset({"text"})
_PARTS = {
    "system": _TEXT_ONLY,
    "developer": _TEXT_ONLY,
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "function": _TEXT_ONLY,
    "assistant": frozenset({"text", "refusal"}),
    "tool": _TEXT_ONLY,
}
_PART_KEYS = {
    kind: frozenset({"type", kind, "prompt_cache_breakpoint"}) for kind in (*_PARTS["user"], "refusal")
} | {"thinking": frozenset({"type", "thinking", "signature", "closed"})}
_MEDIA = {"image_url": "image", "file": "document"}
_INNER_KEYS = {kind: frozenset({"name", argument}) for kind, argument in INPUT.items()}
_FIELDS = frozenset({"reasoning_content", "reasoning_details"})


def _keys(dialect: Dialect) -> dict[str, frozenset[str]]:
    """Return the keys that a message may have, by the roles that there are."""
    plain = frozenset({"role", "content"}) | (dialect.turns.message_keys & {"name"})
    keys = {"system": plain, "user": plain, "tool": frozenset({"role", "content", "tool_call_id", "name"})}
    keys["assistant"] = plain | dialect.turns.message_keys | {"tool_calls"} | (_FIELDS & {dialect.reasoning.carrier})
    if dialect.turns.developer_role:
        keys["developer"] = plain
    if "function_call" in dialect.turns.message_keys:
        keys["function"] = plain
    return keys


class OpenAIChat(OpenAIChatHead):
    """The judge of the family `openai_chat`."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.keys = _keys(dialect)
        self.longest = dialect.turns.max_string or sys.maxsize
        self.marking = frozenset({"cache_control"} if dialect.caching.marks == "part" else ())

    # --- facts --------------------------------------------------------------------------------------

    def open(self, role: str) -> None:
        """A message of this role, which is not `tool`, begins."""
        dialect = self.dialect
        self.answered.clear()
        if self.due:
            self._unanswered(f"before this {role} message")
        if role in ("system", "developer"):
            if not dialect.turns.system_anywhere and self.role in ("assistant", "tool"):
                self.fault("ALL-08 system", self.here, f"role {role} after role {self.role}")
        elif role == "user" and self.role == "tool" and dialect.turns.user_after_tool == "filler":
            self.fault("CMP-01 after tool", self.here, "role user after role tool")
        elif role == self.role and dialect.turns.alternation == "fill":
            self.fault("CMP-01", self.here, f"role {role} twice in a row")
        elif self.role is None and role in ("user", "assistant") and role not in dialect.turns.first_roles:
            self.fault("ALL-09", self.here, f"a transcript cannot begin with role {role}")
        if role not in ("system", "developer") or self.role is not None:
            self.role = role

    def spoke(self, *, said: bool, empty: bool, reasons: bool, calls: int | None) -> None:
        """The assistant's message says something, which may be empty, reasons, and has a list of calls, or none."""
        if not calls and (not said or (empty and not self.dialect.turns.empty_answers)):
            self.fault("ALL-11 message", self.here, "an assistant message without tool calls has content")
        if calls is not None and not calls and not self.dialect.turns.empty_calls:
            self.fault("ALL-02", f"{self.here}.tool_calls", "a list of at least one tool call")
        if calls and not reasons and self.dialect.reasoning.required == "with_calls":
            self.fault("ALL-02 reasoning", self.here, f"tool calls without {self.dialect.reasoning.carrier}")
        if calls and calls > 1 and not self.dialect.turns.calls_together:
            self.fault("CMP-02", f"{self.here}.tool_calls", f"{calls} tool calls in one message")

    def composed(self, thinks: Sequence[bool]) -> None:
        """The assistant's content is a list of parts, each of which is thinking or is not."""
        if sorted(thinks, reverse=True) != list(thinks):
            self.fault("ALL-08 thinking", f"{self.here}.content", "thinking after other content")

    def result(self, call_id: str) -> None:
        """A tool message answers this call."""
        if call_id in self.due:
            del self.due[call_id]
            self.answered.add(call_id)
        elif call_id in self.answered:
            what = f"a second result for tool call {shown(call_id)}"
            self.fault("OAC-02 duplicate", self.here, what, call_id)
        else:
            case = (
                "unknown"
                if self.due
                else f"after {self.role if self.role in ('assistant', 'tool') else 'user'}"
            )
            what = f"a result for {shown(call_id)}, which is no open tool call"
            self.fault(f"OAC-02 {case}", self.here, what, call_id)

    def finish(self, *, manual_thinking: bool) -> None:
        self.marked()
        if self.due:
            self._unanswered("at the end")
        if not self.count:
            self.fault("OAC-04", "messages", "there is no message")
        elif self.role not in self.dialect.turns.last_roles:
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role or 'system'}")

    def _unanswered(self, when: str) -> None:
        ids = tuple(self.due)
        self.fault("OAC-01", self.here, f"no result for tool call {listed(ids)} {when}", *ids)
        self.due.clear()

    def place(self, index: int) -> str:
        return f"{self.here}.tool_calls[{index}].id"

    # --- reading ------------------------------------------------------------------------------------

    def message(self, value: JsonValue) -> None:
        self.count += 1
        if type(value) is not dict:
            return self.wanted("a message is an object", self.here, value)
        role = value.get("role")
        if type(role) is not str or role not in self.keys:
            if "role" in value:
                return self.fault("OAC-06", self.here, f"role {shown(role)} does not exist")
            return self.fault("OAC-07", self.here, "the message has no role")
        if role != "tool":
            self.open(role)
        self._known(value, self.keys[role])
        if role == "assistant":
            return self._assistant(value)
        self._content(value.get("content"), role)
        if role == "tool":
            self._result(value.get("tool_call_id"))
            self.role = role
        return None

    def _known(self, message: dict[str, JsonValue], keys: frozenset[str]) -> None:
        for field in sorted(_FIELDS & (message.keys() - keys)):
            self.fault(f"key {field}", self.here, f"unknown key {field!r}")
        self.allow_only(self.here, message, keys | _FIELDS)

    def _assistant(self, message: dict[str, JsonValue]) -> None:
        content, calls = message.get("content"), message.get("tool_calls")
        if content is not None:
            self._content(content, "assistant")
        said = content is not None or bool(message.keys() & {"refusal", "audio", "function_call"})
        if (
            message.get("prefix") and "prefix" in self.dialect.turns.message_keys
        ):  # it must be last, and we do not end there
            self.fault("MIS-11", self.here, "an assistant message with prefix")
        made = calls if type(calls) is list else []
        if calls is not None and type(calls) is not list:
            self.wanted("a list of tool calls", f"{self.here}.tool_calls", calls)
        reasons = self._reasons(message)
        count = None if calls is None else len(made)
        self.spoke(said=said, empty=content == "", reasons=reasons, calls=count)
        for index, call in enumerate(made):
            self._call(call, index)

    def _reasons(self, message: dict[str, JsonValue]) -> bool:
        """Judge the field that carries reasoning, where the dialect has one, and say whether it holds some."""
        carrier = self.dialect.reasoning.carrier
        given = message.get(carrier) if carrier in _FIELDS else None
        if given is not None and type(given) is not (str if carrier == "reasoning_content" else list):
            self.fault("ALL-02", f"{self.here}.{carrier}", f"{kind_of(given)} where reasoning belongs")
        return bool(given)

    def _result(self, call_id: JsonValue) -> None:
        if type(call_id) is str:
            self.result(call_id)
        else:
            self.fault("ALL-02 tool_call_id", self.here, f"tool_call_id is a string, not {kind_of(call_id)}")

    def _call(self, call: JsonValue, index: int) -> None:
        where = f"{self.here}.tool_calls[{index}]"
        kind = call.get("type") if type(call) is dict else None
        if type(call) is not dict or type(kind) is not str or kind not in CALL_KEYS:
            return self.fault("ALL-02", where, f"a tool call of type {shown(kind)}")
        self.known_kind(kind, where)
        self.allow_only(where, call, CALL_KEYS[kind])
        call_id, inner = call.get("id"), call.get(kind)
        if type(call_id) is str:
            self.open_call(call_id, index=index)
        else:
            self.fault("ALL-02 id", f"{where}.id", "a tool call has a string as id")
        if type(inner) is not dict:
            return self.wanted(f"{kind} is an object", where, inner)
        return self._inner(inner, kind, f"{where}.{kind}")

    def _inner(self, inner: dict[str, JsonValue], kind: str, where: str) -> None:
        argument = INPUT[kind]
        self.allow_only(where, inner, _INNER_KEYS[kind])
        self.named(inner.get("name"), where)
        given = inner.get(argument)
        why = why_no_object(given) if kind == "function" else "" if type(given) is str else "not a string"
        if why:
            self.fault("ALL-06", f"{where}.{argument}", f"{shown(given)} is {why}")
        elif type(given) is str:
            self._length(given, f"{where}.{argument}")

    # --- content ------------------------------------------------------------------------------------

    def _content(self, content: JsonValue, role: str) -> None:
        where = f"{self.here}.content"
        if type(content) is str:
            return self._length(content, where)
        if type(content) is not list:
            return self.fault("OAC-05", where, f"a string or a list of parts, not {kind_of(content)}")
        if not content:
            self.fault("ALL-11", where, "the list of parts is empty")
        for index, part in enumerate(content):
            self._part(part, role, f"{where}[{index}]")
        if role == "assistant":
            self.composed([type(part) is dict and part.get("type") == "thinking" for part in content])
        return None

    def _part(self, part: JsonValue, role: str, where: str) -> None:
        if type(part) is not dict:
            return self.fault("OAC-05", where, f"a part is an object, not {kind_of(part)}")
        kind = part.get("type")
        if type(kind) is not str or kind not in self._held(role):
            return self.fault("OAC-08", where, f"a part of type {shown(kind)} in a message of role {role}")
        media = self.dialect.media.user_kinds | ({"document"} if self.dialect.media.user_files else set())
        if role == "user" and _MEDIA.get(kind, "text") not in media | {"text"}:
            return self.fault("ALL-10", where, f"{_MEDIA[kind]} is not accepted")
        self.allow_only(where, part, _PART_KEYS[kind] | self.marking)
        if self.marking and (mark := part.get("cache_control")) is not None:
            self.mark(mark, where, "ephemeral", "cache_control")
            if kind == "text" and not str(part.get("text")).strip():
                self.fault("ANT-33", where, "a blank text carries cache_control")
        if kind in _MEDIA:
            self.attach(_MEDIA[kind], where)
        return self._payload(part.get(kind), kind, where)

    def _held(self, role: str) -> frozenset[str]:
        """Return the parts that a message of this role may have."""
        if role == "tool":
            return _TEXT_ONLY | {kind for kind, media in _MEDIA.items() if media in self.dialect.media.result_kinds}
        if role == "assistant" and self.dialect.reasoning.carrier == "thinking_chunk":
            return _PARTS[role] | {"thinking"}
        return _PARTS[role]

    def _payload(self, payload: JsonValue, kind: str, where: str) -> None:
        if kind == "thinking":
            if type(payload) is not list or not payload:
                self.fault("ALL-02", where, "thinking is a list of text chunks")
        elif kind in ("text", "refusal"):
            if type(payload) is not str:
                self.wanted(f"{kind} is a string", where, payload)
            elif not payload and self.dialect.turns.drop_empty_text:
                self.fault("ALL-11 part", where, f"the {kind} part is empty")
            else:
                self._length(payload, where)
        elif type(payload) is not dict or not payload:
            self.wanted(f"{kind} is an object", where, payload)
        elif kind == "image_url" and not self.dialect.media.urls and not _inline(payload.get("url")):
            self.fault("ALL-10", where, "an image by address")

    def _length(self, text: str, where: str) -> None:
        if len(text) > self.longest:
            self.fault("OAC-14", where, f"a string of {len(text)} characters, at most {self.longest}")


def _inline(url: JsonValue) -> bool:
    return type(url) is str and url.startswith("data:")
