"""What the judge remembers between fragments, and the working copy it changes while it reads one.

`CheckState` is a value: a lane keeps one, tries a fragment on it, and keeps the new one only if the
request is sent. `Fold` is its mutable twin, alive for one fragment. Both families share it; what a message
means is theirs.
"""

import re
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from actors.core.dialect import Dialect
from actors.core.jsonio import JsonRefused, JsonValue, parse
from actors.core.rulebook import FAULTS, RULES
from actors.core.table import Table, nothing
from actors.errors import Fault

CHOICES = ("anyOf", "oneOf", "allOf")
"""Keywords of a schema that no provider takes at the root of a tool's."""


class CheckState(NamedTuple):
    """Where the judge stands after some messages. Its size does not grow with them, but for the used ids.

    Args:
        dialect: The rules it judges by.
        ids, names: What call ids and tool names must match in full.
        used: Every call id so far, with the index of its message.
        role: Role of the last message; None before the first.
        count: Messages so far.
        blocks: Blocks of the last message, which is still open in a family that leaves it so.
        due: Ids of the calls that wait for their result, in call order.
        answered: Ids answered since the last assistant message.
        thinks: The last message begins with thinking.
        mixed: The last user message holds something beside results.
        split: The last user message follows another that left calls unanswered.
        loop: The message that opened the current tool loop begins with thinking; None before its first block.
        server: Ids of server tool calls without a result.
        marks: Cache marks so far.
        short: One of them was a 5m mark.
        ragged: The last message ends in a text that ends in whitespace.
        dangles: The last message ends in thinking.
        stale: Ids of open calls behind which something else stands (family `responses`).
        custom: Ids of open calls of custom tools (likewise).
        media, documents: Attachments so far, and how many of them are documents.
        titles: Names of the documents so far (family `converse`).
    """

    dialect: Dialect
    ids: re.Pattern[str]
    names: re.Pattern[str]
    used: Table[str, int] = nothing()
    role: str | None = None
    count: int = 0  # type: ignore[assignment]  # hides a tuple's method, which nobody calls here
    blocks: int = 0
    due: tuple[str, ...] = ()
    answered: frozenset[str] = frozenset()
    thinks: bool = False
    mixed: bool = False
    split: bool = False
    loop: bool | None = None
    server: frozenset[str] = frozenset()
    marks: int = 0
    short: bool = False
    ragged: bool = False
    dangles: bool = False
    stale: frozenset[str] = frozenset()
    custom: frozenset[str] = frozenset()
    media: int = 0
    documents: int = 0
    titles: frozenset[str] = frozenset()


