"""`actors lint`, `actors convert` and `actors preview`: the pure core on a file.

A file is a request body or its list of messages. What is valid JSON can be converted, however broken the
conversation in it is; what cannot be read at all ends with exit code 2.
"""

import argparse
import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors.cli import bodies
from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.cli.shape import Numbers, shape
from actors.core.check import check
from actors.core.dialect import Dialect
from actors.core.history import History
from actors.core.lane import Rendered
from actors.core.profiles import dialect
from actors.errors import TranscriptError
from actors.pure import encode, from_wire, render

MAX_BYTES = 256 * 1024 * 1024
Body = dict[str, Any]  # Any: parsed JSON of a file


def main(options: argparse.Namespace) -> Exit:
    """Run the command the options name."""
    return {"lint": _lint, "convert": _convert, "preview": _preview}[options.command](options)


def _lint(options: argparse.Namespace) -> Exit:
    rules = dialect(options.to)
    text, value = _read(options.file)
    if options.source is None:
        lines = [str(fault) for fault in check(_whole(text, value, rules), rules)]
    else:
        history, rendered = _rendered(value, options.source, rules)
        body = _encoded(rendered, history, value, bodies.MODEL)
        lines = [*_repairs(history, rendered), *(str(fault) for fault in check(body, rules))]
    for line in lines:
        print(safe(line))
    verdict = f"{len(lines)} found" if lines else "nothing is wrong"
    complain(f"{options.file} for {rules.name}: {verdict}")
    return Exit.FAILED if lines else Exit.OK


def _convert(options: argparse.Namespace) -> Exit:
    rules = dialect(options.to)
    _, value = _read(options.file)
    history, rendered = _rendered(value, options.source, rules)
    named = value.get("model") if isinstance(value, dict) else None
    body = _encoded(
        rendered, history, value, options.model or (named if isinstance(named, str) else bodies.MODEL)
    )
    for line in (*_repairs(history, rendered), *_losses(rendered, value)):
        complain(line)
    sys.stdout.write(body.decode() + "\n")
    return Exit.OK


def _preview(options: argparse.Namespace) -> Exit:
    """Say what another provider would be sent of a transcript, and what it would not be shown."""
    rules = dialect(options.to)
    _, value = _read(options.file)
    history, rendered = _rendered(value, options.source, rules)
    body = _encoded(rendered, history, value, bodies.MODEL)
    numbers = Numbers()
    numbers.learn(rendered.report)
    words, repairs, losses = (
        shape(body, numbers),
        [*_repairs(history, rendered)],
        [*_losses(rendered, value)],
    )
    if options.json:
        told = {
            "dialect": rules.name,
            "size": len(body),
            "shape": words,
            "repairs": repairs,
            "losses": losses,
        }
        print(json.dumps(told | {"body": json.loads(body)}))
        return Exit.OK
    for line in (f"{rules.name}: {len(body):,} bytes", " ".join(words), *repairs, *losses):
        print(safe(line))
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
        text = _utf8(text)
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


_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def _utf8(text: bytes) -> bytes:
    """Return a text without its byte order mark, and in UTF-8 whatever the mark says it is in."""
    for mark, encoding in _MARKS:
        if text.startswith(mark):
            return text.removeprefix(mark).decode(encoding).encode()
    return text


def _file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _whole(text: bytes, value: Body | list[Any], rules: Dialect) -> bytes:  # Any: parsed JSON
    return text if isinstance(value, dict) else bodies.whole(text, rules)


def _rendered(value: object, source: str, rules: Dialect) -> tuple[History, Rendered]:
    history, ledger = from_wire(value, source)
    return history, render(history, ledger, rules)


def _encoded(rendered: Rendered, history: History, value: object, model: str) -> bytes:
    body: Body = value if isinstance(value, dict) else {}
    return encode(
        rendered,
        model=model,
        system=history.system,
        tools=[*bodies.tools(body)],
        max_tokens=bodies.limit(body),
        stream=body.get("stream") is True,
    )


def _repairs(history: History, rendered: Rendered) -> Iterator[str]:
    """Give one line for each thing that was wrong with the transcript, and what became of it."""
    yield from history.report.notes
    report = rendered.report
    for call_id, dedupe in report.dedupe:
        yield f"deduplicated: a result of {call_id} ({dedupe})"
    for call_id, reason in report.synthetic:
        yield f"synthesized: a result for {call_id} ({reason})"


def _losses(rendered: Rendered, value: object) -> Iterator[str]:
    """Give one line for each thing the other dialect is not shown."""
    for kind, count in rendered.report.losses:
        yield f"dropped: {count} {kind}"
    if isinstance(value, dict) and (left := bodies.left_out(value)):
        yield f"left out: {', '.join(left)}"
