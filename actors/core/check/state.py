"""The state of the judge after some messages, and the checks that several families share.

The subclass of a family reads messages and updates the state: it judges the shape of each message, and its role after
the previous ones.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import msgspec

from actors.core.check.model_settings import judged_facts
from actors.core.check.pictures import read_picture
from actors.core.check.schemas import schema_faults
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.data.persistent_map import NOTHING, PersistentMap
from actors.core.dialects.dialect import Dialect
from actors.core.models.facts import ModelFacts
from actors.errors import Fault

Shape: TypeAlias = Mapping[str, JsonValue]
"""The keys that an object may have, each with its default."""
CHOICES = ("anyOf", "oneOf", "allOf")  # keywords that no provider accepts at the root of a tool's schema
KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}
_QUICK = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOTHING: Any = ()  # Any: stands for an empty dict at no cost
_MARKS = 4
ROOTLESS = (*CHOICES, "enum", "not")  # keywords that OpenAI rejects at the root of a schema
# The key of a call's arguments, by its kind: an object as a string, or any string.
INPUT = {"function": "arguments", "custom": "input"}


def shape(keys: str, **defaults: JsonValue) -> dict[str, JsonValue]:
    """Return the shape of an object with these keys. The default of a key is null unless `defaults` has it."""
    return dict.fromkeys(keys.split()) | defaults


def inside(value: JsonValue, *keys: str) -> JsonValue:
    """Return the value at a path of keys; None if it is absent."""
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value


def why_no_object(text: JsonValue, *, strict: bool = True) -> str:
    """Return why `text` is not a JSON object written as a string, or an empty string if it is one."""
    if type(text) is not str:
        return "not a string"
    try:
        value = parse(text.encode()) if strict else _QUICK.decode(text)
    except (JsonRefused, msgspec.DecodeError, RecursionError):
        return "not JSON"
    return "" if type(value) is dict else "not an object"


def excerpt(value: JsonValue) -> str:
    """Return any value as one short line, for the message of a fault."""
    if isinstance(value, dict | list):
        return kind_of(value)
    text = ascii(value if type(value) is not str else value[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def kind_of(value: JsonValue) -> str:
    """Return the JSON name of a value's type."""
    return KINDS.get(type(value), "a number")


@cache
def _names(pattern: str) -> Callable[[str], object]:
    """Return a cached test of names against a pattern, because the same few tools are called repeatedly."""
    return lru_cache(maxsize=256)(re.compile(pattern).fullmatch)


