"""An MCP server over standard streams without the SDK. It answers by a table, its first argument as JSON.

The table contains a result per method; `{"error": ...}` is a JSON-RPC error. In a result, `$blocks` stands for that
many text blocks, `$values` for that many values, and `$bytes` for a text of that many bytes. With `$stderr`, the
server writes that text to standard error and exits with code 3.
"""

import json
import sys
from typing import Any

Json = Any  # JSON


def fill(result: Json) -> Json:
    """Return a result with its shorthands expanded."""
    if not isinstance(result, dict):
        return result
    made = {key: value for key, value in result.items() if not key.startswith("$")}
    if "$blocks" in result:
        made["content"] = [{"type": "text", "text": ""}] * result["$blocks"]
    if "$values" in result:
        made["structuredContent"] = {"values": [0] * result["$values"]}
    if "$bytes" in result:
        made["content"] = [{"type": "text", "text": "x" * result["$bytes"]}]
    return made


def answer(table: Json, request: Json) -> Json:
    """Return the answer to a request, or None for a notification."""
    if "id" not in request:
        return None
    method, params = request["method"], request.get("params") or {}
    result = table.get(method)
    if method == "initialize":
        server = {"name": "raw", "version": "1"}
        capabilities: Json = {"tools": {}}
        version = params["protocolVersion"]
        result = result or {"capabilities": capabilities, "serverInfo": server}
        result = {"protocolVersion": version, **result}
    elif method == "tools/call" and isinstance(result, dict) and params["name"] in result:
        result = result[params["name"]]
    said = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        return {**said, "error": {"code": -32601, "message": "Method not found"}}
    if isinstance(result, dict) and result.keys() == {"error"}:
        return {**said, **result}
    return {**said, "result": fill(result)}


def main() -> None:
    table = json.loads(sys.argv[1])
    if "$stderr" in table:
        sys.stderr.write(table["$stderr"])
        sys.exit(3)
    for line in sys.stdin:
        if (said := answer(table, json.loads(line))) is not None:
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
