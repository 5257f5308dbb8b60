"""Check encoded request bytes against the rulebook, independently of the renderer and the encoders.

`check` checks a complete request body. The transcript that a session has sent (its lane) is checked incrementally: the
lane keeps the check state after the last sent message, and before the next request, only the new fragment is checked.
So the cost depends only on the new messages.

    state = initial_state(dialect)
    state, faults = check_fragment(state, fragment)  # for each fragment of the `messages` array, in order
    faults = finish_check(state)                     # faults of the request if it ended here
    faults = check(body, dialect)                    # faults of a complete request, with its other fields

A fragment is the text that was appended to the array of messages since the previous fragment, without the brackets of
the array. In the families `openai_chat` and `responses`, a fragment contains complete messages: `{...},{...}` first,
then `,{...}`. In the other families, the last message stays open in its list of blocks (`CheckState.open_blocks_key`):
`{"role":"user","content":[{...}` first, then `,{...}` for more blocks and `]},{"role":"assistant","content":[{...}` for
the next message.

A fragment is first parsed with a fast parser, which takes half the time of the strict parser. The fast parser accepts
duplicate keys, a NUL in a key, numbers beyond 64 bits, and excessive depth, in the fragment and in arguments that are
strings. Ingestion excludes all of these (`actors.core.data.jsonio`), and `check` detects them. If the fast pass finds a
fault, the fragment is checked again with the strict parser, and only the second result counts. If a long text is a
separate piece, only its end is parsed, because ingestion has already encoded the text as a valid JSON string.

In the families `openai_chat` and `anthropic`, the fast parser first expects usual messages, which contain only texts,
calls, results and thinking. It decodes them as objects of fixed types, which also checks their keys and the types of
their values (`CheckState.usual_messages`). If a message is unusual, the fast parser decodes the fragment as any JSON.

Faults are not raised, but returned in the order of their discovery. Their `call_ids` are the ids in the request;
`with_canonical_ids` replaces them by the ids of the history.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module

import msgspec

from actors.core.check.json_values import excerpt, value_at
from actors.core.check.model_settings import setting_faults
from actors.core.check.state import CheckState, Unusual
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.dialects.dialect import Dialect
from actors.errors import Fault

__all__ = [
    "CheckState",
    "check",
    "check_fragment",
    "container",
    "finish_check",
    "initial_state",
    "with_canonical_ids",
]

_STATES: dict[str, str] = {
    "openai_chat": "OpenAIChat",
    "anthropic": "Anthropic",
    "responses": "Responses",
    "gemini": "Gemini",
    "converse": "Converse",
}
"""The class that checks the messages of a family. It is defined in the module with the family's name."""
_MAX_BYTES = 1 << 30  # larger than any request, because the check ignores the size limits of providers
_MAX_DEPTH = 96  # enough for arguments and schemas of depth 64, inside messages and blocks
_QUICK = msgspec.json.Decoder()
_LONG = 512  # bytes; above this size, extracting the end of a text is faster than parsing the text
_TOO_LONG = 1 << 16  # bytes; a longer text may exceed a provider's limit, so it is parsed completely
_VISIBLE = frozenset(range(0x21, 0x7F)) - {0x5C}
_END = 64  # maximum length of the last word of a long text, in bytes
_LONE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\xed[\xa0-\xbf]")  # a surrogate, escaped or in UTF-8
_PAIRED = re.compile(rb"(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]")
"""Matches a surrogate pair, or an escape of one character, such as a backslash."""


@cache
def _state_class(family: str) -> type[CheckState]:
    """Return the class that checks a family's messages. Its module is imported on first use."""
    judge: type[CheckState] = getattr(import_module(f"actors.core.check.{family}"), _STATES[family])
    return judge


def container(dialect: Dialect) -> str:
    """Return the key of the message array in a request of this dialect, such as `messages` or `contents`."""
    return _state_class(dialect.family).container


@lru_cache(maxsize=256)
def initial_state(dialect: Dialect) -> CheckState:
    """Return the check state before the first message. It is cached, and shared by all transcripts of a dialect."""
    return _state_class(dialect.family)(dialect).split_faults()[0]


def check_fragment(state: CheckState, *pieces: bytes, strict: bool = False) -> tuple[CheckState, list[Fault]]:
    """Check a fragment of the `messages` array, and return the next state and the faults.

    Args:
        state: The state before the fragment. It is not changed.
        pieces: The appended fragment, in one or more pieces. A piece that begins with a quotation mark is one JSON
            string from ingestion.
        strict: Use only the strict parser, for example after a provider has rejected the request.

    If the fragment is not valid JSON, the state is returned unchanged, with the fault.
    """
    if not any(pieces):
        return state, []
    if not strict and (quick := check_quickly(state, *pieces)) is not None:
        return quick.split_faults()
    fragment = b"".join(pieces)
    try:
        return check_strictly(state, fragment).split_faults()
    except JsonRefused as refused:
        path = f"{state.container}[{state.message_count}:]"
        return state, _json_faults(state.copy(), fragment, path, refused)


