"""Encode the JSON-RPC error that replaces an answer above a limit, and decode it again.

The transports create the error, so that the SDK ends the request normally; `results` converts it to the call's error.
"""

import json
from typing import Any

from mcp_types import ErrorData, RequestId

from actors.core.data.jsonio import is_object
from actors.errors import AnswerTooLarge
from actors.tools.mcp.limits import answer_too_large

CODE = -32_089
"""The error code, outside of the range that servers use."""


def error_data(error: AnswerTooLarge) -> ErrorData:
    """Return the JSON-RPC error for the caller of the SDK."""
    found = {"setting": error.setting, "value": error.value, "limit": error.limit}
    return ErrorData(code=CODE, message=str(error), data=found)


def too_large(error: ErrorData) -> AnswerTooLarge | None:
    """Return the error that `error_data` encoded; None for every other error."""
    found: Any = error.data  # Any: from a server
    if error.code != CODE or not is_object(found):
        return None
    setting, value, limit = (found.get(key) for key in ("setting", "value", "limit"))
    if isinstance(setting, str) and isinstance(value, int) and isinstance(limit, int):
        return answer_too_large(setting, value, limit)
    return None


def error_answer(request: RequestId, error: ErrorData) -> bytes:
    """Return the JSON of an error answer."""
    answer = {"jsonrpc": "2.0", "id": request, "error": error.model_dump(exclude_none=True)}
    return json.dumps(answer).encode()
