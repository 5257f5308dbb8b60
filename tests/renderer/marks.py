"""A request's body without its cache marks, read by the plainest means."""

import json
import re
from typing import Any

MARK = rb'"cache_control":\{"type":"ephemeral"(?:,"ttl":"1h")?\}'
POINT = rb'\{"cachePoint":\{"type":"default"(?:,"ttl":"1h")?\}\}'
_MARKS = re.compile(b",%b|,%b" % (MARK, POINT))
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_PART = re.compile(rb'\[\{"type":"text","text":(%b),%b\}\]' % (_STRING, MARK))


def unmarked(body: bytes, dialect: str) -> bytes:
    """The body as it is where nothing is marked."""
    if dialect == "openrouter":  # a string that is marked is a list of one part
        body = _PART.sub(rb"\1", body)
    return _MARKS.sub(b"", body)


def marks(body: bytes) -> list[str]:
    """Where the marks of a body stand, as paths, in the provider's order; the one for the whole request last."""
    read = json.loads(body)
    order = ("toolConfig", "tools", "system", "messages", "contents", "input")
    found = [path for key in order if key in read for path in _within(read[key], key)]
    return [*found, *(["request"] if "cache_control" in read else [])]


def _within(value: Any, path: str) -> list[str]:  # Any: JSON
    if isinstance(value, dict):
        own = [path for key in ("cache_control", "cachePoint") if key in value]
        return [*own, *(at for key, held in value.items() for at in _within(held, f"{path}.{key}"))]
    if isinstance(value, list):
        return [at for number, held in enumerate(value) for at in _within(held, f"{path}.{number}")]
    return []
