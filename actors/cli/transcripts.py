"""`actors lint` and `actors convert`: the pure core on a file.

A file is a request body or its list of messages. What is valid JSON can be converted, however broken the
conversation in it is; what cannot be read at all ends with exit code 2.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors.adapters.importing import from_wire
from actors.adapters.reading import Imported
from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.core.check import check
from actors.core.dialect import Dialect, dialect
from actors.core.history import History
from actors.core.lane import Rendered
from actors.core.recovery import recover
from actors.errors import TranscriptError
from actors.pure import encode, render

MAX_BYTES = 256 * 1024 * 1024
MODEL = "model"
"""Stands in the body where nobody named one."""

KEPT = frozenset({"messages", "model", "system", "tools", "max_tokens", "max_completion_tokens", "stream"})
"""Fields of a request body that `convert` carries over."""

Body = dict[str, Any]  # Any: parsed JSON of a file


def main(options: argparse.Namespace) -> Exit:
    """Run the command the options name."""
    return _lint(options) if options.command == "lint" else _convert(options)


def _lint(options: argparse.Namespace) -> Exit:
    rules = dialect(options.to)
    text, value = _read(options.file)
    if options.source is None:
        lines = [str(fault) for fault in check(_whole(text, value, rules), rules)]
    else:
        imported, rendered = _rendered(value, options.source, rules)
        body = _encoded(rendered, imported, value, MODEL)
        lines = [*_repairs(imported, rendered), *(str(fault) for fault in check(body, rules))]
    for line in lines:
        print(safe(line))
    verdict = f"{len(lines)} found" if lines else "nothing is wrong"
    complain(f"{options.file} for {rules.name}: {verdict}")
    return Exit.FAILED if lines else Exit.OK


def _convert(options: argparse.Namespace) -> Exit:
    rules = dialect(options.to)
    _, value = _read(options.file)
    imported, rendered = _rendered(value, options.source, rules)
    named = value.get("model") if isinstance(value, dict) else None
    body = _encoded(rendered, imported, value, options.model or (named if isinstance(named, str) else MODEL))
    for line in (*_repairs(imported, rendered), *_losses(rendered, value)):
        complain(line)
    sys.stdout.write(body.decode() + "\n")
    return Exit.OK


def _read(path: str) -> tuple[bytes, Body | list[Any]]:  # Any: parsed JSON
    """Return a file's bytes and what they say.

    Raises:
        TranscriptError: They are no JSON object or list.
    """
    text = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else _file(Path(path))
    name = "standard input" if path == "-" else path
    if len(text) > MAX_BYTES:
        raise TranscriptError(f"Cannot read {name}: it is larger than {MAX_BYTES} bytes")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TranscriptError(f"Cannot read {name}: not JSON at {place}: {error.msg.lower()}") from None
    except UnicodeDecodeError:
        raise TranscriptError(f"Cannot read {name}: not UTF-8 text") from None
    except (RecursionError, ValueError) as error:  # nested too deep; a number too long
        raise TranscriptError(f"Cannot read {name}: {str(error).lower()}") from None
    if not isinstance(value, dict | list):
        raise TranscriptError(f"{name} holds no transcript; it wants a request body or a list of messages")
    return text, value


def _file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _whole(text: bytes, value: Body | list[Any], rules: Dialect) -> bytes:  # Any: parsed JSON
    """Return a request body: the file itself, or its list of messages with what a body must have beside it."""
    if isinstance(value, dict):
        return text
    limit = b',"max_tokens":1' if rules.max_tokens_default else b""
    return b'{"model":"%b"%b,"messages":%b}' % (MODEL.encode(), limit, text)


def _rendered(value: object, source: str, rules: Dialect) -> tuple[Imported, Rendered]:
    imported = from_wire(value, source)
    history = History(imported.messages)
    return imported, render(history, recover(imported.messages), rules)


def _encoded(rendered: Rendered, imported: Imported, value: object, model: str) -> bytes:
    body: Body = value if isinstance(value, dict) else {}
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    return encode(
        rendered,
        model=model,
        system=imported.system,
        tools=[*_tools(body)],
        max_tokens=limit if isinstance(limit, int) and limit > 0 else None,
        stream=body.get("stream") is True,
    )


def _tools(body: Body) -> Iterator[Body]:
    """Give the tools a body declares, in either dialect, as `encode` takes them."""
    declared = body.get("tools")
    for tool in declared if isinstance(declared, list) else ():
        told = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(told, dict) and isinstance(told.get("name"), str):
            schema = told.get("parameters") or told.get("input_schema")
            about = told.get("description")
            yield {
                "name": told["name"],
                "description": about if isinstance(about, str) else "",
                "parameters": schema if isinstance(schema, dict) else None,
            }


def _repairs(imported: Imported, rendered: Rendered) -> Iterator[str]:
    """Give one line for each thing that was wrong with the transcript, and what became of it."""
    yield from imported.diagnostics
    report = rendered.report
    for finding in report.findings:
        yield f"worked around: {finding.code} ({finding.fault_class}) {' '.join(finding.call_ids)}".rstrip()
    for call_id, dedupe in report.dedupe:
        yield f"deduplicated: a result of {call_id} ({dedupe})"
    for call_id, reason in report.synthetic:
        yield f"synthesized: a result for {call_id} ({reason})"


def _losses(rendered: Rendered, value: object) -> Iterator[str]:
    """Give one line for each thing the other dialect is not shown."""
    for kind, count in rendered.report.losses:
        yield f"dropped: {count} {kind}"
    if isinstance(value, dict) and (left := sorted(set(value) - KEPT)):
        yield f"left out: {', '.join(left)}"
