"""Where the judge stands after some messages, and what every family asks of the next ones.

A family's subclass reads messages and changes with each of them: it judges their shape, and what they may mean
behind the ones before.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from actors.core.check.words import CHOICES, excerpt, kind_of, listed
from actors.core.dialect import Dialect
from actors.core.jsonio import JsonValue
from actors.core.rulebook import FAULTS, RULES, cited
from actors.core.table import Table, nothing
from actors.errors import Fault


class CheckState:
    """A lane keeps one, tries a fragment on a copy, and keeps the copy only if the request is sent.

    Its size does not grow with the messages, but for the used ids.

    Attributes:
        strict: Read what is JSON inside of texts as strictly as the whole was read; told by who reads.
        role: Role of the last message, as the wire spells it; None before the first.
        count: Messages so far.
        blocks: Blocks of the last message, which is still open in a family that leaves it so.
        due: The calls that wait for their result, in call order.
        answered: The calls answered since the last assistant message.
        used: Every id so far.
        marks: Cache marks so far.
        short: One of them is for five minutes.
        media, documents: Attachments so far, and how many of them are documents.
    """

    container: ClassVar[str] = "messages"
    """Key of the array of messages in a request."""
    opens: ClassVar[str | None] = None
    """Key of the list of blocks in which a fragment leaves its last message open; None where messages are whole."""
    surrogates: ClassVar[str] = "ALL-12"
    """The rule that a lone surrogate breaks."""

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
        self.is_id = re.compile(dialect.ids.accepted or dialect.ids.pattern).fullmatch
        self.is_name = re.compile(dialect.ids.tool_name_pattern).fullmatch
        self.used: Table[str, None] = nothing()
        self.fresh: dict[str, None] = {}  # ids used since this copy was made
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
        if type(other) is not type(self):
            return NotImplemented
        mine, others = dict(vars(self)), dict(vars(other))
        for compiled in ("is_id", "is_name"):  # told by the dialect, and not equal when compiled anew
            del mine[compiled], others[compiled]
        return mine == others

    __hash__ = None  # type: ignore[assignment]  # it is changed while it is read into

    # --- reading ------------------------------------------------------------------------------------

    def parameters(self, body: dict[str, JsonValue]) -> None:
        """Judge what a request holds beside its messages."""
        raise NotImplementedError

    def whole(self, messages: JsonValue) -> JsonValue:
        """Return what stands under `container` as the list of messages it stands for."""
        return messages

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        """Read messages. If it `resumes`, the first holds what follows in the message that was left open."""
        raise NotImplementedError

    def finish(self, *, manual_thinking: bool) -> None:
        """Judge the end of the transcript as if it were sent now."""
        raise NotImplementedError

    # --- faults -------------------------------------------------------------------------------------

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

    def place(self, index: int) -> str:
        """Return where the id of a call stands, as faults name it."""
        return f"{self.at}.id"

    def fields(self, value: JsonValue, keys: frozenset[str], where: str = "") -> dict[str, JsonValue] | None:
        """Return an object, its keys judged; None, with a fault, if it is none."""
        if type(value) is dict and value.keys() <= keys:
            return value
        if type(value := self.spelt(value)) is not dict:
            self.wanted("an object", where, value)
            return None
        self.allow_only(where, value, keys)
        return value

    def spelt(self, value: JsonValue) -> JsonValue:
        """Return an object with its keys in their first spelling; there is a second in one family."""
        return value

    def allow_only(self, where: str, value: dict[str, JsonValue], keys: frozenset[str]) -> None:
        """Record the keys of `value` that are not among `keys`, if there are any."""
        if not value.keys() <= keys:
            unknown = ", ".join(excerpt(key) for key in value if key not in keys)
            self.fault("ALL-07", where, "unknown key " + unknown)

    # --- calls and attachments ----------------------------------------------------------------------

    def attach(self, kind: str, where: str) -> None:
        """Count an attachment, and judge whether the request may hold it."""
        self.media += 1
        if (most := self.dialect.media.max_count) is not None and self.media > most:
            self.fault("ALL-15", where, f"attachment {self.media} of a request that may hold {most}")
        if kind != "document":
            return
        self.documents += 1
        if (most := self.dialect.media.max_documents) is not None and self.documents > most:
            self.fault(
                "ALL-15 documents", where, f"document {self.documents} of a request that may hold {most}"
            )

    def mark(self, mark: JsonValue, where: str, kind: str, key: str) -> None:
        """Judge a cache mark, and count it. An hour's comes before all that are for five minutes."""
        ttl = mark.get("ttl", "5m") if type(mark) is dict else None
        if type(mark) is not dict or mark.get("type") != kind or ttl not in ("5m", "1h"):
            return self.fault("ALL-02", where, f"{key} is of type {kind}, ttl 5m or 1h")
        self.marks += 1
        if ttl == "1h" and self.short:
            self.fault("ANT-34 mark", where, "a 1h cache mark after a 5m mark")
        self.short = self.short or ttl == "5m"
        return None

    def marked(self) -> None:
        """Judge how many cache marks the request has."""
        if self.marks > _MARKS:
            self.fault("ANT-32 mark", "request", f"{self.marks} cache marks, at most {_MARKS}")

    def named(self, name: JsonValue, where: str) -> None:
        """Judge the name of a tool."""
        if type(name) is not str or not self.is_name(name):
            self.fault("ALL-02 name", f"{where}.name", f"tool name {excerpt(name)}")

    def identified(self, call_id: JsonValue, where: str) -> None:
        """Judge the form of a call's id."""
        if type(call_id) is str and self.is_id(call_id):
            return
        ids = (call_id,) if type(call_id) is str else ()
        if type(call_id) is str and len(call_id) > self.dialect.ids.max_len:
            what = f"id {excerpt(call_id)} of {len(call_id)} characters is too long"
            self.fault("ALL-03 long", where, what, *ids)
        else:
            self.fault("ALL-03", where, f"id {excerpt(call_id)} is not of the form", *ids)

    def take(self, call_id: str) -> bool:
        """Note an id as used, and say whether it already was."""
        taken = call_id in self.fresh or call_id in self.used
        self.fresh[call_id] = None
        return taken

    def open_call(self, call_id: JsonValue, known: object = None, index: int = 0) -> None:
        """Note that a call waits for its result, and judge its id. `index` tells it from others in one place."""
        if type(call_id) is not str or not self.is_id(call_id):
            self.identified(call_id, self.place(index))
            if type(call_id) is not str:
                return
        taken = call_id in self.fresh or call_id in self.used
        if call_id in self.due or (taken and self.dialect.ids.unique_scope == "transcript"):
            self.fault("ALL-04", self.place(index), f"id {excerpt(call_id)} is taken", call_id)
        self.fresh[call_id] = None
        self.due[call_id] = known

    def unanswered(self, when: str) -> None:
        """Judge the calls that wait where no result can come any more."""
        ids = tuple(self.due)
        self.fault("OAC-01 open", self.here, f"no result for tool call {listed(ids)} {when}", *ids)
        self.due.clear()

    # --- beside the messages ------------------------------------------------------------------------

    def modelled(self, model: JsonValue) -> None:
        """Judge the name of the model."""
        if type(model) is not str or not model:
            self.fault("ALL-02 model", "model", f"a model name, not {excerpt(model)}")

    def each(self, value: JsonValue, where: str, what: str) -> Iterator[tuple[str, JsonValue]]:
        """Yield the items of a list, each with its place; none, with a fault, if it is no list."""
        if type(value) is list:
            yield from ((f"{where}[{index}]", item) for index, item in enumerate(value))
        else:
            self.wanted(f"a list of {what}", where, value)

    def declare(self, name: JsonValue, where: str, names: set[str]) -> None:
        """Judge the name under which a request declares a tool, and note it."""
        if type(name) is str and name in names:
            self.fault("ALL-13", f"{where}.name", f"tool name {excerpt(name)} is declared twice")
        elif type(name) is str and self.is_name(name):
            names.add(name)
        else:
            self.named(name, where)

    def chosen(self, name: JsonValue, where: str, names: set[str]) -> None:
        """Judge that a tool which is asked for is declared."""
        if type(name) is not str or name not in names:
            self.fault("ALL-14", where, f"tool {excerpt(name)} is not declared")

    def rooted(self, schema: JsonValue, where: str, refused: Iterable[str] = CHOICES) -> None:
        """Judge the root of a tool's schema."""
        if type(schema) is not dict or schema.get("type") != "object":
            self.fault("ALL-02 schema", where, "a JSON Schema of type object")
        elif found := [keyword for keyword in refused if keyword in schema]:
            self.fault("ALL-02 schema", where, f"a JSON Schema without {found[0]} at its root")

    def limited(self, limit: JsonValue, where: str) -> None:
        """Judge a number of tokens to be answered with at most."""
        if type(limit) is not int or limit < 1:
            self.fault("ALL-02", where, f"a whole number from 1, not {excerpt(limit)}")


_NOTHING: Any = ()  # Any: stands for an empty dict or set at no cost
_MARKS = 4
