"""The JSON-RPC error that takes the place of an answer that was not read.

The transports make it, so that the SDK ends the request as any other; `results` turns it back into the error of the
call.
"""

import json
from typing import Any

from mcp_types import ErrorData, RequestId

from actors.errors import AnswerTooLarge
from actors.tools.mcp.limits import answer_too_large

CODE = -32_089
"""The code of the error, which no server should use."""


def error_data(error: AnswerTooLarge) -> ErrorData:
    """Return the error that the SDK hands to the caller in place of an answer."""
    found = {"setting": error.setting, "value": error.value, "limit": error.limit}
    return ErrorData(code=CODE, message=str(error), data=found)


def too_large(error: ErrorData) -> AnswerTooLarge | None:
    """Return the error that `error_data` was made of, if it was."""
    found: Any = error.data  # Any: of any server
    if error.code != CODE or not isinstance(found, dict):
        return None
    setting, value, limit = (found.get(key) for key in ("setting", "value", "limit"))
    if isinstance(setting, str) and isinstance(value, int) and isinstance(limit, int):
        return answer_too_large(setting, value, limit)
    return None


def error_answer(request: RequestId, error: ErrorData) -> bytes:
    """Return the JSON of an answer that is an error."""
    said = {"jsonrpc": "2.0", "id": request, "error": error.model_dump(exclude_none=True)}
    return json.dumps(said).encode()