class Fold:
    """The working copy: reads messages, changes its fields, collects faults.

    Attributes:
        container: Key of the array of messages in a request.
        opens: Key of the list of blocks in which a fragment leaves its last message open; None where messages
            are always whole. The role of such a message is `role`, as the wire spells it.
        surrogates: The rule that a lone surrogate breaks.
        crowded: The rules that one attachment too many breaks, and one document too many.
    """

    container: ClassVar[str] = "messages"
    opens: ClassVar[str | None] = None
    surrogates: ClassVar[str] = "ALL-12"
    crowded: ClassVar[tuple[str, str]] = ("ALL-15", "ALL-15")

    def __init__(self, state: CheckState) -> None:
        self.before = state
        self.dialect = state.dialect
        self.is_id = state.ids.fullmatch
        self.is_name = state.names.fullmatch
        self.longest = state.dialect.max_string
        self.used = state.used
        self.fresh: dict[str, int] = {}  # ids used in this fragment
        self.role, self.count, self.blocks = state.role, state.count, state.blocks
        self.due = dict.fromkeys(state.due)
        self.answered = set(state.answered)
        self.thinks, self.mixed, self.split, self.loop = state.thinks, state.mixed, state.split, state.loop
        self.server = state.server
        self.marks, self.short, self.ragged = state.marks, state.short, state.ragged
        self.dangles = state.dangles
        self.stale, self.custom = set(state.stale), set(state.custom)
        self.media, self.documents, self.titles = state.media, state.documents, state.titles
        self.faults: list[Fault] = []

    def frozen(self) -> CheckState:
        """Return the state reached."""
        return CheckState(
            self.dialect,
            self.before.ids,
            self.before.names,
            self.used.update(self.fresh) if self.fresh else self.used,
            self.role,
            self.count,
            self.blocks,
            tuple(self.due),
            frozenset(self.answered),
            self.thinks,
            self.mixed,
            self.split,
            self.loop,
            self.server,
            self.marks,
            self.short,
            self.ragged,
            self.dangles,
            frozenset(self.stale),
            frozenset(self.custom),
            self.media,
            self.documents,
            self.titles,
        )

    def message(self, value: JsonValue) -> None:
        """Read one whole message."""
        raise NotImplementedError

    def resume(self, value: JsonValue) -> None:
        """Read what follows in the message that was left open."""
        raise NotImplementedError

    def finish(self, *, manual_thinking: bool) -> None:
        """Judge the end of the transcript as if it were sent now."""
        raise NotImplementedError

    def head(self, body: dict[str, JsonValue]) -> None:
        """Judge what a request holds beside its messages."""
        raise NotImplementedError

    def fault(self, rule: str, where: str, what: str, *call_ids: str) -> None:
        """Record that `rule` is broken."""
        kind = FAULTS[RULES[rule].fault_class]
        self.faults.append(kind(f"{where}: {what} ({rule})", call_ids=call_ids, rule=rule))

    @property
    def here(self) -> str:
        """The current message, as faults name it."""
        return f"{self.container}[{self.count - 1}]"

    def allow_only(self, rule: str, where: str, value: dict[str, JsonValue], keys: frozenset[str]) -> None:
        """Record the keys of `value` that are not among `keys`, if there are any."""
        if not value.keys() <= keys:
            self.fault(
                rule, where, "unknown key " + ", ".join(shown(key) for key in value if key not in keys)
            )

    def attach(self, kind: str, where: str) -> None:
        """Count an attachment, and judge whether the request may hold it."""
        self.media += 1
        if (most := self.dialect.max_media) is not None and self.media > most:
            self.fault(self.crowded[0], where, f"attachment {self.media} of a request that may hold {most}")
        if kind != "document":
            return
        self.documents += 1
        if (most := self.dialect.max_documents) is not None and self.documents > most:
            self.fault(self.crowded[1], where, f"document {self.documents} of a request that may hold {most}")

    def take_id(self, call_id: str) -> bool:
        """Note a call id as used, and say whether it already was."""
        taken = call_id in self.fresh or call_id in self.used
        self.fresh[call_id] = self.count - 1
        return taken


def why_no_object(text: JsonValue) -> str:
    """Return why `text` is not a JSON object written as a string, or an empty string if it is one."""
    if type(text) is not str:
        return "not a string"
    try:
        value = parse(text.encode())
    except JsonRefused:
        return "not JSON"
    return "" if type(value) is dict else "not an object"


def why_no_root(schema: JsonValue, refused: Iterable[str] = CHOICES) -> str:
    """Return what a tool's schema must be and is not, at its root; an empty string if it is all right."""
    if type(schema) is not dict or schema.get("type") != "object":
        return "a JSON Schema of type object"
    found = [keyword for keyword in refused if keyword in schema]
    return f"a JSON Schema without {found[0]} at its root" if found else ""


def shown(value: JsonValue) -> str:
    """Return a value as a fault's message shows it: one short line, whatever it is."""
    if isinstance(value, dict | list):
        return kind_of(value)
    text = ascii(value if type(value) is not str else value[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def kind_of(value: JsonValue) -> str:
    """Return the JSON name of a value's type."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
