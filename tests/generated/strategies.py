"""Define Hypothesis strategies for conversations, events and their parts. They shrink to simple values.

from tests.generated.strategies import conversations

@given(conversations())
def test_...(conversation: tuple[list[Message], Ledger]) -> None: ...

`tests.generated.histories` writes a conversation, and Hypothesis makes the choices.
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, quote
from actors.core.ledger import Ledger
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Denied,
    Failed,
    Refused,
    Returned,
    Scheduled,
    Started,
)
from actors.core.log.events import (
    ApprovalAsked,
    ApprovalDecided,
    AskStarted,
    Closed,
    Compacted,
    Configured,
    EpochBegan,
    EventsLost,
    FormatRequested,
    LogEvent,
    Opened,
    RequestSent,
    ResultsTrimmed,
    Rewound,
    RoundEnded,
    SubagentUsage,
    SwitchApplied,
    SwitchFailed,
    SwitchQueued,
    SwitchSuperseded,
    TurnEnded,
    TurnPaused,
    TurnResumed,
    TurnStarted,
)
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.spending import SessionUsage
from actors.core.values.content import (
    Block,
    Code,
    Media,
    Message,
    ProviderBlock,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import pack
from actors.core.values.progress import AskProgress, Attempt, TurnProgress
from actors.core.values.stream import Usage
from actors.testing.images import png_base64
from tests.generated.histories import conversation
from tests.generated.parts import REASONS, ROLES

__all__ = [
    "bindings",
    "blocks",
    "call_events",
    "conversations",
    "events",
    "json_pieces",
    "messages",
    "values",
]


def conversations() -> SearchStrategy[tuple[list[Message], Ledger]]:
    """Generate conversations with every corruption in the rulebook, and ledgers that match more or less."""

    @st.composite
    def written_conversation(draw: DrawFn) -> tuple[list[Message], Ledger]:
        return conversation(lambda n: draw(_below(n)))

    return written_conversation()


@cache
def _below(n: int) -> SearchStrategy[int]:
    return st.integers(0, n - 1)


def words() -> SearchStrategy[str]:
    """Generate text without lone surrogates, so that it can be encoded."""
    return st.text(st.characters(codec="utf-8"), max_size=8)


def values() -> SearchStrategy[object]:
    """Generate JSON values, and Python values beyond JSON: lone surrogates, NaN, huge numbers, keys of any type."""
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.binary(max_size=3)
    )
    keys = st.one_of(st.text(max_size=3), st.integers(), st.none())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
        max_leaves=6,
    )


def json_pieces() -> SearchStrategy[Json]:
    """Generate ingested values."""
    return values().map(lambda value: ingest(value).json)


def bindings() -> SearchStrategy[Binding]:
    """Generate bindings with any names."""
    return st.builds(Binding, words(), words(), words(), words(), words())


def blocks() -> SearchStrategy[Block]:
    """Generate blocks of every kind."""
    seals = st.none() | st.builds(ProviderState, words(), words().map(quote), bindings())
    maybe = st.none() | json_pieces()
    media = st.builds(Media, words(), words(), words())
    return st.one_of(
        st.builds(Text, words()),
        st.builds(Thinking, words(), seals),
        st.builds(ToolCall, words(), words(), values(), st.none() | words(), seals),
        st.builds(
            lambda call_id, content, error, complete, attached: ToolResult(
                call_id, content_json=content, error_json=error, is_complete=complete, media=attached
            ),
            words(),
            maybe,
            maybe,
            st.none() | st.booleans(),
            st.lists(media, max_size=2),
        ),
        media,
        st.builds(Code, words(), words()),
        st.builds(ProviderBlock, words(), st.builds(ProviderState, words(), words().map(quote), bindings())),
    )


def messages() -> SearchStrategy[Message]:
    """Generate messages of any blocks under any role."""
    roles = st.sampled_from(ROLES)
    return st.builds(
        Message, roles, st.lists(blocks(), max_size=3), st.integers(0, 99), st.none() | bindings()
    )


def call_events(ids: SearchStrategy[str] | None = None) -> SearchStrategy[CallEvent | RequestSent]:
    """Generate ledger events of tool calls, including seals, for the canonical `ids` (few by default)."""
    call_ids = (st.sampled_from(["c1", "c2", ""]) if ids is None else ids).map(CallId)
    reasons = st.sampled_from(REASONS)
    ends = st.sampled_from([quote("one"), quote("two"), Json(b"null"), Json(b'{"a":[1]}')])
    attached = st.sampled_from([(), (Media("image/png", png_base64()),)])
    binding = Binding("b", "openai_chat")
    return st.one_of(
        st.builds(
            Scheduled,
            call_ids,
            st.sampled_from(["read", ""]),
            st.sampled_from([Json(b"{}"), Json(b'{"a":1}')]),
        ),
        st.builds(Started, call_ids),
        st.builds(Cancelled, call_ids, reasons),
        st.builds(Returned, call_ids, ends, attached),
        st.builds(Failed, call_ids, ends),
        st.builds(Denied, call_ids, ends),
        st.builds(Refused, call_ids, ends),
        st.builds(
            lambda call_id, why: RequestSent(1, 1, binding, 0, 0, ((call_id, why),)), call_ids, reasons
        ),
    )


def events() -> SearchStrategy[LogEvent]:
    """Generate log events of every kind."""
    count = st.integers(0, 2**40)
    packed = messages().map(pack)
    said = st.lists(packed, max_size=2).map(tuple)
    news = st.lists(call_events(words()), max_size=3)
    known = news.map(lambda told: tuple(Ledger().apply(*told).interactions()))
    reasons = st.sampled_from(REASONS)
    usage = st.builds(Usage, count, count, count, count)
    sealed = st.lists(st.tuples(words().map(CallId), reasons), max_size=2).map(tuple)
    ends = st.sampled_from(["complete", "cancelled", "failed", "interrupted", "handed_over"])
    why = st.sampled_from(["compaction", "thinking", "refusal", "configured", "media", "rewind"])
    names = st.lists(words(), max_size=2).map(tuple)
    shorts = st.sampled_from(["repeated", "large", "old"])
    ids, verdicts = words().map(CallId), st.sampled_from(["allow", "deny"])
    several, edited = st.lists(ids, max_size=2).map(tuple), st.sampled_from([None, ingest({"a": 1}).json])
    tries = st.lists(st.builds(Attempt, bindings(), words()), max_size=2).map(tuple)
    turn, ask = (
        st.builds(TurnProgress, count, usage, count),
        st.builds(AskProgress, tries, count, usage),
    )
    return st.one_of(
        call_events(words()),
        st.builds(Opened, words(), words(), st.none() | words(), said, known, count),
        st.builds(
            AskStarted,
            count,
            packed,
            st.sampled_from(
                [
                    None,
                    StoredAskSettings(),
                    StoredAskSettings(max_tokens=9, temperature=0.5, stop=("x",), timeout=1.0),
                ]
            ),
        ),
        st.builds(FormatRequested, count, packed),
        st.builds(TurnStarted, count, count, bindings()),
        st.builds(SubagentUsage, ids, words(), st.builds(SessionUsage, count)),
        st.builds(RequestSent, count, count, bindings(), count, count, sealed),
        st.builds(
            RoundEnded,
            count,
            count,
            st.none() | packed,
            usage,
            st.none() | words(),
            st.none() | words(),
            count,
        ),
        st.builds(SwitchQueued, count, words()),
        st.builds(SwitchApplied, words(), st.booleans()),
        st.builds(SwitchSuperseded, words(), words()),
        st.builds(SwitchFailed, words(), words()),
        st.builds(Configured, st.none() | words(), st.lists(words(), max_size=2).map(tuple), words()),
        st.builds(Compacted, count, count, packed),
        st.builds(ResultsTrimmed, st.lists(st.tuples(ids, shorts), max_size=2).map(tuple)),
        st.builds(Rewound, count),
        st.builds(EventsLost, count, count),
        st.builds(EpochBegan, bindings(), count, why, st.booleans(), words(), names),
        st.builds(TurnEnded, count, ends, words()),
        st.builds(ApprovalAsked, ids, words(), words()),
        st.builds(ApprovalDecided, ids, words(), words(), verdicts, words(), edited),
        st.builds(TurnPaused, count, several, several, turn, ask),
        st.builds(TurnResumed, count),
        st.builds(Closed, words()),
    )
