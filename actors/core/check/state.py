"""Where the judge stands after some messages, and what every family asks of the next ones.

A family's subclass reads messages and changes with each of them: it judges their shape, and what they may mean
behind the ones before.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, Self

from actors.core.check.words import CHOICES, Shape, excerpt, kind_of, listed
from actors.core.dialect import Dialect
from actors.core.jsonio import JsonValue
from actors.core.rulebook import FAULTS, RULES, cited
from actors.core.table import Table, nothing
from actors.errors import Fault

_NOTHING: Any = ()  # Any: stands for an empty dict or set at no cost
_MARKS = 4


@cache
def _form(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern).fullmatch


class CheckState:
    """A lane keeps one, tries a fragment on a copy, and keeps the copy only if the request is sent.

    Its size does not grow with the messages, but for the used ids.

    Attributes:
        container: Key of the array of messages in a request.
        opens: Key of the list of blocks in which a fragment leaves its last message open; None where messages are
            whole.
        piece: What the array is made of, as faults name it.
        marking: The type of a cache mark, and the key under which it stands.
        names: The tools that the request declares; only while a whole request is read.
        strict: Whether JSON inside texts is read as strictly as the whole was.
        role: Role of the last message, as the wire spells it; None before the first.
        count: Messages so far.
        blocks: Blocks of the last message, which is still open in a family that leaves it so.
        due: The calls that wait for their result, in call order.
        answered: The calls answered since the last assistant message.
        used: Every id so far; those of the current fragment are in `fresh`.
        marks: Cache marks so far.
        short: One of them is for five minutes.
        media, documents: Attachments so far, and how many of them are documents.
    """

    container: ClassVar[str] = "messages"
    opens: ClassVar[str | None] = None
    piece: ClassVar[str] = "message"
    marking: ClassVar[tuple[str, str]] = ("ephemeral", "cache_control")
    names: set[str]

    marks = 0
    short = False
    role: str | None = None
    count = 0
    blocks = 0
    media = 0
    documents = 0

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.strict = True
        self.is_id = _form(dialect.ids.accepted or dialect.ids.pattern)
        self.is_name = _form(dialect.ids.tool_name_pattern)
        self.used: Table[str, None] = nothing()
        self.fresh: dict[str, None] = {}
        self.due: dict[str, Any] = {}  # Any: what a family must know of an open call
        self.answered: set[str] = set()
        self.faults: list[Fault] = []

    def copy(self) -> Self:
        """Return a state that may be changed, and has no faults yet."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made.due, made.answered, made.fresh, made.faults = dict(self.due), set(self.answered), {}, []
        made.strict = True
        return made

    def settled(self) -> tuple[Self, list[Fault]]:
        """Return the state as it is kept, in little room, and the faults met on the way to it."""
        found = self.faults
        if self.fresh:
            self.used = self.used.update(self.fresh)
        self.due, self.answered = self.due or _NOTHING, self.answered or _NOTHING
        del self.fresh, self.faults, self.strict
        return self, found

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # it is changed while it is read into

    def parameters(self, body: dict[str, JsonValue]) -> None:
        """Judge what a request holds beside its messages."""
        raise NotImplementedError

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        """Read messages. If it `resumes`, the first holds what follows in the message that was left open."""
        raise NotImplementedError

    def finish(self, *, manual_thinking: bool) -> None:
        """Judge the end of the transcript as if it were sent now."""
        if self.due:
            self.unanswered("at the end")
        if self.role is None and (self.opens or not self.count):
            self.fault("ALL-02 nothing", self.container, f"there is no {self.piece}")
        elif self.role not in self.dialect.turns.last_roles:
            self.fault("ALL-05", self.here, f"a request cannot end with role {self.role or 'system'}")
        if self.marks > _MARKS:
            self.fault("ANT-32 mark", "request", f"{self.marks} cache marks, at most {_MARKS}")

    def fault(self, rule: str, where: str, what: str, *call_ids: str) -> None:
        """Record that `rule` is broken; a word for the case may follow its id (`cited`).

        `where` is a place in the request; what is empty or begins with a dot goes on behind `at`.
        """
        rule = cited(self.dialect, *rule.split(maxsplit=1))
        where = where if where and where[0] != "." else self.at + where
        kind = FAULTS[RULES[rule].fault_class]
        self.faults.append(kind(f"{where}: {what} ({rule})", call_ids=call_ids, rule=rule))

    def wanted(self, what: str, where: str, value: JsonValue) -> None:
        """Record that something of another type stands where `what` belongs."""
        self.fault("ALL-02", where, f"{what}, not {kind_of(value)}")

    @property
    def here(self) -> str:
        """The current message, as faults name it."""
        return f"{self.container}[{self.count - 1}]"

    @property
    def at(self) -> str:
        """The current block, or the message where messages are whole, as faults name it."""
        return f"{self.here}.{self.opens}[{self.blocks}]" if self.opens else self.here

    def fields(self, value: JsonValue, shape: Shape, where: str = "") -> dict[str, JsonValue] | None:
        """Return an object, its keys judged; None, with a fault, if it is none."""
        if type(value) is not dict or not value.keys() <= shape.keys():
            if type(value := self.spelt(value)) is not dict:
                self.wanted("an object", where, value)
                return None
            self.allow_only(where, value, shape)
        return value

    def spelt(self, value: JsonValue) -> JsonValue:
        """Return an object with its keys in their first spelling; there is a second in one family."""
        return value

    def allow_only(self, where: str, value: dict[str, JsonValue], keys: Iterable[str]) -> None:
        """Record the keys of `value` that are not among `keys`, if there are any."""
        if unknown := [excerpt(key) for key in value if key not in keys]:
            self.fault("ALL-07", where, "unknown key " + ", ".join(unknown))

    def attach(self, kind: str, where: str = "") -> None:
        """Count an attachment, and judge whether the request may hold it."""
        rules = self.dialect.media
        self.media += 1
        if rules.max_count is not None and self.media > rules.max_count:
            self.fault(
                "ALL-15", where, f"attachment {self.media} of a request that may hold {rules.max_count}"
            )
        self.documents += kind == "document"
        if kind == "document" and rules.max_documents is not None and self.documents > rules.max_documents:
            what = f"document {self.documents} of a request that may hold {rules.max_documents}"
            self.fault("ALL-15 documents", where, what)

    def mark(self, mark: JsonValue, where: str = "") -> None:
        """Judge a cache mark, and count it. An hour's comes before all that are for five minutes."""
        kind, key = self.marking
        ttl = mark.get("ttl", "5m") if type(mark) is dict else None
        if type(mark) is not dict or mark.get("type") != kind or ttl not in ("5m", "1h"):
            return self.fault("ALL-02", where, f"{key} is of type {kind}, ttl 5m or 1h")
        self.marks += 1
        if ttl == "1h" and self.short:
            self.fault("ANT-34 mark", where, "a 1h cache mark after a 5m mark")
        self.short = self.short or ttl == "5m"
        return None

    def named(self, name: JsonValue, where: str = "") -> None:
        """Judge the name of a tool."""
        if type(name) is not str or not self.is_name(name):
            self.fault("ALL-02 name", f"{where}.name", f"tool name {excerpt(name)}")

    def identified(self, call_id: JsonValue, where: str = ".id") -> None:
        """Judge the form of a call's id."""
        if type(call_id) is not str:
            self.fault("ALL-03", where, f"id {excerpt(call_id)} is not of the form")
        elif len(call_id) > self.dialect.ids.max_len and not self.is_id(call_id):
            what = f"id {excerpt(call_id)} of {len(call_id)} characters is too long"
            self.fault("ALL-03 long", where, what, call_id)
        elif not self.is_id(call_id):
            self.fault("ALL-03", where, f"id {excerpt(call_id)} is not of the form", call_id)

    def take(self, call_id: str, where: str = ".id") -> None:
        """Note an id as used, and judge that it was not."""
        if call_id in self.fresh or call_id in self.used:
            self.fault("ALL-04", where, f"id {excerpt(call_id)} is taken", call_id)
        self.fresh[call_id] = None

    def open_call(self, call_id: JsonValue, where: str = ".id", known: object = None) -> None:
        """Note that a call waits for its result, and judge its id."""
        if type(call_id) is not str or not self.is_id(call_id):
            self.identified(call_id, where)
            if type(call_id) is not str:
                return
        taken = call_id in self.fresh or call_id in self.used
        if call_id in self.due or (taken and self.dialect.ids.unique_scope == "transcript"):
            self.fault("ALL-04", where, f"id {excerpt(call_id)} is taken", call_id)
        self.fresh[call_id] = None
        self.due[call_id] = known

    def unanswered(self, when: str) -> None:
        """Judge the calls that wait where no result can come any more."""
        ids = tuple(self.due)
        self.fault("OAC-01 open", self.here, f"no result for tool call {listed(ids)} {when}", *ids)
        self.due.clear()

    def modelled(self, model: JsonValue) -> None:
        if type(model) is not str or not model:
            self.fault("ALL-02 model", "model", f"a model name, not {excerpt(model)}")

    def limited(self, limit: JsonValue, where: str) -> None:
        """Judge the most tokens that an answer may have."""
        if type(limit) is not int or limit < 1:
            self.fault("ALL-02", where, f"a whole number from 1, not {excerpt(limit)}")

    def each(self, value: JsonValue, where: str, what: str) -> Iterator[tuple[str, JsonValue]]:
        """Yield the items of a list, each with its place; none, with a fault, if it is no list."""
        if type(value) is list:
            yield from ((f"{where}[{index}]", item) for index, item in enumerate(value))
        else:
            self.wanted(f"a list of {what}", where, value)

    def declare(self, name: JsonValue, where: str) -> None:
        """Judge the name under which a request declares a tool, and note it."""
        self.named(name, where)
        if type(name) is str and name in self.names:
            self.fault("ALL-13", f"{where}.name", f"tool name {excerpt(name)} is declared twice")
        elif type(name) is str and self.is_name(name):
            self.names.add(name)

    def chosen(self, name: JsonValue, where: str) -> None:
        """Judge that a tool which is asked for is declared."""
        if type(name) is not str or name not in self.names:
            self.fault("ALL-14", where, f"tool {excerpt(name)} is not declared")

    def rooted(self, schema: JsonValue, where: str, refused: Iterable[str] = CHOICES) -> None:
        """Judge the root of a tool's schema."""
        if type(schema) is not dict or schema.get("type") != "object":
            self.fault("ALL-02 schema", where, "a JSON Schema of type object")
        elif found := [keyword for keyword in refused if keyword in schema]:
            self.fault("ALL-02 schema", where, f"a JSON Schema without {found[0]} at its root")
