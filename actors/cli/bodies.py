"""A list of messages as a whole request body, for a judge that reads nothing else."""

from actors.core.check import container
from actors.core.dialect import Dialect

MODEL = "model"
"""Stands in a body where nobody named one."""

_ANY_TOOL = b'{"toolSpec":{"name":"any","inputSchema":{"json":{"type":"object"}}}}'


def whole(text: bytes, rules: Dialect) -> bytes:
    """Return a list of messages, which is the text given, in a body with what it must have beside it."""
    key = container(rules).encode()
    if rules.family == "converse":
        return b'{"toolConfig":{"tools":[%b]},"%b":%b}' % (_ANY_TOOL, key, text)
    if rules.family == "gemini":
        return b'{"%b":%b}' % (key, text)
    limit = b',"max_tokens":1' if rules.max_tokens_default else b""
    return b'{"model":"%b"%b,"%b":%b}' % (MODEL.encode(), limit, key, text)
