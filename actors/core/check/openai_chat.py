"""What OpenAI Chat Completions demands, message by message.

The heart is the group: an assistant message with tool calls opens it, each tool message takes one call
out, and nothing else may come before the last is out. All else is shape: roles, content, keys, ids, names
and arguments. Several system messages and runs of one role are accepted there, and so here; what vendors of
the family demand besides is told by the dialect.
"""

from actors.core.check.openai_chat_parameters import CALL_KEYS, INPUT, OpenAIChatParameters
from actors.core.check.words import excerpt, kind_of
from actors.core.dialect import ChatDialect
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
_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


def _carrier(dialect: ChatDialect) -> str:
    """Return the name of the field that carries reasoning."""
    carrier = dialect.reasoning.carrier
    return dialect.reasoning.field if carrier == "reasoning_content" else carrier


def _keys(dialect: ChatDialect) -> dict[str, frozenset[str]]:
    """Return the keys that a message may have, by the roles that there are."""
    plain = frozenset({"role", "content"}) | (dialect.turns.message_keys & {"name"})
    keys = {"system": plain, "user": plain, "tool": frozenset({"role", "content", "tool_call_id", "name"})}
    keys["assistant"] = plain | dialect.turns.message_keys | {"tool_calls"} | (_FIELDS & {_carrier(dialect)})
    if dialect.turns.developer_role:
        keys["developer"] = plain
    if "function_call" in dialect.turns.message_keys:
        keys["function"] = plain
    return keys


