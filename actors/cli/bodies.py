"""A list of messages as a whole request body, for a judge that reads nothing else."""

from actors.core.check import container
from actors.core.dialects.dialect import Dialect

MODEL = "model"
"""Stands in a body where nobody named one."""

_ANY_TOOL = b'{"toolSpec":{"name":"any","inputSchema":{"json":{"type":"object"}}}}'


def whole(text: bytes, rules: Dialect) -> bytes:
    """Return a list of messages, which is the text given, in a body with what it must have beside it."""
    key = container(rules).encode()
    model = MODEL.encode()
    match rules.family:
        case "converse":
            return b'{"toolConfig":{"tools":[%b]},"%b":%b}' % (_ANY_TOOL, key, text)
        case "gemini":
            return b'{"%b":%b}' % (key, text)
        case "anthropic":
            return b'{"model":"%b","max_tokens":1,"%b":%b}' % (model, key, text)
        case "openai_chat" | "responses":
            return b'{"model":"%b","%b":%b}' % (model, key, text)
