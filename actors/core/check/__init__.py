"""Judge encoded request bytes by the rulebook, independently of the renderer and the encoders.

`check` judges a complete request body. For lanes, the judge is a fold: a lane keeps the state after the messages that
it has sent, and before the next send only the new fragment is read, so the cost depends on the new messages alone.

    state = start(dialect)
    state, faults = extend(state, fragment)      # for each fragment of the `messages` array, in order
    faults = finish(state)                       # faults of the request if it ended here
    faults = check(body, dialect)                # faults of a complete request, with its other fields

A fragment is the text that was appended to the array of messages since the previous fragment, without the brackets of
the array. In the families `openai_chat` and `responses`, a fragment contains complete messages: `{...},{...}` first,
then `,{...}`. In the others the last message stays open in its list of blocks (`CheckState.opens`):
`{"role":"user","content":[{...}` first, then `,{...}` for more blocks and
`]},{"role":"assistant","content":[{...}` for the next message.

A fragment is first read with a fast parser, which takes half the time of the strict one. The fast parser misses
duplicate keys, a NUL in a key, numbers beyond 64 bits, and excessive depth, in the fragment and in arguments that are
strings. Ingestion excludes all of these (`actors.core.data.jsonio`), and `check` detects them. If the fast reading
finds a fault, the fragment is read again with the strict parser, whose result counts. Of a long text that is a separate
piece only the end is parsed, because ingestion has already made a JSON string of it.

Faults are returned in the order of their discovery, never raised. Their `call_ids` are the ids on the wire;
`canonical` replaces them by the ids of the history.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module

import msgspec

from actors.core.check.model_settings import setting_faults
from actors.core.check.state import CheckState, excerpt, inside
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.dialects.dialect import Dialect
from actors.errors import Fault

__all__ = ["CheckState", "canonical", "check", "container", "extend", "finish", "start"]

_STATES: dict[str, str] = {
    "openai_chat": "OpenAIChat",
    "anthropic": "Anthropic",
    "responses": "Responses",
    "gemini": "Gemini",
    "converse": "Converse",
}
"""The class that judges the messages of a family, in the module with the family's name."""
_MAX_BYTES = 1 << 30  # the size limits of providers are not rules of structure
_MAX_DEPTH = 96  # arguments and schemas of depth 64, inside messages and blocks
_QUICK = msgspec.json.Decoder()
_LONG = 512  # bytes; above this size, reading the end of a text is faster than parsing it
_TOO_LONG = 1 << 16  # characters; below the text limits of all providers
_VISIBLE = frozenset(range(0x21, 0x7F)) - {0x5C}
_END = 64  # bytes of a long text in which its last word is searched
_LONE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf]")
_PAIRED = re.compile(rb"(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]")
"""A surrogate pair, or an escape of one letter, which may be a backslash."""


@cache
def _judge(family: str) -> type[CheckState]:
    """Return the judge of a family's messages. Its module is imported on first use."""
    judge: type[CheckState] = getattr(import_module(f"actors.core.check.{family}"), _STATES[family])
    return judge


def container(dialect: Dialect) -> str:
    """Return the key of the messages in a request of this dialect."""
    return _judge(dialect.family).container


@lru_cache(maxsize=256)
def start(dialect: Dialect) -> CheckState:
    """Return the state before the first message. It is cached, so all lanes of a dialect share it."""
    return _judge(dialect.family)(dialect).split_faults()[0]


def extend(state: CheckState, *pieces: bytes, whole: bool = False) -> tuple[CheckState, list[Fault]]:
    """Check a fragment of the `messages` array, and return the next state and the faults.

    Args:
        state: The state before the fragment. It is not changed and may be extended again.
        pieces: The appended fragment, in one or more pieces. A piece that begins with a quotation mark is one JSON
            string from ingestion.
        whole: Always use the strict parser, for example after a refusal.

    If the fragment is not JSON, the state is returned unchanged.
    """
    if not any(pieces):
        return state, []
    if not whole and (quick := extend_quickly(state, *pieces)) is not None:
        return quick.split_faults()
    fragment = b"".join(pieces)
    try:
        return extend_strictly(state, fragment).split_faults()
    except JsonRefused as refused:
        where = f"{state.container}[{state.count}:]"
        return state, _unreadable(state.copy(), fragment, where, refused)