def check_quickly(state: CheckState, *pieces: bytes) -> CheckState | None:
    """Check a fragment with the fast parser. Return the next state, or None if the strict parser must decide."""
    text = _as_message_array(
        state, b"".join([piece if len(piece) < _LONG else _stand_in_for_text(piece) for piece in pieces])
    )
    if (read := _check_usual_messages(state, text)) is not None:
        return read
    try:
        read = _check_parsed_fragment(state, _QUICK.decode(text), strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if read.faults else read


def _check_usual_messages(state: CheckState, text: bytes) -> CheckState | None:
    """Check a fragment that contains only usual messages. Return the next state, or None for any other fragment."""
    if (decoder := state.usual_messages) is None:
        return None
    read = state.copy()
    read.strict = False
    try:
        read.check_usual(decoder.decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unusual):
        return None
    return None if read.faults else read


def _stand_in_for_text(piece: bytes) -> bytes:
    """Return a short string in place of a long text, for the fast parser. Return other pieces unchanged.

    The rules for texts only concern whether a text is blank, how it ends, and whether it is too long. The short string
    satisfies these rules exactly if the text does. If the piece is another string, such as an id, the short string
    breaks a rule, and the fragment is checked again with the strict parser. The text is cut at a space, because a space
    is never part of an escape sequence or of another character.
    """
    if piece[:1] != b'"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG:
        return piece
    last = piece.rfind(b" ", -_END, -2)
    return b'"-' + piece[last:] if last > 0 else piece


def check_strictly(state: CheckState, fragment: bytes) -> CheckState:
    """Check a fragment with the strict parser, and return the next state, including the faults.

    Raises:
        JsonRefused: The fragment is not valid JSON.
    """
    text = _as_message_array(state, fragment)
    return _check_parsed_fragment(state, parse(text, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH), strict=True)


def finish_check(state: CheckState, *, manual_thinking: bool = False) -> list[Fault]:
    """Return all faults of a request that ends after the checked messages.

    They include calls without a result, a last message with a wrong role, and a request without messages.
    `manual_thinking` is True if the request sets thinking of type `enabled` (ANT-40).
    """
    end = state.copy()
    end.check_end(manual_thinking=manual_thinking)
    return end.faults


def check(body: bytes, dialect: Dialect) -> list[Fault]:
    """Return every fault of a complete request body. An empty list means that the request may be sent.

    `check` never raises, whatever the bytes are. It does not check rules about facts that only the provider knows, such
    as signatures, its models and token counts; docs/reference/rulebook.md marks these rules.
    """
    state = _state_class(dialect.family)(dialect)
    try:
        request = parse(body, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
    except JsonRefused as refused:
        return _json_faults(state, body, "request", refused)
    if type(request) is not dict:
        state.fault("ALL-01", "request", f"the body must be an object, not {excerpt(request)}")
        return state.faults
    state.tool_names = set()
    state.check_parameters(request)
    for rule, path, what in setting_faults(request, dialect):
        state.fault(rule, path, what)
    messages = request.get(state.container)
    if type(messages) is list:
        state.check_messages(messages)
        state.check_end(manual_thinking=value_at(request, "thinking", "type") == "enabled")
    else:
        state.fault("ALL-02", state.container, f"must be a list of messages, not {excerpt(messages)}")
    return state.faults


def with_canonical_ids(
    faults: Sequence[Fault],
    canonical_id_of: Callable[[str], str | None],
    all_call_ids: Callable[[], Sequence[str]],
) -> list[Fault]:
    """Return the faults with the canonical ids of their calls, in place of the ids in the request.

    Args:
        faults: The faults of a request, with ids as in the request.
        canonical_id_of: Returns the canonical id for an id in the request, or None if the id is unknown.
        all_call_ids: Returns the canonical ids of all calls in the request, in order. They are used for calls that have
            no id in the request.
    """
    return [
        _with_canonical_ids(fault, canonical_id_of, all_call_ids) if fault.call_ids else fault
        for fault in faults
    ]


def _with_canonical_ids(
    fault: Fault, canonical_id_of: Callable[[str], str | None], all_call_ids: Callable[[], Sequence[str]]
) -> Fault:
    ids = [canonical_id_of(call_id) or call_id for call_id in fault.call_ids]
    # if calls have no ids in the request, a fault names the call with index 3 as `#3`
    if any(call_id.startswith("#") for call_id in ids):
        numbered = {f"#{number}": call_id for number, call_id in enumerate(all_call_ids())}
        ids = [numbered.get(call_id, call_id) for call_id in ids]
    return type(fault)(str(fault), call_ids=ids, rule=fault.rule)


def _as_message_array(state: CheckState, fragment: bytes) -> bytes:
    """Complete a fragment to a JSON array of messages. A 0 stands for messages or blocks that were checked before."""
    if state.open_blocks_key is None:
        return b"[0%b]" % fragment if state.message_count else b"[%b]" % fragment
    if state.role is None:
        return b"[%b]}]" % fragment
    before = b"0" if state.block_count else b""
    return b'[{"role":"%b","%b":[%b%b]}]' % (
        state.role.encode(),
        state.open_blocks_key.encode(),
        before,
        fragment,
    )


def _check_parsed_fragment(state: CheckState, messages: JsonValue, *, strict: bool) -> CheckState:
    """Check the parsed messages of a fragment, as completed by `_as_message_array`, and return the next state."""
    assert type(messages) is list
    read, resumes = state.copy(), state.open_blocks_key is not None and state.role is not None
    read.strict = strict
    begun = value_at(messages[0], str(state.open_blocks_key)) if resumes else messages
    if type(begun) is list and (
        state.block_count if resumes else state.message_count and state.open_blocks_key is None
    ):
        del begun[0]
    read.check_messages(messages, resumes=resumes)
    return read


def _json_faults(state: CheckState, text: bytes, path: str, error: JsonRefused) -> list[Fault]:
    """Add the fault for bytes that the strict parser has refused, and return the faults of `state`."""
    if _LONE.search(_PAIRED.sub(b"-", text)):
        state.fault("ALL-12", path, "the text contains a lone surrogate")
    else:
        state.fault("ALL-01", path, f"the text is not valid JSON: {error}")
    return state.faults
