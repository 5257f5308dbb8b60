"""A server without any SDK, over standard streams: it answers by a table, which is its first argument as JSON.

The table has a result for each method; `{"error": ...}` is a JSON-RPC error. `$blocks` in a result stands for so many
blocks of text, `$values` for so many values, `$bytes` for a text of so many bytes. With `$stderr` in the table the
server writes that to standard error and ends with exit code 3.
"""

import json
import sys
from typing import Any

Json = Any  # of a table


def fill(result: Json) -> Json:
    """Return a result with what the shorthands stand for."""
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
    """Return the answer to a request; None to a notification."""
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