class CheckState:  # noqa: PLW1641  it has no hash, since it is changed while it is read into
    """The state of the judge after some messages.

    A lane keeps one state, extends a copy by a fragment, and keeps the copy only if the request is sent. The size of a
    state does not grow with the messages, except for the used ids.

    Attributes:
        container: The key of the array of messages in a request. Faults call its items `piece`.
        opens: The key of the list of blocks in which a fragment leaves its last message open; None in families with
            complete messages.
        marking: The type and the key of a cache mark.
        names, model_name: The declared tools and the model, only during the check of a complete request.
        strict: Whether JSON inside strings is parsed strictly, only during reading.
        role: The role of the last message on the wire; None before the first.
        count, blocks: The number of messages, and the number of blocks of the last one, which may still be open.
        due, answered: The calls without a result, in call order; the calls answered since the last assistant message.
        used, fresh: The ids of earlier fragments, and those of the current fragment.
        marks, short: The number of cache marks; whether one of them has a lifetime of five minutes.
        media, documents: The number of attachments, and of documents among them.
        large: The number of images that are too large for a request with many images.
    """

    container: ClassVar[str] = "messages"
    opens: ClassVar[str | None] = None
    piece: ClassVar[str] = "message"
    marking: ClassVar[tuple[str, str]] = ("ephemeral", "cache_control")
    names: set[str]
    model_name: JsonValue = None

    role: str | None = None
    count: int = 0
    blocks: int = 0
    marks: int = 0
    media: int = 0
    documents: int = 0
    large: int = 0
    short: bool = False

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.strict = True
        self.is_id: Callable[[str], object] = re.compile(
            dialect.ids.accepted or dialect.ids.pattern
        ).fullmatch
        self.is_name: Callable[[str], object] = _names(dialect.ids.tool_name_pattern)
        self.used: PersistentMap[str, None] = NOTHING
        self.fresh: dict[str, None] = {}
        self.due: dict[str, Any] = {}  # Any: the data of an open call, by family
        self.answered: dict[str, None] = {}
        self.faults: list[Fault] = []

    def copy(self) -> Self:
        copied = object.__new__(type(self))
        for name, value in vars(
            self
        ).items():  # updating `vars(copied)` would slow down attributes and methods
            setattr(copied, name, value)
        copied.due, copied.answered, copied.fresh, copied.faults = dict(self.due), dict(self.answered), {}, []
        return copied

    def split_faults(self) -> tuple[Self, list[Fault]]:
        """Return the state in its compact form, and the faults found since its copy."""
        found = self.faults
        if self.fresh:
            self.used = self.used.update(self.fresh)
        self.due, self.answered = self.due or _NOTHING, self.answered or _NOTHING
        del self.fresh, self.faults, self.strict
        return self, found

    def __eq__(self, other: object) -> bool:
        # These follow from the dialect, and compiled patterns do not compare equal.
        compiled = dict.fromkeys(("is_id", "is_name"))
        return type(other) is type(self) and vars(self) | compiled == vars(other) | compiled

    def parameters(self, body: dict[str, JsonValue]) -> None:
        raise NotImplementedError

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        """Read messages. If `resumes` is true, the first one contains further blocks of the open message."""
        raise NotImplementedError

    def finish(self, *, manual_thinking: bool) -> None:
        if self.due:
            self.fault_unanswered("at the end")
        if self.role is None and (self.opens or not self.count):
            self.fault("ALL-02 nothing", self.container, f"there is no {self.piece}")
        elif self.role not in self.dialect.turns.last_roles and not self.is_paused():
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role or 'system'}")
        if self.marks > _MARKS:
            self.fault("ANT-32 mark", "request", f"{self.marks} cache marks, at most {_MARKS}")

    def is_paused(self) -> bool:
        return False  # in one family, a request may end with a turn that the provider has paused

    def fault(self, rule: str, where: str, what: str, *call_ids: str) -> None:
        """Record that a rule is broken.

        Args:
            rule: The rule's id, and optionally a word for the case (`rule_id`).
            where: A path in the request. An empty path, or one that begins with a dot, is relative to `at`.
            what: The description of the fault.
            call_ids: The ids of the affected calls, on the wire.
        """
        from actors.core.rulebook import FAULTS, RULES, rule_id  # few requests break a rule

        rule = rule_id(self.dialect, *rule.split(maxsplit=1))
        where = where if where and where[0] != "." else self.at + where
        kind = FAULTS[RULES[rule].fault_class]
        self.faults.append(kind(f"{where}: {what} ({rule})", call_ids=call_ids, rule=rule))

    def reject(self, what: str, where: str, value: JsonValue) -> None:
        self.fault("ALL-02", where, f"{what}, not {kind_of(value)}")

    @property
    def here(self) -> str:
        return f"{self.container}[{self.count - 1}]"

    @property
    def at(self) -> str:
        return f"{self.here}.{self.opens}[{self.blocks}]" if self.opens else self.here

    def fields(self, value: JsonValue, shape: Shape, where: str = "") -> dict[str, JsonValue] | None:
        """Return an object after a check of its keys. If the value is not an object, record a fault and return None."""
        if type(value) is not dict or value.keys() - shape:
            if type(value := self.normalize_keys(value)) is not dict:
                self.reject("an object", where, value)
                return None
            self.allow_only(where, value, shape)
        return value

    def normalize_keys(self, value: JsonValue) -> JsonValue:
        return value  # one family accepts a second spelling of keys

    def allow_only(
        self, where: str, value: dict[str, JsonValue], keys: Collection[str], rule: str = "ALL-07"
    ) -> None:
        if value.keys() - keys:
            unknown = ", ".join(excerpt(key) for key in value if key not in keys)
            self.fault(rule, where, f"unknown key {unknown}")

    def count_attachment(self, kind: str, where: str = "") -> None:
        rules, held = self.dialect.media, "exceeds the maximum of"
        self.media += 1
        self.documents += kind == "document"
        if (most := rules.max_count) is not None and self.media > most:
            self.fault("ALL-15", where, f"attachment {self.media} {held} {most}")
        elif kind == "image" and (most := self.dialect.model.image_count) is not None and self.images > most:
            self.fault("ALL-15", where, f"image {self.images} {held} {most}")
        if kind == "document" and (most := rules.max_documents) is not None and self.documents > most:
            self.fault("ALL-15 documents", where, f"document {self.documents} {held} {most}")

    @property
    def images(self) -> int:
        return self.media - self.documents

    def check_image(self, data: JsonValue, media_type: JsonValue, where: str = "") -> None:
        """Judge an image given by value: its type, its sides, and the number of images in the request."""
        facts, read = self.dialect.model, read_picture(data)
        if read is None:
            return
        kind, side = read
        if media_type != kind:
            self.fault("ANT-61", where, f"an image of type {kind}, labelled {excerpt(media_type)}")
        few, most = facts.many_images, facts.many_images_side
        if facts.image_side is not None and side > facts.image_side:
            self.fault("ANT-58", where, f"an image with a side of {side} pixels, at most {facts.image_side}")
        elif most is not None and side > most:
            self.large += 1
        if self.large and self.images > few:
            self.fault("ANT-59", where, f"{self.images} images, one of them with a side above {most} pixels")

    def check_mark(self, mark: JsonValue, where: str = "") -> None:
        """Judge and count a cache mark. Marks of an hour must precede all marks of five minutes."""
        kind, key = self.marking
        ttl = mark.get("ttl", "5m") if type(mark) is dict else None
        if type(mark) is not dict or mark.get("type") != kind or ttl not in ("5m", "1h"):
            return self.fault("ALL-02", where, f"{key} is of type {kind}, ttl 5m or 1h")
        self.marks += 1
        if ttl == "1h" and self.short:
            self.fault("ANT-34 mark", where, "a 1h cache mark after a 5m mark")
        self.short = self.short or ttl == "5m"
        return None

    def check_tool_name(self, name: JsonValue, where: str = "") -> None:
        if type(name) is not str or not self.is_name(name):
            self.fault("ALL-02 name", f"{where}.name", f"tool name {excerpt(name)}")

    def check_id(self, call_id: JsonValue, where: str = ".id") -> None:
        if type(call_id) is not str:
            self.fault("ALL-03", where, f"id {excerpt(call_id)} is not in the required format")
        elif not self.is_id(call_id):
            long = f" of {len(call_id)} characters" if len(call_id) > self.dialect.ids.max_len else ""
            what = f"id {excerpt(call_id)}{long} is {'too long' if long else 'not in the required format'}"
            self.fault("ALL-03 long" if long else "ALL-03", where, what, call_id)

    def use_id(self, call_id: str) -> None:
        if call_id in self.fresh or call_id in self.used:
            self.fault("ALL-04", ".id", f"id {excerpt(call_id)} is already used", call_id)
        self.fresh[call_id] = None

    def open_call(self, call_id: JsonValue, where: str = ".id", known: object = None) -> None:
        """Judge the id of a call, and record that the call needs a result."""
        if type(call_id) is not str or not self.is_id(call_id):
            self.check_id(call_id, where)
            if type(call_id) is not str:
                return
        taken = call_id in self.fresh or call_id in self.used
        if call_id in self.due or (taken and self.dialect.ids.unique_scope == "transcript"):
            self.fault("ALL-04", where, f"id {excerpt(call_id)} is already used", call_id)
        self.fresh[call_id] = None
        self.due[call_id] = known

    def fault_unanswered(self, when: str) -> None:
        ids = tuple(self.due)
        names = ", ".join(map(excerpt, ids))
        self.fault("OAC-01 open", self.here, f"no result for tool call {names} {when}", *ids)
        self.due.clear()

    def check_model(self, model: JsonValue) -> None:
        self.model_name = model
        if type(model) is not str or not model:
            self.fault("ALL-02 model", "model", f"a model name, not {excerpt(model)}")

    def facts(self, model: JsonValue) -> ModelFacts:
        """Return the facts to judge a request by, from the name of its model."""
        return judged_facts(self.dialect, model)

    def check_limit(self, limit: JsonValue, where: str) -> None:
        if type(limit) is not int or limit < 1:
            self.fault("ALL-02", where, f"a whole number from 1, not {excerpt(limit)}")

    def each(
        self, value: JsonValue, where: str, what: str, *, filled: bool = False
    ) -> list[tuple[str, JsonValue]]:
        """Return (path, item) pairs of a list. Record a fault if the value is no list, or empty though `filled`."""
        if type(value) is list and (value or not filled):
            return [(f"{where}[{index}]", item) for index, item in enumerate(value)]
        self.reject(f"a list {'with' if filled else 'of'} {what}", where, value)
        return []

    def declare_tool(self, name: JsonValue, where: str) -> None:
        self.check_tool_name(name, where)
        if type(name) is str and name in self.names:
            self.fault("ALL-13", f"{where}.name", f"tool name {excerpt(name)} is declared twice")
        elif type(name) is str and self.is_name(name):
            self.names.add(name)

    def check_choice(self, name: JsonValue, where: str) -> None:
        if type(name) is not str or name not in self.names:
            self.fault("ALL-14", where, f"tool {excerpt(name)} is not declared")

    def check_schema(self, schema: JsonValue, where: str, refused: Iterable[str] = CHOICES) -> bool:
        """Judge a tool's schema, and return True if it has no fault."""
        typed = inside(schema, "type") == "object"
        found = [keyword for keyword in refused if type(schema) is dict and keyword in schema]
        if not typed:
            self.fault("ALL-02 schema", where, "a JSON Schema of type object")
        elif found:
            self.fault("ALL-02 schema", where, f"a JSON Schema without {found[0]} at its root")
        inside_faults = list(schema_faults(schema, self.dialect, self.model_name)) if typed else []
        for rule, what in inside_faults:
            self.fault(rule, where, what)
        return typed and not found and not inside_faults


