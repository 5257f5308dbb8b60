"""The judge: may this request be sent, by the rulebook alone?

It reads the encoded bytes, as the provider will, and shares no code with what made them. It is a fold, so
that a request costs what is new in it: a lane keeps the state after what it has sent, and before the next
send only the new fragment is read.

    state = start(dialect)
    state, faults = extend(state, fragment)      # for each piece of the `messages` array, in order
    faults = finish(state)                       # what is wrong if it were sent now
    faults = check(body, dialect)                # a whole request, its other fields included

A fragment is the text that was appended to the array of messages since the last one, brackets of the array
excluded. In the families `openai_chat` and `responses` a message is always whole: `{...},{...}` first, then
`,{...}`. In the others the last message stays open in its list of blocks (`Fold.opens`):
`{"role":"user","content":[{...}` first, then `,{...}` for more blocks and
`]},{"role":"assistant","content":[{...}` for the next message.

Faults are returned, not raised, in the order in which they are met. Their `call_ids` are the ids on the
wire: the judge knows no others.
"""

import re

from actors.core.check.anthropic import Anthropic
from actors.core.check.converse import Converse
from actors.core.check.gemini import Gemini
from actors.core.check.openai_chat import OpenAIChat
from actors.core.check.responses import Responses
from actors.core.check.state import CheckState, Fold, shown
from actors.core.dialect import Dialect
from actors.core.jsonio import JsonRefused, JsonValue, parse
from actors.errors import CanonicalFault, Fault, ProjectionFault

__all__ = ["CheckState", "check", "container", "extend", "finish", "start"]

_FOLDS: dict[str, type[Fold]] = {
    "openai_chat": OpenAIChat,
    "anthropic": Anthropic,
    "responses": Responses,
    "gemini": Gemini,
    "converse": Converse,
}
_MAX_BYTES = 1 << 30  # how much a provider takes is the provider's to say: it is no fault of structure
_MAX_DEPTH = 96  # arguments and schemas may be 64 deep, inside messages and blocks
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def container(dialect: Dialect) -> str:
    """Return the key under which a request of this dialect holds its messages."""
    return _FOLDS[dialect.family].container


def start(dialect: Dialect) -> CheckState:
    """Return the state before the first message."""
    return CheckState(dialect, re.compile(dialect.id_pattern), re.compile(dialect.tool_name_pattern))


def extend(state: CheckState, fragment: bytes) -> tuple[CheckState, list[Fault]]:
    """Read what was appended to the `messages` array, and return the next state and the faults in it.

    The given state stays as it was and may be extended again. After a fragment that is not JSON the
    state returned is the one given.
    """
    if not fragment:
        return state, []
    fold = _FOLDS[state.dialect.family](state)
    try:
        messages = parse(_wrapped(state, fragment, fold.opens), max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
    except JsonRefused as refused:
        return state, [_unreadable(fragment, f"{fold.container}[{state.count}:]", refused, fold.surrogates)]
    _feed(fold, messages)
    return fold.frozen(), fold.faults


def finish(state: CheckState, *, manual_thinking: bool = False) -> list[Fault]:
    """Return what is wrong if the request were sent now: open calls, a wrong last role, no message.

    Args:
        state: The state after the last fragment.
        manual_thinking: The request asks for thinking of type `enabled` (ANT-40).
    """
    fold = _FOLDS[state.dialect.family](state)
    fold.finish(manual_thinking=manual_thinking)
    return fold.faults


def check(body: bytes, dialect: Dialect) -> list[Fault]:
    """Return every fault of a whole request body; an empty list means that it may be sent.

    Never raises, whatever the bytes are. What only the provider can know (signatures, its models, token
    counts) is outside: docs/reference/rulebook.md marks those rules.
    """
    fold = _FOLDS[dialect.family](start(dialect))
    try:
        request = parse(body, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
    except JsonRefused as refused:
        return [_unreadable(body, "request", refused, fold.surrogates)]
    if type(request) is not dict:
        return [ProjectionFault(f"request: {shown(request)} where an object belongs (ALL-01)", rule="ALL-01")]
    fold.head(request)
    messages = request.get(fold.container)
    if type(messages) is not list:
        fold.fault("ALL-02", fold.container, f"a list of messages, not {shown(messages)}")
        return fold.faults
    for message in messages:
        fold.message(message)
    thinking = request.get("thinking")
    fold.finish(manual_thinking=type(thinking) is dict and thinking.get("type") == "enabled")
    return fold.faults


def _wrapped(state: CheckState, fragment: bytes, opens: str | None) -> bytes:
    """Return a fragment as one JSON array of messages. A leading 0 stands for what was read before."""
    if opens is None:
        return b"[0%b]" % fragment if state.count else b"[%b]" % fragment
    if state.role is None:
        return b"[" + fragment + b"]}]"
    before = b"0" if state.blocks else b""
    return b'[{"role":"%b","%b":[%b%b]}]' % (state.role.encode(), opens.encode(), before, fragment)


def _feed(fold: Fold, messages: JsonValue) -> None:
    """Read the messages of a wrapped fragment."""
    assert type(messages) is list
    seen, opens = fold.before, fold.opens
    if opens is not None and seen.role is not None:
        opened, *messages = messages
        assert type(opened) is dict
        if seen.blocks and type(content := opened[opens]) is list:
            del content[0]
        fold.resume(opened)
    elif opens is None and seen.count:
        del messages[0]
    for message in messages:
        fold.message(message)


def _unreadable(text: bytes, where: str, refused: JsonRefused, rule: str) -> Fault:
    """Return the fault of bytes that are not strict JSON: `rule` if the text holds a lone surrogate."""
    if _has_lone_surrogate(text):
        return CanonicalFault(f"{where}: the text holds a lone surrogate ({rule})", rule=rule)
    return ProjectionFault(f"{where}: not strict JSON: {refused} (ALL-01)", rule="ALL-01")


def _has_lone_surrogate(text: bytes) -> bool:
    """Say whether an escape stands for half a character, or the bytes encode one."""
    high_ends = -1
    for escape in _ESCAPE.finditer(text):
        unit = int(escape[1], 16) if escape[1] else 0
        if 0xDC00 <= unit <= 0xDFFF:
            if high_ends != escape.start():
                return True
            high_ends = -1
        elif high_ends >= 0:
            return True
        elif 0xD800 <= unit <= 0xDBFF:
            high_ends = escape.end()
    return high_ends >= 0 or re.search(rb"\xed[\xa0-\xbf]", text) is not None
