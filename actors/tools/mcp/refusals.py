"""Encode the JSON-RPC error that replaces an oversized answer, and decode it again.

The transports create the error, so that the SDK ends the request normally. `results` and `connection` convert the error
back to an exception, which the call or the opening then raises.
"""

import json
from typing import Any

from mcp_types import ErrorData, RequestId

from actors.core.data.jsonio import is_object
from actors.errors import AnswerTooLarge
from actors.tools.mcp.limits import too_large_error

CODE = -32_089
"""The JSON-RPC code of the error, which is outside of the range that servers use."""


def encode_error(error: AnswerTooLarge) -> ErrorData:
    """Encode an error as a JSON-RPC error for the SDK."""
    found = {"setting": error.setting, "value": error.value, "limit": error.limit}
    return ErrorData(code=CODE, message=str(error), data=found)


def decode_error(error: ErrorData) -> AnswerTooLarge | None:
    """Decode an error that `encode_error` encoded; return None for every other error."""
    found: Any = error.data  # Any: a server may send any value
    if error.code != CODE or not is_object(found):
        return None
    setting, value, limit = (found.get(key) for key in ("setting", "value", "limit"))
    if isinstance(setting, str) and isinstance(value, int) and isinstance(limit, int):
        return too_large_error(setting, value, limit)
    return None


def error_answer(request: RequestId, error: ErrorData) -> bytes:
    """Return a JSON-RPC answer with an error, as JSON."""
    answer = {"jsonrpc": "2.0", "id": request, "error": error.model_dump(exclude_none=True)}
    return json.dumps(answer).encode()