def extend_quickly(state: CheckState, *pieces: bytes) -> CheckState | None:
    """Return the state after a fragment without faults, read with the fast parser; None in case of doubt."""
    text = _wrap(state, b"".join([piece if len(piece) < _LONG else _stand_in(piece) for piece in pieces]))
    try:
        read = _read_fragment(state, _QUICK.decode(text), strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if read.faults else read


def _stand_in(piece: bytes) -> bytes:
    """Return a piece for the fast parser: a short string instead of a long text.

    The rules about texts check whether a text is blank, how it ends, and whether it is too long; the short string has
    the same properties. It breaks every rule about other strings, such as ids, so the strict parser decides about
    those. A space is never part of an escape or of another character, so the text may be cut there.
    """
    if piece[:1] != b'"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG:
        return piece
    last = piece.rfind(b" ", -_END, -2)
    return b'"-' + piece[last:] if last > 0 else piece


def extend_strictly(state: CheckState, fragment: bytes) -> CheckState:
    """Return the state after a fragment, with its faults, read with the strict parser.

    Raises:
        JsonRefused: The fragment is not JSON.
    """
    text = _wrap(state, fragment)
    return _read_fragment(state, parse(text, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH), strict=True)


def finish(state: CheckState, *, manual_thinking: bool = False) -> list[Fault]:
    """Return the faults of a request that ends here: open calls, a wrong last role, no message.

    `manual_thinking` is true if the request sets thinking of type `enabled` (ANT-40).
    """
    end = state.copy()
    end.finish(manual_thinking=manual_thinking)
    return end.faults


def check(body: bytes, dialect: Dialect) -> list[Fault]:
    """Return every fault of a complete request body; an empty list means that it may be sent.

    It never raises, for any bytes. Rules about facts that only the provider knows (signatures, its models, token
    counts) are not checked: docs/reference/rulebook.md marks them.
    """
    state = _judge(dialect.family)(dialect)
    try:
        request = parse(body, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
    except JsonRefused as refused:
        return _unreadable(state, body, "request", refused)
    if type(request) is not dict:
        state.fault("ALL-01", "request", f"{excerpt(request)} instead of an object")
        return state.faults
    state.names = set()
    state.parameters(request)
    for rule, where, what in setting_faults(request, dialect):
        state.fault(rule, where, what)
    messages = request.get(state.container)
    if type(messages) is list:
        state.read(messages)
        state.finish(manual_thinking=inside(request, "thinking", "type") == "enabled")
    else:
        state.fault("ALL-02", state.container, f"a list of messages, not {excerpt(messages)}")
    return state.faults


def canonical(
    faults: Sequence[Fault], known: Callable[[str], str | None], calls: Callable[[], Sequence[str]]
) -> list[Fault]:
    """Return the faults with the canonical ids of their calls.

    Args:
        faults: The faults of a request, with ids on the wire.
        known: Returns the canonical id of an id on the wire, or None.
        calls: Returns the canonical ids of all calls in the request, in order, for calls without an id on the wire.
    """
    return [_with_canonical_ids(fault, known, calls) if fault.call_ids else fault for fault in faults]


def _with_canonical_ids(
    fault: Fault, known: Callable[[str], str | None], calls: Callable[[], Sequence[str]]
) -> Fault:
    ids = [known(call_id) or call_id for call_id in fault.call_ids]
    if any(call_id.startswith("#") for call_id in ids):  # `#3` is the third call without an id
        numbered = {f"#{number}": call_id for number, call_id in enumerate(calls())}
        ids = [numbered.get(call_id, call_id) for call_id in ids]
    return type(fault)(str(fault), call_ids=ids, rule=fault.rule)


def _wrap(state: CheckState, fragment: bytes) -> bytes:
    """Return a fragment as one JSON array of messages. A leading 0 replaces the messages that were read before."""
    if state.opens is None:
        return b"[0%b]" % fragment if state.count else b"[%b]" % fragment
    if state.role is None:
        return b"[%b]}]" % fragment
    before = b"0" if state.blocks else b""
    return b'[{"role":"%b","%b":[%b%b]}]' % (state.role.encode(), state.opens.encode(), before, fragment)


def _read_fragment(state: CheckState, messages: JsonValue, *, strict: bool) -> CheckState:
    """Return the state after the messages of a wrapped fragment."""
    assert type(messages) is list
    read, resumes = state.copy(), state.opens is not None and state.role is not None
    read.strict = strict
    begun = inside(messages[0], str(state.opens)) if resumes else messages
    if type(begun) is list and (state.blocks if resumes else state.count and state.opens is None):
        del begun[0]
    read.read(messages, resumes=resumes)
    return read


def _unreadable(state: CheckState, text: bytes, where: str, refused: JsonRefused) -> list[Fault]:
    """Return the fault of bytes that are not strict JSON, or contain a lone surrogate."""
    if _LONE.search(_PAIRED.sub(b"-", text)):
        state.fault("ALL-12", where, "the text holds a lone surrogate")
    else:
        state.fault("ALL-01", where, f"not strict JSON: {refused}")
    return state.faults
