"""Generate the user messages of a simulation: text that names the ask, attachments, and an output format."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from actors.core.settings.asking import AskSettings
from actors.core.values.content import Media
from actors.session.user_input import UserInput
from actors.testing.images import png
from actors.testing.simulation.forms import FORMS
from actors.testing.simulation.plan import Ask

PARTS: Mapping[str, tuple[str, ...]] = {
    "image": ("image/png",),
    "document": ("application/pdf",),
    "both": ("application/pdf", "image/png"),
}
"""Attachments between two texts, by media type."""
SHORT = 12_347
"""Token limit of a short answer. The number is unique among requests."""
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
"""Settings of asks."""
_BEGINS = {"application/pdf": b"%PDF-1.7", "image/tiff": b"II*\0"}


class Said(NamedTuple):
    """The user message of an ask, its output format and its settings."""

    name: str
    words: UserInput
    output: Any = None  # Any: a type, or a JSON Schema
    settings: AskSettings = AskSettings()


def prompt(name: str) -> str:
    """Return a system prompt that contains a unique mark."""
    return f"Be brief. [system {name}]"


def tool_mark(name: str) -> str:
    """Return the mark in the description of a tool."""
    return f"[tool {name}]"


def words(ask: str) -> str:
    """Return the text of a plain ask."""
    return f"[ask {ask}] Go on, please."


def task(call: str) -> str:
    """Return the task that a call gives to a subagent."""
    return f"[task {call}] Do it."


def is_task(ask: str) -> bool:
    """Return True if an ask belongs to a subagent; its name is that of the calling tool call."""
    return ".r" in ask


def last_words(ask: str) -> str:
    """Return the text after the attachments."""
    return f"[seen {ask}] Go by these."


def attachment_of(ask: str, media_type: str) -> Media:
    """Return an attachment unique to the ask."""
    data = png(note=ask) if media_type == "image/png" else _BEGINS[media_type] + f" of {ask}".encode()
    return Media.from_bytes(data, media_type)


def message_of(ask: Ask) -> Said:
    """Return the message of a planned ask."""
    form, parts, settings = ask.wish("output"), ask.wish("parts"), ask.wish("settings")
    message: UserInput = words(ask.name)
    if parts is not None:
        media = [attachment_of(ask.name, media_type) for media_type in PARTS[parts.what]]
        message = [words(ask.name), *media, last_words(ask.name)]
    output = None if form is None else FORMS[form.what].output
    return Said(ask.name, message, output, AskSettings() if settings is None else SETTINGS[settings.what])
