"""Record the render walk as roles and blocks, before a family encodes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from actors.adapters.adapter import adapter
from actors.core.data.jsonio import Json
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.models.rules import Role
from actors.core.render import RenderTarget, RenderWalk, ThinkingPolicy
from actors.core.transcript.diagnostics import Notes, Report
from actors.core.transcript.transcript import Encoder, RenderState, TitledMedia
from actors.core.values.content import Media, Message, Text, Thinking, ToolCall
from actors.core.values.identity import Binding

Said: TypeAlias = tuple[
    str, tuple[Any, ...]
]  # Any: a text, reasoning, an attachment, a `Called` or an `Answer`
"""A role, and what was said in it."""


@dataclass(frozen=True)
class Called:
    id: str
    name: str
    json: bytes = b"{}"


@dataclass(frozen=True)
class Answer:
    id: str
    words: bytes
    failed: bool = False
    media: tuple[Media, ...] = ()
    titles: tuple[str, ...] = ()
    name: str = ""


@dataclass
class Recorder:
    """A writer that records its calls."""

    dialect: Dialect
    last_role: Role | None
    said: list[tuple[str, list[Any]]] = field(default_factory=list)  # Any: see `Said`

    def begin(self, role: Role) -> None:
        self.said.append((role, []))

    def write_text(self, json: Json) -> None:
        self._add(Text(json=json))

    def write_thinking(self, block: Thinking) -> None:
        self._add(block)

    def write_media(self, media: Media, title: str) -> None:
        self._add(media)

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        self._add(Called(call_id, name, call.json))

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        held, titles = tuple(item for item, _ in media), tuple(title for _, title in media)
        self._add(Answer(call_id, json, failed, held, titles, name))

    def write_native(self, part: bytes) -> None:
        self._add(part)

    def take_pieces(self) -> list[bytes]:
        return []

    def _add(self, what: object) -> None:
        self.said[-1][1].append(what)


def recording_family(
    dialect: Dialect, *said: Said, last_role: Role | None = None, closed: bool = True
) -> bytes:
    """Return the recorded blocks of a dialect's writer; documents are recorded with their titles."""
    encoder = adapter(dialect).encoder
    writer = encoder.writer(last_role)
    for role, blocks in said:
        writer.begin(role)  # type: ignore[arg-type]  # one of the roles
        for block in blocks:
            match block:
                case Text(json=json):
                    writer.write_text(json)
                case Thinking():
                    writer.write_thinking(block)
                case Called(id=call_id, name=name, json=json):
                    writer.write_call(call_id, name, ToolCall(call_id, name, json=Json(json)))
                case Answer():
                    held = tuple(zip(block.media, block.titles or [""] * len(block.media), strict=True))
                    writer.write_result(block.id, block.name, Json(block.words), block.failed, held)
                case Media():
                    writer.write_media(block, "")
                case _:
                    writer.write_media(*block)
    return b"".join(writer.take_pieces()) + (encoder.closing if closed else b"")


def record_walk(
    messages: Iterable[Message],
    dialect: Dialect,
    ledger: Ledger | None = None,
    reader: Binding | None = None,
    policy: ThinkingPolicy = "native",
    state: RenderState | None = None,
) -> tuple[list[Said], Report]:
    """Render a conversation with a recording writer. Return the recorded messages and the report."""
    known = ledger or Ledger()
    history = History(messages, known)
    writers: list[Recorder] = []

    def recorder(last_role: Role | None) -> Recorder:
        writers.append(Recorder(dialect, last_role))
        return writers[-1]

    notes = Notes()
    walk = RenderWalk(
        state or RenderState(),
        history,
        known,
        dialect,
        Encoder(recorder),
        RenderTarget(reader, policy),
        notes,
    )
    assert not any(walk.write_fragments())
    return [(role, tuple(blocks)) for role, blocks in writers[0].said], notes.to_report(dialect.name)
