"""Read a transcript from a file and convert it with the pure core, for `actors lint`, `convert` and `preview`.

A file is a request body or its list of messages. Any JSON of this form can be converted, however damaged the
conversation is. If a file cannot be read, the exit code is 2.
"""

import codecs
import json
import sys
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from actors.adapters.importing import read_declarations
from actors.adapters.request import Request, Settings
from actors.core.dialects.dialect import Dialect
from actors.core.lanes.lane import Rendered
from actors.core.transcript.diagnostics import Filler
from actors.core.values.intake import ReportBuilder
from actors.errors import TranscriptError
from actors.transcripts import from_wire, render, request_for

MAX_BYTES = 256 * 1024 * 1024
MODEL = "model"
"""The model in a request body if neither the file nor an option names a model."""
Value: TypeAlias = dict[str, Any] | list[Any]  # Any: JSON values have many types

_ADDED: dict[Filler, str] = {
    "first": "a message before all others",
    "last": "a message after the model's last one",
    "between": "a model message between two others",
    "thinking": "placeholder reasoning before a call",
}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Conversion:
    """A transcript converted to a request of another dialect, with a report of every change.

    Args:
        value: The parsed content of the file.
        source: The dialect of the file. None detects it.
        rules: The dialect of the request.
        model: The model of the request. None means the model that is named in the file.
    """

    def __init__(self, value: Value, source: str | None, rules: Dialect, model: str | None = None) -> None:
        self._history, ledger = from_wire(value, source)
        self._declared = read_declarations(value)
        self._model = model or self._declared.model
        self.rendered: Rendered = render(self._history, ledger, rules)
        self.request: Request = request_for(
            self.rendered,
            Settings(
                model=self._model or MODEL,
                system=self._history.system,
                tools=self._declared.tools,
                max_tokens=self._declared.max_tokens,
                cache="off",  # cache marks are useless, because the request is not sent
                stream=self._declared.stream,
            ),
        )
        self._body = value if isinstance(value, dict) else {}

    @cached_property
    def repairs(self) -> list[str]:
        """A line for each defect of the transcript. For a frequent kind of defect, a few examples and a count."""
        remarks, report = ReportBuilder(), self.rendered.report
        for call_id, dedupe in (*self._history.report.dedupe, *report.dedupe):
            remarks.add("deduplicated", f"a result of %s ({dedupe})", call_id)
        for call_id, reason in report.synthetic:
            remarks.add("synthesized", f"a result for %s ({reason})", call_id)
        return [*self._history.report.notes, *remarks.lines()]

    @cached_property
    def additions(self) -> list[str]:
        """A line for each part that the conversion added to the request.

        These parts are messages that the dialect requires, assumed settings and changed names.
        """
        added = [f"added: {_ADDED[kind]} ({count:,})" for kind, count in self.rendered.report.fillers]
        assumed = [*self.request.assumed, *([] if self._model else [f"model {MODEL!r}"])]
        renamed = [f"renamed: tool {own!r} is {made!r}" for made, own in self.request.names.items()]
        for tool, keys in self.request.keys.items():
            renamed += [f"renamed: key {own!r} of tool {tool!r} is {made!r}" for made, own in keys.items()]
        return [*added, *(f"assumed: {setting}" for setting in assumed), *renamed]

    @cached_property
    def losses(self) -> list[str]:
        """A line for each kind of content or setting in the file that the request cannot contain."""
        lost = [f"dropped: {count} {kind}" for kind, count in self.rendered.report.losses]
        lost += [f"unsupported: {name}" for name in self.request.losses]
        unread = [item for item in self._history.report.left_out if item[0] not in self._body]
        paths = [
            path if count == 1 else f"{path} ({count:,})"
            for path, count in (*self._declared.left_out, *unread)
        ]
        return [*lost, *([f"left out: {', '.join(paths)}"] if paths else [])]


def read_transcript(path: str) -> tuple[bytes, Value]:
    """Return the UTF-8 text of a file and its parsed value. The path `-` is standard input.

    Raises:
        TranscriptError: The file is not a JSON object or list.
    """
    name = "standard input" if path == "-" else path
    text = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else _read_file(Path(path))
    if len(text) > MAX_BYTES:
        raise TranscriptError(f"Cannot read {name}: larger than {MAX_BYTES} bytes")
    try:
        text = _decode_to_utf8(text)
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TranscriptError(f"Cannot read {name}: not JSON at {place}: {error.msg.lower()}") from None
    except UnicodeDecodeError:
        raise TranscriptError(f"Cannot read {name}: not UTF-8 text") from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number that is too long
        raise TranscriptError(f"Cannot read {name}: {str(error).lower()}") from None
    held: Value = value
    if not isinstance(value, dict | list):
        raise TranscriptError(f"{name} is not a transcript: expected a request body or a list of messages")
    return text, held


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _decode_to_utf8(text: bytes) -> bytes:
    """Return the text in UTF-8. A byte order mark of UTF-8 or UTF-16 is removed and determines the encoding."""
    for mark, encoding in _MARKS:
        if text.startswith(mark):
            return text.removeprefix(mark).decode(encoding).encode()
    return text