class OpenAIChat(OpenAIChatParameters):
    """The judge of the family `openai_chat`."""

    def __init__(self, dialect: ChatDialect) -> None:
        super().__init__(dialect)
        self.keys = _keys(dialect)
        self.marking = frozenset({"cache_control"} if dialect.caching.marks == "part" else ())
        self.signing = dialect.reasoning.carrier == "extra_content"
        self.call_keys = {
            kind: keys | {"extra_content"} if self.signing else keys for kind, keys in CALL_KEYS.items()
        }
        self.carrier = carrier if (carrier := _carrier(dialect)) in _FIELDS else None

    # --- messages -----------------------------------------------------------------------------------

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        for value in messages:
            self.count += 1
            role = value["role"] if type(value) is dict and "role" in value else None
            if type(value) is not dict or type(role) is not str or role not in self.keys:
                self._misnamed(value)
                continue
            if role != "tool":
                self._begin(role)
            if not value.keys() <= self.keys[role]:
                self._unknown(value, self.keys[role])
            content = value["content"] if "content" in value else None
            if type(content) is str and len(content) <= self.longest:
                pass
            elif content is not None or role != "assistant":
                self._content(content, role)
            if role == "assistant":
                self._assistant(value)
            elif role == "tool":
                self._result(value["tool_call_id"] if "tool_call_id" in value else None)
                self.role = role

    def _misnamed(self, message: JsonValue) -> None:
        if type(message) is not dict:
            self.wanted("a message is an object", "", message)
        elif "role" in message:
            self.fault("OAC-06", "", f"role {excerpt(message['role'])} does not exist")
        else:
            self.fault("OAC-07", "", "the message has no role")

    def _begin(self, role: str) -> None:
        """A message of this role, which is not `tool`, begins."""
        dialect = self.dialect
        if self.answered:
            self.answered = set()
        if self.due:
            self.unanswered(f"before this {role} message")
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

    def _result(self, call_id: JsonValue) -> None:
        if type(call_id) is not str:
            what = f"tool_call_id is a string, not {kind_of(call_id)}"
            self.fault("ALL-02 tool_call_id", self.here, what)
        elif call_id in self.due:
            del self.due[call_id]
            self.answered.add(call_id)
        elif call_id in self.answered:
            what = f"a second result for tool call {excerpt(call_id)}"
            self.fault("OAC-02 duplicate", self.here, what, call_id)
        else:
            behind = self.role if self.role in ("assistant", "tool") else "user"
            case = "unknown" if self.due else f"after {behind}"
            what = f"a result for {excerpt(call_id)}, which is no open tool call"
            self.fault(f"OAC-02 {case}", self.here, what, call_id)

    def finish(self, *, manual_thinking: bool) -> None:
        self.marked()
        if self.due:
            self.unanswered("at the end")
        super().finish(manual_thinking=manual_thinking)

    def place(self, index: int) -> str:
        return f"{self.here}.tool_calls[{index}].id"

    # --- what an assistant says ---------------------------------------------------------------------

    def _unknown(self, message: dict[str, JsonValue], keys: frozenset[str]) -> None:
        for field in sorted(_FIELDS & (message.keys() - keys)):
            self.fault(f"ALL-07 {field}", self.here, f"unknown key {field!r}")
        self.allow_only(self.here, message, keys | _FIELDS)

    def _assistant(self, message: dict[str, JsonValue]) -> None:
        calls = message["tool_calls"] if "tool_calls" in message else None
        if "prefix" in message and message["prefix"] and "prefix" in self.dialect.turns.message_keys:
            # it must be last, and we do not end there
            self.fault("MIS-11", self.here, "an assistant message with prefix")
        if calls is not None and type(calls) is not list:
            self.wanted("a list of tool calls", f"{self.here}.tool_calls", calls)
            calls = []
        reasons = self.carrier is not None and self._reasons(message)
        if not calls:
            self._answer(message, calls)
            return
        if not reasons and self.dialect.reasoning.required == "with_calls":
            self.fault("ALL-02 reasoning", self.here, f"tool calls without {self.dialect.reasoning.carrier}")
        if len(calls) > 1 and not self.dialect.turns.calls_together:
            self.fault("CMP-02", f"{self.here}.tool_calls", f"{len(calls)} tool calls in one message")
        for index, call in enumerate(calls):
            self._call(call, index)
        if self.signing:
            self._signed(calls)

    def _signed(self, calls: list[JsonValue]) -> None:
        """Judge the signatures of calls; the first has one where that is demanded."""
        demanded = self.dialect.reasoning.required == "before_calls"
        for index, call in enumerate(calls):
            extra = call.get("extra_content") if type(call) is dict else None
            google = extra.get("google") if type(extra) is dict else None
            signature = google.get("thought_signature") if type(google) is dict else None
            if (extra is not None or (demanded and not index)) and (
                type(signature) is not str or not signature
            ):
                self.fault("GEM-04", f".tool_calls[{index}]", "the call has no thought_signature")

    def _answer(self, message: dict[str, JsonValue], calls: list[JsonValue] | None) -> None:
        """Judge a message without calls."""
        content = message["content"] if "content" in message else None
        said = content is not None or bool(message.keys() & {"refusal", "audio", "function_call"})
        if not said or (content == "" and not self.dialect.turns.empty_answers):
            self.fault("ALL-11 message", self.here, "an assistant message without tool calls has content")
        if calls is not None and not self.dialect.turns.empty_calls:
            self.fault("ALL-02", f"{self.here}.tool_calls", "a list of at least one tool call")

    def _reasons(self, message: dict[str, JsonValue]) -> bool:
        """Judge the field that carries reasoning, and say whether it holds some."""
        given = message.get(str(self.carrier))
        if given is not None and type(given) is not (list if self.carrier == "reasoning_details" else str):
            self.fault("ALL-02", f".{self.carrier}", f"{kind_of(given)} where reasoning belongs")
        return bool(given)

    def _call(self, call: JsonValue, index: int) -> None:
        where = f".tool_calls[{index}]"
        kind = call["type"] if type(call) is dict and "type" in call else None
        if type(call) is not dict or type(kind) is not str or kind not in CALL_KEYS:
            return self.fault("ALL-02", where, f"a tool call of type {excerpt(kind)}")
        if kind != "function":
            self.known_kind(kind, where)
        if call.keys() != CALL_KEYS[kind]:
            self.allow_only(where, call, self.call_keys[kind])
        call_id = call["id"] if "id" in call else None
        inner = call[kind] if kind in call else None
        if type(call_id) is str:
            self.open_call(call_id, index=index)
        else:
            self.fault("ALL-02 id", f"{where}.id", "a tool call has a string as id")
        if type(inner) is not dict:
            return self.wanted(f"{kind} is an object", where, inner)
        where, key = f"{where}.{kind}", INPUT[kind]
        if inner.keys() != _INNER_KEYS[kind]:
            self.allow_only(where, inner, _INNER_KEYS[kind])
        name = inner["name"] if "name" in inner else None
        return self.given(name, inner[key] if key in inner else None, key, where)

    # --- content ------------------------------------------------------------------------------------

    def _content(self, content: JsonValue, role: str) -> None:
        where = f"{self.here}.content"
        for at, part in self.parts(content, where, "OAC-05"):
            self._part(part, role, at)
        if role == "assistant" and type(content) is list:
            thinks = [type(part) is dict and part.get("type") == "thinking" for part in content]
            if sorted(thinks, reverse=True) != thinks:
                self.fault("ALL-08 thinking", where, "thinking after other content")

    def _part(self, part: JsonValue, role: str, where: str) -> None:
        if type(part) is not dict:
            return self.fault("OAC-05", where, f"a part is an object, not {kind_of(part)}")
        kind = part.get("type")
        if type(kind) is not str or kind not in self._held(role):
            return self.fault("OAC-08", where, f"a part of type {excerpt(kind)} in a message of role {role}")
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
            return _TEXT_ONLY | {
                kind for kind, media in _MEDIA.items() if media in self.dialect.media.result_kinds
            }
        if role == "assistant" and self.dialect.reasoning.carrier == "thinking_chunk":
            return _PARTS[role] | {"thinking"}
        return _PARTS[role]

    def _payload(self, payload: JsonValue, kind: str, where: str) -> None:
        if kind == "thinking":
            if type(payload) is not list or not payload:
                self.fault("ALL-02", where, "thinking is a list of text chunks")
        elif kind in ("text", "refusal"):
            self.text(payload, kind, kind, where)
        elif type(payload) is not dict or not payload:
            self.wanted(f"{kind} is an object", where, payload)
        elif kind == "image_url" and not self.dialect.media.urls and not _inline(payload.get("url")):
            self.fault("ALL-10", where, "an image by address")


def _inline(url: JsonValue) -> bool:
    return type(url) is str and url.startswith("data:")
