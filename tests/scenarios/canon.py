"""Convert a script to a history and a ledger."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, assert_never

from actors.core.data.jsonio import Json, quote
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.call_events import CallEvent, Cancelled, Returned, Scheduled, Started
from actors.core.log.events import RequestSent
from actors.core.values.content import (
    Block,
    Media,
    Message,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding, CallId, mint
from tests.scenarios.naive import Asked
from tests.scenarios.script import (
    ENCRYPTED,
    PICTURE,
    SIGNATURE,
    THOUGHT,
    Call,
    Details,
    Part,
    Picture,
    Result,
    Said,
    Thought,
    Words,
    native_id,
    real_result,
)

Form: TypeAlias = Literal["both", "ledger", "blocks"]
"""Where the results are known from: the ledger and blocks in the history, the ledger alone as a session has it, or the
blocks alone as an import has it."""

_SEALS = {
    "openai_responses": "reasoning_item",
    "gemini": "thought_signature",
    "gemini_2": "thought_signature",
    "vertex": "thought_signature",
    "kimi": "reasoning_content",
    "deepseek": "reasoning_content",
}


ELSEWHERE = "_elsewhere"


def made_by(provider: str) -> Binding:
    """Return the binding that stands for a provider; `kimi_elsewhere` has another account and another model."""
    name = provider.removesuffix(ELSEWHERE)
    account, model = ("account-1", "m") if name == provider else ("account-2", "n")
    return Binding(provider, name, f"https://{name}.example", account, model)


def canonical(
    said: Sequence[Said], asked: Asked, form: Form, remembered: Iterable[int] = ()
) -> tuple[list[Message], Ledger]:
    """Return the history and the ledger of a script. `remembered`: calls that only the ledger still knows."""
    messages = [message_of(each, asked, form) for each in said]
    messages = [message for message in messages if message.blocks]
    return messages, History(messages).ledger if form == "blocks" else _ledger(said, asked, remembered)


def message_of(said: Said, asked: Asked, form: Form) -> Message:
    """Return one message of a script; without blocks where all that it holds is in the ledger."""
    origin = made_by(said.origin or asked.dialect) if said.role == "assistant" else None
    provider = said.origin or asked.dialect
    parts = [part for part in said.parts if not (isinstance(part, Result) and _has_no_block(part, form))]
    return Message(said.role, [_block(part, provider, asked) for part in parts], origin=origin)


def _has_no_block(part: Result, form: Form) -> bool:
    """Return True if no block contains the result; synthetic results never have a block."""
    return form == "ledger" or not part.real


def _block(part: Part, provider: str, asked: Asked) -> Block:
    match part:
        case Words(text=text):
            return Text(text)
        case Call(number=number):
            return _call(number, asked.details(part), provider)
        case Result(number=number):
            return ToolResult(mint(number), real_result(number))
        case Thought(origin=origin, sealed=sealed):
            maker = origin or provider
            return Thinking(THOUGHT, _seal(maker) if sealed else None)
        case Picture():
            return Media("image/png", data=PICTURE)
        case _:
            assert_never(part)


def _call(number: int, details: Details, provider: str) -> ToolCall:
    native = ProviderState("call_id", quote(native_id(number, details, provider)), made_by(provider))
    text = details.arguments
    if text is None:
        return ToolCall(mint(number), details.name, {"n": number}, native=native)
    if text.startswith("{") and text.endswith("}"):
        return ToolCall(mint(number), details.name, json=Json(text.encode()), native=native)
    return ToolCall(mint(number), details.name, raw=text, native=native)


def _seal(maker: str) -> ProviderState:
    name = maker.removesuffix(ELSEWHERE)
    data = json.dumps(ENCRYPTED) if name == "openai_responses" else SIGNATURE
    return ProviderState(_SEALS.get(name, "signature"), quote(data), made_by(maker))


def _ledger(said: Sequence[Said], asked: Asked, remembered: Iterable[int]) -> Ledger:
    """Return the ledger with every event of the script, in order."""
    ledger = ledger_knowing(remembered, asked)
    for each in said:
        ledger = ledger.apply(*news(each, asked))
    return ledger


def ledger_knowing(numbers: Iterable[int], asked: Asked) -> Ledger:
    """Return a ledger that knows these calls."""
    return Ledger().apply(*(event for number in numbers for event in _events(Call(number), asked)))


def news(said: Said, asked: Asked) -> list[CallEvent | RequestSent]:
    """Return the ledger events of one message."""
    return [event for part in said.parts for event in _events(part, asked)]


def _events(part: Part, asked: Asked) -> Iterator[CallEvent | RequestSent]:
    if isinstance(part, Call):
        details = asked.details(part)
        yield Scheduled(mint(part.number), details.name, _call(part.number, details, asked.dialect).json)
        yield Started(mint(part.number))
    elif isinstance(part, Result):
        call_id: CallId = mint(part.number)
        if part.real:
            yield Returned(call_id, quote(real_result(part.number)))
        else:
            yield Cancelled(call_id, "cancelled")
            yield RequestSent(1, 1, made_by(asked.dialect), 0, 0, ((call_id, "cancelled"),))
