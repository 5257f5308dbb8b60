"""Instruct the model in words if its backend has no setting for an ask's output format or forced tool.

The turn driver uses this module when an ask or one of its turns begins, and when an interrupted ask continues.
`AskInFlight` records the instructions that the history contains, so that none is repeated.
"""

from typing import Final

from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked, forced_instruction
from actors.core.settings.values import ToolChoice, ToolChoiceSetting
from actors.core.turn.output import instruction
from actors.core.values.content import Message, Text
from actors.core.values.packed import Packed, pack, unpack
from actors.errors import ConfigError
from actors.provider.backend import ResolvedBackend
from actors.session.inflight import AskInFlight

AGAIN: Final = "Your last answer was interrupted. Give the complete answer again."
"""The instruction to a model whose interrupted answer is in the history."""


def add_output_instruction(
    ask: AskInFlight, member: str, message: Packed, ask_settings: Asked | None
) -> Packed:
    """Return the user's message, with an instruction about the output format if the backend of `member` needs one."""
    if ask_settings is None or ask_settings.output is None:
        return message
    try:
        ask.is_instructed = ask.resolver.backend(member).needs_output_instruction(ask_settings)
    except (
        ConfigError
    ):  # `add_missing_instruction` adds the instruction for the backend that replaces `member`
        return message
    if not ask.is_instructed:
        return message
    user_message = unpack(message)
    blocks = (*user_message.blocks, Text(instruction(ask_settings.output)))
    return pack(Message(user_message.role, blocks, user_message.turn, user_message.origin))


def add_missing_instruction(ask: AskInFlight, backend: ResolvedBackend) -> None:
    """After a failover, add the instruction about the output format if it is missing and the backend needs it."""
    asked = ask.log.state.asked
    if asked is None or asked.output is None or ask.is_instructed:
        return
    if backend.needs_output_instruction(asked):
        ask.is_instructed = True
        ask.add_instruction(instruction(asked.output))


def instruct_forced_tool(ask: AskInFlight, backend: ResolvedBackend) -> ToolChoiceSetting | None:
    """Instruct the model to call the forced tool, if the backend accepts no forced tool choice.

    Return the forced tool choice that the instruction replaces, or None.
    """
    choice = backend.instructed_tool_choice(ask.log.state.asked)
    if choice is not None and not ask.is_forced:
        ask.is_forced = True
        ask.add_instruction(forced_instruction(choice))
    return choice


def find_instructions(ask: AskInFlight) -> None:
    """Find the instructions that the interrupted turns of the ask have added, so that none is repeated."""
    state = ask.log.state
    if (asked := state.asked) is None:
        return
    texts = [message.text for message in state.history.since(state.asked_at) if message.role == "user"]
    if asked.output is not None:
        ask.is_instructed = any(instruction(asked.output) in text for text in texts)
    if asked.tool_choice == "required" or isinstance(asked.tool_choice, ToolChoice):
        ask.is_forced = any(forced_instruction(asked.tool_choice) in text for text in texts)


def has_forced_call(state: SessionState) -> bool:
    """Return True if the model has already called the tool that the last ask forces."""
    choice = None if state.asked is None else state.asked.tool_choice
    if choice != "required" and not isinstance(choice, ToolChoice):
        return False
    calls = [call for message in state.history.since(state.asked_at) for call in message.calls]
    return any(choice in ("required", ToolChoice(call.name)) for call in calls)
