"""Define the check state after some messages, and the checks that several families share.

Each family has a class that derives from `AlternatingTurnsState` or `CompleteMessagesState`. The class reads messages
and updates the state: it checks the shape of each message, and whether the message may follow the previous messages.
"""

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache, lru_cache
from typing import Any, ClassVar, Self

import msgspec

from actors.core.check.json_values import Shape, excerpt, kind_of, read_picture, schema_faults, value_at
from actors.core.check.model_settings import relaxed_facts
from actors.core.data.jsonio import JsonValue
from actors.core.data.persistent import NOTHING, PersistentMap
from actors.core.dialects.dialect import Dialect
from actors.core.models.facts import ModelFacts
from actors.errors import Fault

CHOICES = ("anyOf", "oneOf", "allOf")  # keywords that no provider accepts at the root of a tool's schema
_NOTHING: Any = ()  # Any: stands in for an empty dict in stored states, to save memory
_MARKS = 4


@cache
def _name_predicate(pattern: str) -> Callable[[str], object]:
    """Return a function that matches a tool name with `pattern`. Results are cached, because names recur."""
    return lru_cache(maxsize=256)(re.compile(pattern).fullmatch)


class Unusual(Exception):
    """Raised for a message that `CheckState.check_usual` cannot check."""


class CheckState:  # noqa: PLW1641  a state has no hash, because reading messages changes it
    """The state of the check after some messages.

    A session's transcript (lane) keeps one state. For each request, a copy is extended by the new fragment, and the
    lane keeps the copy only if the request is sent. Apart from the used ids, a state does not grow with the messages.

    Attributes:
        container: The key of the array of messages in a request.
        piece: The word for a message in error messages: `message` or `item`.
        open_blocks_key: The key of a message's blocks if a fragment may end inside a message; None in families in which
            fragments contain complete messages.
        marking: The type and the key of a cache mark.
        tool_names, model_name: The declared tools and the model; set only during the check of a complete request.
        strict: Whether JSON inside strings is parsed strictly; set only while messages are read.
        role: The role of the last message on the wire; None before the first.
        message_count: The number of messages. The last message may be incomplete.
        block_count: The number of blocks of the last message.
        open_calls: The calls without a result, in call order.
        answered_calls: The calls answered since the last assistant message.
        used_ids: The ids used in earlier fragments.
        new_ids: The ids used in the current fragment.
        mark_count: The number of cache marks.
        has_short_mark: Whether one of the cache marks has a lifetime of five minutes.
        media_count: The number of attachments.
        document_count: The number of attachments that are documents.
        large_image_count: The number of images that are too large for a request with many images.
    """

    container: ClassVar[str] = "messages"
    open_blocks_key: ClassVar[str | None] = None
    piece: ClassVar[str] = "message"
    marking: ClassVar[tuple[str, str]] = ("ephemeral", "cache_control")
    tool_names: set[str]
    model_name: JsonValue = None

    role: str | None = None
    message_count: int = 0
    block_count: int = 0
    mark_count: int = 0
    media_count: int = 0
    document_count: int = 0
    large_image_count: int = 0
    has_short_mark: bool = False

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.strict = True
        self.is_id: Callable[[str], object] = re.compile(
            dialect.ids.accepted or dialect.ids.pattern
        ).fullmatch
        self.is_name: Callable[[str], object] = _name_predicate(dialect.ids.tool_name_pattern)
        self.used_ids: PersistentMap[str, None] = NOTHING
        self.new_ids: dict[str, None] = {}
        self.open_calls: dict[str, Any] = {}  # Any: each family stores its own data for an open call
        self.answered_calls: dict[str, None] = {}
        self.faults: list[Fault] = []

    def copy(self) -> Self:
        """Return a copy for the next fragment, without the new ids and the faults of the last fragment."""
        copied = object.__new__(type(self))
        # updating `vars(copied)` would slow down later access to attributes and methods
        for name, value in vars(self).items():
            setattr(copied, name, value)
        copied.open_calls, copied.answered_calls = dict(self.open_calls), dict(self.answered_calls)
        copied.new_ids, copied.faults = {}, []
        return copied

    def split_faults(self) -> tuple[Self, list[Fault]]:
        """Return the state, compacted for storage, and the faults found since `copy`."""
        found = self.faults
        if self.new_ids:
            self.used_ids = self.used_ids.update(self.new_ids)
        self.open_calls, self.answered_calls = self.open_calls or _NOTHING, self.answered_calls or _NOTHING
        del self.new_ids, self.faults, self.strict
        return self, found

    def __eq__(self, other: object) -> bool:
        # Equal dialects compile equivalent functions, but Python compares functions by identity, so the comparison
        # skips them.
        compiled = dict.fromkeys(("is_id", "is_name"))
        return type(other) is type(self) and vars(self) | compiled == vars(other) | compiled

    def check_parameters(self, body: dict[str, JsonValue]) -> None:
        """Check the fields of a complete request other than its messages."""
        raise NotImplementedError

    def check_messages(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        """Check messages and update the state.

        If `resumes` is True, the first message contains further blocks of the open message.
        """
        raise NotImplementedError

    @property
    def usual_messages(self) -> msgspec.json.Decoder[list[Any]] | None:  # Any: each family has its own types
        """A decoder of the messages that are usual in this family, or None.

        The decoder checks the keys and the types of their values, so `check_usual` has less to check than
        `check_messages`.
        """
        return None

    def check_usual(self, messages: list[Any]) -> None:  # Any: see `usual_messages`
        """Check messages that `usual_messages` has decoded, and update the state as `check_messages` does.

        If some messages or blocks were already checked, a 0 at the beginning stands for them.

        Raises:
            Unusual: A message must be checked by `check_messages`.
        """
        raise NotImplementedError

    def check_end(self, *, manual_thinking: bool) -> None:
        """Check that a request may end here: every call has a result, and the last message has an accepted role."""
        if self.open_calls:
            self.report_unanswered("at the end")
        if self.role is None and (self.open_blocks_key or not self.message_count):
            self.fault("ALL-02 nothing", self.container, f"the request must have at least one {self.piece}")
        elif self.role not in self.dialect.turns.last_roles and not self.is_paused():
            self.fault("ALL-05", self.message_path, f"a request cannot end with role {self.role or 'system'}")
        if self.mark_count > _MARKS:
            self.fault("ANT-32 mark", "request", f"{self.mark_count} cache marks, at most {_MARKS}")

    def is_paused(self) -> bool:
        """Return True if the provider may have paused the last turn. Then the request may end with this turn."""
        return False  # only in `anthropic` may a request end with a turn that the provider has paused

    def fault(self, rule: str, path: str, problem: str, *call_ids: str) -> None:
        """Record a broken rule.

        Args:
            rule: The rule's id, optionally followed by a space and a word for the case (see `rule_id`).
            path: A path in the request. An empty path, or a path that begins with a dot, is relative to `block_path`.
            problem: The description of the fault.
            call_ids: The ids of the affected calls, on the wire.
        """
        from actors.core.rulebook import (
            FAULTS,
            RULES,
            rule_id,
        )  # imported here, because few requests break a rule

        rule = rule_id(self.dialect, *rule.split(maxsplit=1))
        path = path if path and path[0] != "." else self.block_path + path
        kind = FAULTS[RULES[rule].fault_class]
        self.faults.append(kind(f"{path}: {problem} ({rule})", call_ids=call_ids, rule=rule))

    def reject_type(self, requirement: str, path: str, value: JsonValue) -> None:
        """Record that a value has a wrong type. The `requirement` is a phrase such as `must be a list`."""
        self.fault("ALL-02", path, f"{requirement}, not {kind_of(value)}")

    @property
    def message_path(self) -> str:
        """The path of the last message, such as `messages[3]`."""
        return f"{self.container}[{self.message_count - 1}]"

    @property
    def block_path(self) -> str:
        """The path of the current block, such as `messages[3].content[0]`.

        In families without open messages, this is the path of the message.
        """
        return (
            f"{self.message_path}.{self.open_blocks_key}[{self.block_count}]"
            if self.open_blocks_key
            else self.message_path
        )

    def checked_fields(self, value: JsonValue, shape: Shape, path: str = "") -> dict[str, JsonValue] | None:
        """Check the keys of an object and return the object.

        If the value is not an object, record a fault and return None.
        """
        if type(value) is not dict or value.keys() - shape:
            if type(value := self.normalize_keys(value)) is not dict:
                self.reject_type("must be an object", path, value)
                return None
            self.allow_only(path, value, shape)
        return value

    def normalize_keys(self, value: JsonValue) -> JsonValue:
        """Return an object with its keys in their standard spelling."""
        return value  # only `gemini` accepts a second spelling of keys

    def allow_only(
        self, path: str, value: dict[str, JsonValue], keys: Collection[str], rule: str = "ALL-07"
    ) -> None:
        """Record a fault if an object has a key that is not in `keys`."""
        if value.keys() - keys:
            unknown = ", ".join(excerpt(key) for key in value if key not in keys)
            self.fault(rule, path, f"unknown key {unknown}")

    def count_attachment(self, kind: str, path: str = "") -> None:
        """Count an image or document, and record a fault if the request now has too many."""
        rules, held = self.dialect.media, "exceeds the maximum of"
        self.media_count += 1
        self.document_count += kind == "document"
        if (most := rules.max_count) is not None and self.media_count > most:
            self.fault("ALL-15", path, f"attachment {self.media_count} {held} {most}")
        elif (
            kind == "image"
            and (most := self.dialect.model.image_count) is not None
            and self.image_count > most
        ):
            self.fault("ALL-15", path, f"image {self.image_count} {held} {most}")
        if kind == "document" and (most := rules.max_documents) is not None and self.document_count > most:
            self.fault("ALL-15 documents", path, f"document {self.document_count} {held} {most}")

    @property
    def image_count(self) -> int:
        """The number of images in the request."""
        return self.media_count - self.document_count

    def check_image(self, data: JsonValue, media_type: JsonValue, path: str = "") -> None:
        """Check a base64 image: its media type, its size in pixels, and the number of images in the request."""
        facts, read = self.dialect.model, read_picture(data)
        if read is None:
            return
        kind, side = read
        if media_type != kind:
            self.fault("ANT-61", path, f"the image has type {kind}, but is labelled {excerpt(media_type)}")
        few, most = facts.many_images, facts.many_images_side
        if facts.image_side is not None and side > facts.image_side:
            self.fault("ANT-58", path, f"the image has a side of {side} pixels, at most {facts.image_side}")
        elif most is not None and side > most:
            self.large_image_count += 1
        if self.large_image_count and self.image_count > few:
            what = (
                f"the request has {self.image_count} images, so no image may have a side above {most} pixels"
            )
            self.fault("ANT-59", path, what)

    def check_mark(self, mark: JsonValue, path: str = "") -> None:
        """Check and count a cache mark. Marks with a lifetime of one hour must precede those of five minutes."""
        kind, key = self.marking
        ttl = mark.get("ttl", "5m") if type(mark) is dict else None
        if type(mark) is not dict or mark.get("type") != kind or ttl not in ("5m", "1h"):
            return self.fault("ALL-02", path, f"{key} must have type {kind}, and ttl 5m or 1h")
        self.mark_count += 1
        if ttl == "1h" and self.has_short_mark:
            self.fault("ANT-34 mark", path, "a 1h cache mark must not follow a 5m cache mark")
        self.has_short_mark = self.has_short_mark or ttl == "5m"
        return None

    def check_tool_name(self, name: JsonValue, path: str = "") -> None:
        if type(name) is not str or not self.is_name(name):
            self.fault(
                "ALL-02 name", f"{path}.name", f"tool name {excerpt(name)} is not in the required format"
            )

    def check_id(self, call_id: JsonValue, path: str = ".id") -> None:
        if type(call_id) is not str:
            self.fault("ALL-03", path, f"id {excerpt(call_id)} is not in the required format")
        elif not self.is_id(call_id):
            long = f" of {len(call_id)} characters" if len(call_id) > self.dialect.ids.max_len else ""
            what = f"id {excerpt(call_id)}{long} is {'too long' if long else 'not in the required format'}"
            self.fault("ALL-03 long" if long else "ALL-03", path, what, call_id)

    def use_id(self, call_id: str) -> None:
        """Record that an id is used. If the id was used before, record a fault."""
        if call_id in self.new_ids or call_id in self.used_ids:
            self.fault("ALL-04", ".id", f"id {excerpt(call_id)} is already used", call_id)
        self.new_ids[call_id] = None

    def open_call(self, call_id: JsonValue, path: str = ".id", data: object = None) -> None:
        """Check the id of a call, and record that the call needs a result.

        `data` is stored with the call. It is specific to the family.
        """
        if type(call_id) is not str or not self.is_id(call_id):
            self.check_id(call_id, path)
            if type(call_id) is not str:
                return
        taken = call_id in self.new_ids or call_id in self.used_ids
        if call_id in self.open_calls or (taken and self.dialect.ids.unique_scope == "transcript"):
            self.fault("ALL-04", path, f"id {excerpt(call_id)} is already used", call_id)
        self.new_ids[call_id] = None
        self.open_calls[call_id] = data

    def report_unanswered(self, when: str) -> None:
        """Record a fault for the calls without a result, and close these calls.

        `when` is the end of the fault's description, such as `at the end`.
        """
        ids = tuple(self.open_calls)
        names = ", ".join(map(excerpt, ids))
        self.fault("OAC-01 open", self.message_path, f"no result for tool call {names} {when}", *ids)
        self.open_calls.clear()

    def check_model(self, model: JsonValue) -> None:
        self.model_name = model
        if type(model) is not str or not model:
            self.fault("ALL-02 model", "model", f"must be a model name, not {excerpt(model)}")

    def model_facts(self, model: JsonValue) -> ModelFacts:
        """Return the model facts against which a request is checked."""
        return relaxed_facts(self.dialect, model)

    def check_limit(self, limit: JsonValue, path: str) -> None:
        if type(limit) is not int or limit < 1:
            self.fault("ALL-02", path, f"must be an integer of at least 1, not {excerpt(limit)}")

    def checked_items(
        self, value: JsonValue, path: str, plural: str, *, non_empty: bool = False
    ) -> list[tuple[str, JsonValue]]:
        """Return (path, item) pairs of a list.

        Record a fault if the value is not a list, or if it is empty and `non_empty` is True. The fault calls the items
        `plural`, such as `blocks`.
        """
        if type(value) is list and (value or not non_empty):
            return [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        self.reject_type(f"must be a {'non-empty ' if non_empty else ''}list of {plural}", path, value)
        return []

    def declare_tool(self, name: JsonValue, path: str) -> None:
        """Check the name of a declared tool, and record the name for `check_choice`."""
        self.check_tool_name(name, path)
        if type(name) is str and name in self.tool_names:
            self.fault("ALL-13", f"{path}.name", f"tool name {excerpt(name)} is declared twice")
        elif type(name) is str and self.is_name(name):
            self.tool_names.add(name)

    def check_choice(self, name: JsonValue, path: str) -> None:
        """Record a fault if a tool choice names a tool that is not declared."""
        if type(name) is not str or name not in self.tool_names:
            self.fault("ALL-14", path, f"tool {excerpt(name)} is not declared")

    def check_schema(self, schema: JsonValue, path: str, refused: Iterable[str] = CHOICES) -> bool:
        """Check a tool's schema. Return True if it has no fault.

        The root of the schema must not contain the keywords in `refused`.
        """
        typed = value_at(schema, "type") == "object"
        found = [keyword for keyword in refused if type(schema) is dict and keyword in schema]
        if not typed:
            self.fault("ALL-02 schema", path, "must be a JSON Schema of type object")
        elif found:
            self.fault("ALL-02 schema", path, f"the root of the JSON Schema must not contain {found[0]}")
        inside_faults = list(schema_faults(schema, self.dialect, self.model_name)) if typed else []
        for rule, what in inside_faults:
            self.fault(rule, path, what)
        return typed and not found and not inside_faults
