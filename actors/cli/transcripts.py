"""`actors lint`, `actors convert` and `actors preview`: the pure core on a file.

A file is a request body or its list of messages. What is valid JSON can be converted, however broken the
conversation in it is; what cannot be read at all ends with exit code 2.
"""

import argparse
import codecs
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from actors.adapters.importing import declared, recognise
from actors.adapters.request import Settings
from actors.cli import bodies
from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.cli.shape import Numbers, shape
from actors.core.check import check
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import dialect
from actors.core.transcript.diagnostics import Filler
from actors.core.values.intake import Remarks
from actors.errors import TranscriptError
from actors.transcripts import from_wire, render, requested

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
        if lines and (other := _other(value, rules)):
            complain(f"{other}; give --from to judge what would be sent of it")
    else:
        made = _Made(value, options.source, rules)
        lines = [*made.repairs(), *(str(fault) for fault in check(made.request.body, rules))]
    for line in lines:
        print(safe(line))
    verdict = f"{len(lines)} found" if lines else "nothing is wrong"
    complain(f"{options.file} for {rules.name}: {verdict}")
    return Exit.FAILED if lines else Exit.OK


def _convert(options: argparse.Namespace) -> Exit:
    _, value = _read(options.file)
    made = _Made(value, options.source, dialect(options.to), options.model)
    for line in (*made.repairs(), *made.additions(), *made.losses()):
        complain(line)
    sys.stdout.write(made.request.body.decode() + "\n")
    return Exit.OK


def _preview(options: argparse.Namespace) -> Exit:
    """Say what another provider would be sent of a transcript, and what would be left out."""
    rules = dialect(options.to)
    _, value = _read(options.file)
    made = _Made(value, options.source, rules)
    body = made.request.body
    numbers = Numbers()
    numbers.learn(made.rendered.report)
    words = shape(body, numbers)
    told = {"repairs": made.repairs(), "additions": made.additions(), "losses": made.losses()}
    if options.json:
        about = {"dialect": rules.name, "size": len(body), "shape": words, **told}
        print(json.dumps({**about, "body": json.loads(body)}))
        return Exit.OK
    for line in (f"{rules.name}: {len(body):,} bytes", " ".join(words), *chain(*told.values())):
        print(safe(line))
    return Exit.OK


class _Made:
    """The request that is made of a file, and what was done on the way.

    Args:
        value: What the file holds.
        source: The dialect it is in, None if nobody said.
        rules: The dialect to write.
        model: Name of the model, where one was given.
    """

    def __init__(self, value: object, source: str | None, rules: Dialect, model: str | None = None) -> None:
        self._history, ledger = from_wire(value, source)
        self._said = declared(value)
        self._model = model or self._said.model
        self.rendered = render(self._history, ledger, rules)
        self.request = requested(
            self.rendered,
            Settings(
                model=self._model or bodies.MODEL,
                system=self._history.system,
                tools=self._said.tools,
                max_tokens=self._said.max_tokens,
                cache="off",  # a file is not sent yet
                stream=self._said.stream,
            ),
        )
        self._body = value if isinstance(value, dict) else {}

    def repairs(self) -> list[str]:
        """Return a line for each thing that was wrong with the transcript; of many of a kind, a few and a count."""
        done, report = Remarks(), self.rendered.report
        for call_id, dedupe in (*self._history.report.dedupe, *report.dedupe):
            done.add("deduplicated", f"a result of %s ({dedupe})", call_id)
        for call_id, reason in report.synthetic:
            done.add("synthesized", f"a result for %s ({reason})", call_id)
        return [*self._history.report.notes, *done.lines()]

    def additions(self) -> list[str]:
        """Return a line for each thing that nobody said."""
        added = [f"added: {_ADDED[kind]} ({count:,})" for kind, count in self.rendered.report.fillers]
        assumed = [*self.request.assumed, *([] if self._model else [f"model {bodies.MODEL!r}"])]
        renamed = [f"renamed: tool {own!r} is {made!r}" for made, own in self.request.names.items()]
        for tool, keys in self.request.keys.items():
            renamed += [f"renamed: key {own!r} of tool {tool!r} is {made!r}" for made, own in keys.items()]
        return [*added, *(f"assumed: {what}" for what in assumed), *renamed]

    def losses(self) -> list[str]:
        """Return a line for each thing the other dialect is not shown."""
        lost = [f"dropped: {count} {kind}" for kind, count in self.rendered.report.losses]
        lost += [f"not taken: {name}" for name in self.request.losses]
        read = [item for item in self._history.report.left_out if item[0] not in self._body]
        left = [
            path if count == 1 else f"{path} ({count:,})" for path, count in (*self._said.left_out, *read)
        ]
        return [*lost, *([f"left out: {', '.join(left)}"] if left else [])]


_ADDED: dict[Filler, str] = {
    "first": "a message before all others",
    "last": "a message behind the model's",
    "between": "a message of the model's between two others",
    "thinking": "a placeholder for reasoning in front of a call",
}


def _other(value: object, rules: Dialect) -> str | None:
    """Say which other dialect a file looks like, if it plainly does."""
    try:
        recognise(value, rules)
    except TranscriptError as error:
        return str(error)
    return None


def _read(path: str) -> tuple[bytes, Body | list[Any]]:  # Any: parsed JSON
    """Return a file's bytes and what they say.

    Raises:
        TranscriptError: They are not a JSON object or list.
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
