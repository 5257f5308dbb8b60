"""The judge: may this request be sent, by the rulebook alone?

It reads the encoded bytes, as the provider will, and shares no code with what made them. It is a fold, so
that a request costs what is new in it: a lane keeps the state after what it has sent, and before the next
send only the new fragment is read.

    state = start(dialect)
    state, faults = extend(state, fragment)      # for each fragment of the `messages` array, in order
    faults = finish(state)                       # what is wrong if it were sent now
    faults = check(body, dialect)                # a whole request, its other fields included

A fragment is the text that was appended to the array of messages since the last one, brackets of the array
excluded. In the families `openai_chat` and `responses` a message is always whole: `{...},{...}` first, then
`,{...}`. In the others the last message stays open in its list of blocks (`CheckState.opens`):
`{"role":"user","content":[{...}` first, then `,{...}` for more blocks and
`]},{"role":"assistant","content":[{...}` for the next message.

Of a long text that is a piece of its own only the end is parsed: ingestion has made a JSON string of it. The first
parser takes half the time of the strict one, and does not see duplicate keys, a NUL in a key, numbers beyond 64 bits,
or depth, neither in the fragment nor in arguments that are written as text. Ingestion lets none of those in
(`actors.core.data.jsonio`), and `check` sees them. Where the judge finds a fault in what the first parser gave, the
fragment is parsed strictly and read again, and that counts.

Faults are returned, not raised, in the order in which they are met. Their `call_ids` are the ids on the
wire: the judge knows no others. `canonical` gives those of the history.
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
"""Who judges the messages of a family, in the module that has the family's name."""
_MAX_BYTES = 1 << 30  # a provider's own limit is no matter of structure
_MAX_DEPTH = 96  # arguments and schemas may be 64 deep, inside messages and blocks
_QUICK = msgspec.json.Decoder()
_LONG = 512  # bytes from which it costs less to look at the end of a text than to parse it
_TOO_LONG = 1 << 16  # no limit that a provider sets for a text is as low
_VISIBLE = frozenset(range(0x21, 0x7F)) - {0x5C}
_END = 64  # bytes of a long text that are looked at for its last word
_LONE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf]")
_PAIRED = re.compile(rb"(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]")
"""Two halves of a character, or an escape of one letter, which may be a backslash."""


@cache
def _judge(family: str) -> type[CheckState]:
    """Return who judges a family's messages, which is imported when it is first asked for."""
    made: type[CheckState] = getattr(import_module(f"actors.core.check.{family}"), _STATES[family])
    return made


def container(dialect: Dialect) -> str:
    """Return the key under which a request of this dialect holds its messages."""
    return _judge(dialect.family).container


@lru_cache(maxsize=256)
def start(dialect: Dialect) -> CheckState:
    """Return the state before the first message. All lanes of a dialect share what it says of that alone."""
    return _judge(dialect.family)(dialect).settle()[0]


def extend(state: CheckState, *pieces: bytes, whole: bool = False) -> tuple[CheckState, list[Fault]]:
    """Read what was appended to the `messages` array, and return the next state and the faults in it.

    Args:
        state: The state before it. It stays as it was and may be extended again.
        pieces: The fragment that was appended, in one piece or cut. A piece that begins with a quotation mark is one
            JSON string, as ingestion made it.
        whole: Read it whole in any case: for what has been refused before, or must be seen by every rule.

    After a fragment that is not JSON the state returned is the one given.
    """
    if not any(pieces):
        return state, []
    if not whole and (quick := accept_quickly(state, *pieces)) is not None:
        return quick.settle()
    fragment = b"".join(pieces)
    try:
        return read_strictly(state, fragment).settle()
    except JsonRefused as refused:
        where = f"{state.container}[{state.count}:]"
        return state, _unreadable(state.copy(), fragment, where, refused)


def accept_quickly(state: CheckState, *pieces: bytes) -> CheckState | None:
    """Return the state after a fragment that plainly keeps every rule; None at any doubt."""
    text = _wrap(state, b"".join([piece if len(piece) < _LONG else _stand_in(piece) for piece in pieces]))
    try:
        read = _read_fragment(state, _QUICK.decode(text), strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if read.faults else read


def _stand_in(piece: bytes) -> bytes:
    """Return what the first reading sees of a piece: in place of a long text, a short one.

    A rule about a long text asks whether it is blank, how it ends, and whether it is too long. The short one breaks
    every rule about other strings, such as ids: then the strict reading decides. A space is part of no escape and of
    no other character, so one may cut there.
    """
    if piece[:1] != b'"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG:
        return piece
    last = piece.rfind(b" ", -_END, -2)
    return b'"-' + piece[last:] if last > 0 else piece


def read_strictly(state: CheckState, fragment: bytes) -> CheckState:
    """Return the state after a fragment, read by every rule, with the faults in it. Raises JsonRefused."""
    text = _wrap(state, fragment)
    return _read_fragment(state, parse(text, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH), strict=True)


def finish(state: CheckState, *, manual_thinking: bool = False) -> list[Fault]:
    """Return what is wrong if the request were sent now: open calls, a wrong last role, no message.

    With `manual_thinking` it asks for thinking of type `enabled` (ANT-40).
    """
    end = state.copy()
    end.finish(manual_thinking=manual_thinking)
    return end.faults


def check(body: bytes, dialect: Dialect) -> list[Fault]:
    """Return every fault of a whole request body; an empty list means that it may be sent.

    Never raises, whatever the bytes are. What only the provider can know (signatures, its models, token
    counts) is outside: docs/reference/rulebook.md marks those rules.
    """
    state = _judge(dialect.family)(dialect)
    try:
        request = parse(body, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
    except JsonRefused as refused:
        return _unreadable(state, body, "request", refused)
    if type(request) is not dict:
        state.fault("ALL-01", "request", f"{excerpt(request)} where an object belongs")
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
    """Return the faults with the ids that the history has for their calls.

    `known` gives the canonical id of one on the wire, if it has one; `calls` those of all calls in the request, in
    order, for calls without an id on the wire.
    """
    return [_rename_ids(fault, known, calls) if fault.call_ids else fault for fault in faults]


def _rename_ids(
    fault: Fault, known: Callable[[str], str | None], calls: Callable[[], Sequence[str]]
) -> Fault:
    ids = [known(call_id) or call_id for call_id in fault.call_ids]
    if any(call_id.startswith("#") for call_id in ids):  # the judge's name for a call without an id
        numbered = {f"#{number}": call_id for number, call_id in enumerate(calls())}
        ids = [numbered.get(call_id, call_id) for call_id in ids]
    return type(fault)(str(fault), call_ids=ids, rule=fault.rule)


def _wrap(state: CheckState, fragment: bytes) -> bytes:
    """Return a fragment as one JSON array of messages. A leading 0 stands for what was read before."""
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
    """Return the fault of bytes that are not strict JSON, or have half a character in an escape or in UTF-8."""
    if _LONE.search(_PAIRED.sub(b"-", text)):
        state.fault("ALL-12", where, "the text holds a lone surrogate")
    else:
        state.fault("ALL-01", where, f"not strict JSON: {refused}")
    return state.faults