class Whole(CheckState):
    """The common part of OpenAI's two protocols: complete messages, and arguments as strings."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.longest: int = dialect.turns.max_string or sys.maxsize

    def check_arguments(self, name: JsonValue, judge_call: JsonValue, key: str, where: str) -> None:
        """Judge the tool name of a call, and its arguments, which are under `key`."""
        if type(name) is not str or not self.is_name(name):
            self.check_tool_name(name, where)
        if key == "arguments":
            why = why_no_object(judge_call, strict=self.strict)
        else:
            why = "" if type(judge_call) is str else "not a string"
        if why:
            self.fault("ALL-06", f"{where}.{key}", f"{excerpt(judge_call)} is {why}")
        elif type(judge_call) is str and len(judge_call) > self.longest:
            self.check_length(judge_call, f"{where}.{key}")

    def parts(self, content: JsonValue, where: str, rule: str) -> list[tuple[str, JsonValue]]:
        """Return (path, part) pairs of a content. A string has none."""
        if type(content) is str:
            self.check_length(content, where)
        elif type(content) is not list:
            self.fault(rule, where, f"a string or a list of parts, not {kind_of(content)}")
        elif not content:
            self.fault("ALL-11", where, "the list of parts is empty")
        return self.each(content, where, "parts") if type(content) is list else []

    def check_text(self, text: JsonValue, key: str, kind: str, where: str) -> None:
        if type(text) is not str:
            self.reject(f"{key} is a string", where, text)
        elif not text and self.dialect.turns.drop_empty_text:
            self.fault("ALL-11 part", where, f"the {kind} part is empty")
        else:
            self.check_length(text, where)

    def check_length(self, text: str, where: str) -> None:
        if len(text) > self.longest:
            self.fault("ALL-02 long", where, f"a string of {len(text)} characters, at most {self.longest}")


class Turns(CheckState):
    """The common part of three protocols: two roles take turns, and results are blocks of user messages.

    Results follow at the beginning of the user message after the calls. The last message of a fragment may be
    incomplete, so checks of complete messages run when the next message begins, or at the end.

    Attributes:
        model: The model's role on the wire.
        may_end_empty: Whether the last message of the model may be empty.
        mixed: Whether the last user message contains other blocks than results.
        split: Whether the last user message follows another user message that left calls without a result.
    """

    opens: ClassVar[str | None] = "content"
    model: ClassVar[str] = "assistant"
    may_end_empty: ClassVar[bool] = False

    mixed: bool = False
    split: bool = False
    role: str | None
    count: int
    blocks: int

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        key, model = str(self.opens), self.model
        for value in messages:
            if type(value) is not dict:
                self.count += 1
                self.reject("a message is an object", self.here, value)
                continue
            given = value["role"] if "role" in value else None
            role = "user" if given == "user" else model
            if resumes:
                resumes = False
            elif role == given:
                if not self.blocks and self.role is not None:
                    self.fault("ALL-11", self.here, "the message is empty")
                self.begin(role)
                self.count += 1
                if role == self.role and not self.continues_turn(role):
                    self.fault("CMP-01 turns", self.here, f"role {role} twice in a row")
                elif self.role is None and role not in self.dialect.turns.first_roles:
                    self.fault("ALL-09", self.here, f"a transcript cannot begin with role {role}")
                self.role, self.blocks = role, 0
            else:
                self.count += 1
                if self.read_other_role(value, given):
                    continue
                self.fault(
                    "ALL-02 role", self.here, f"role {excerpt(given)} is neither user nor {self.model}"
                )
                continue
            if len(value) != 2 or key not in value:
                self.allow_only(self.here, value, ("role", key))
            self.content(value[key] if key in value else None)

    def read_other_role(self, message: dict[str, JsonValue], role: JsonValue) -> bool:
        """Judge a message with another role, and return True if the family has such a role."""
        return False

    def continues_turn(self, role: str) -> bool:
        """Return True if a message may follow another message of the same role."""
        return False

    def begin(self, role: str) -> None:
        """Judge the complete previous message when a message of `role` begins, and reset its attributes."""
        raise NotImplementedError

    def content(self, content: JsonValue) -> None:
        if type(content) is list:
            for block in content:
                self.block(block)
                self.blocks += 1
        else:
            self.reject("a list of blocks", f"{self.here}.{self.opens}", content)
            self.blocks += 1  # avoids a second fault for an empty message

    def block(self, block: JsonValue) -> None:
        raise NotImplementedError

    def finish(self, *, manual_thinking: bool) -> None:
        super().finish(manual_thinking=manual_thinking)
        if self.role and not self.blocks and (self.role == "user" or not self.may_end_empty):
            self.fault("ALL-11", self.here, "the message is empty")

    def answer(self, call_id: JsonValue, key: str) -> None:
        """Judge the position of a result, and remove its call from `due`."""
        if type(call_id) is not str:
            self.reject(f"{key} is a string", "", call_id)
        elif call_id in self.due:
            if self.mixed:
                what = f"the result of {excerpt(call_id)} follows other content"
                self.fault("ANT-03 order", "", what, call_id)
            if self.split:
                what = f"the result of {excerpt(call_id)} is in a second user message"
                self.fault("ANT-12", "", what, call_id)
            del self.due[call_id]
            self.answered[call_id] = None
        elif call_id in self.answered:
            self.fault("OAC-02 second", "", f"a second result for tool call {excerpt(call_id)}", call_id)
        else:
            what = f"a result for {excerpt(call_id)}, but the previous message has no such call"
            self.fault("OAC-02 stray", "", what, call_id)
