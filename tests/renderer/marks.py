"""Cache marks of request bodies, found with plain regular expressions."""

import json
import re
from typing import Any

MARK = rb'"cache_control":\{"type":"ephemeral"(?:,"ttl":"1h")?\}'
POINT = rb'\{"cachePoint":\{"type":"default"(?:,"ttl":"1h")?\}\}'
_MARKS = re.compile(b",%b|,%b" % (MARK, POINT))
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_PART = re.compile(rb'\[\{"type":"text","text":(%b),%b\}\]' % (_STRING, MARK))


def without_marks(body: bytes, dialect: str) -> bytes:
    """Return the body as it is without cache marks."""
    if dialect == "openrouter":  # a marked string is a list of one part
        body = _PART.sub(rb"\1", body)
    return _MARKS.sub(b"", body)


def marks(body: bytes) -> list[str]:
    """Return the paths of the marks in the provider's order, the mark of the complete request last."""
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
