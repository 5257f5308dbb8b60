"""Generate the user messages of a simulation, each with the name of its ask, attachments and an output format."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from actors.core.settings.asking import AskSettings
from actors.core.values.content import Media
from actors.session.user_input import UserInput
from actors.testing.images import png
from actors.testing.simulation.forms import FORMS
from actors.testing.simulation.plan import PlannedAsk

PARTS: Mapping[str, tuple[str, ...]] = {
    "image": ("image/png",),
    "document": ("application/pdf",),
    "both": ("application/pdf", "image/png"),
}
"""The media types of each kind of attachments."""
SHORT = 12_347
"""Token limit of a short answer. No other number in a request has this value."""
SETTINGS: Mapping[str, AskSettings] = {
    "short": {"max_tokens": SHORT},
    "cool": {"max_tokens": SHORT, "temperature": 0.25},
    "one round": {"max_rounds": 1},
    "two rounds": {"max_rounds": 2},
    "no tools": {"tool_choice": "none"},
    "some tool": {"tool_choice": "required"},
    "in time": {"timeout": 4.0},
    "few tokens": {"token_limit": 1_500},
    "no corrections": {"max_corrections": 0},
}
"""The settings that an ask may have, by name."""
_BEGINS = {"application/pdf": b"%PDF-1.7", "image/tiff": b"II*\0"}


class PlannedMessage(NamedTuple):
    """The user message of an ask, with its output format and its settings."""

    name: str
    words: UserInput
    output: Any = None  # Any: annotations have no common type
    settings: AskSettings = AskSettings()


def prompt(name: str) -> str:
    """Return a system prompt that contains a unique mark."""
    return f"Be brief. [system {name}]"


def tool_mark(name: str) -> str:
    """Return the unique mark in the description of a tool."""
    return f"[tool {name}]"


def ask_text(ask: str) -> str:
    """Return the text of an ask without attachments."""
    return f"[ask {ask}] Go on, please."


def task_text(call: str) -> str:
    """Return the task text that a call sends to its subagent."""
    return f"[task {call}] Do it."


def is_task(ask: str) -> bool:
    """Return True if an ask belongs to a subagent.

    Its name is then the key of the tool call that started the subagent.
    """
    return ".r" in ask


def closing_text(ask: str) -> str:
    """Return the text that follows the attachments of an ask."""
    return f"[seen {ask}] Go by these."


def attachment_for(ask: str, media_type: str) -> Media:
    """Return an attachment whose content is unique to the ask."""
    data = png(note=ask) if media_type == "image/png" else _BEGINS[media_type] + f" of {ask}".encode()
    return Media.from_bytes(data, media_type)


def planned_message(ask: PlannedAsk) -> PlannedMessage:
    """Return the user message of a planned ask."""
    form, parts, settings = ask.feature("output"), ask.feature("parts"), ask.feature("settings")
    message: UserInput = ask_text(ask.name)
    if parts is not None:
        media = [attachment_for(ask.name, media_type) for media_type in PARTS[parts.what]]
        message = [ask_text(ask.name), *media, closing_text(ask.name)]
    output = None if form is None else FORMS[form.what].output
    return PlannedMessage(
        ask.name, message, output, AskSettings() if settings is None else SETTINGS[settings.what]
    )
