"""Reduce a refused request to a minimal reproduction without its content, for bug reports.

In:  a request body that the provider or our check refused, and the dialect.
Out: a body of the same structure. Texts, arguments and data are replaced by their lengths, ids by numbers.

If the check finds the same broken rule in the redacted body, everything that is not needed to break the rule is
removed. If the check finds no fault, because only the provider knows the rule, the structure stays complete.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from actors.core.check import check
from actors.core.data.jsonio import JsonRefused, JsonValue, dump, parse
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.diagnostics import Refusal

TRIES = 1000
"""Maximum number of candidate bodies to check."""
_MOST = 1 << 28
_DEPTH = 96
_SHORT = 3  # texts of up to this many characters reveal nothing

_KEPT = frozenset(("role", "type", "name", "model", "status", "mode", "effort", "media_type", "format"))
"""Fields whose values are not redacted, because they belong to the protocol or are names of tools."""
_IDS = frozenset(
    ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "item_id", "previous_response_id")
)
_CONTENT = frozenset(("args", "arguments", "input", "response", "json", "metadata"))
_MESSAGES = "input"
"""At the top level of an OpenAI Responses request, `input` is the message list; in nested objects, it contains the
arguments of a call."""


class RedactedRequest(Struct, frozen=True):
    """A refused request without its content.

    Args:
        session, backend, dialect: The session and the target of the request.
        by: `judge` if the check before sending refused the request, or `provider`.
        rule, fault_class: The rule and the class of the first fault; None and `unclassified` if no rule explains the
            message.
        reason: The error message, in which quotations of the request are redacted.
        request: The redacted body, as JSON.
        is_minimal: True if the body breaks a rule of the check and no part can be removed.
    """

    session: str
    backend: str
    dialect: str
    by: str
    rule: str | None
    fault_class: str
    reason: str
    request: bytes
    is_minimal: bool


def reproduce(refusal: Refusal, dialect: Dialect) -> RedactedRequest:
    """Return the minimal redacted form of a refused request. This function never raises."""
    fault = next(iter(refusal.report.faults), None)
    why = refusal.reason
    try:
        whole = parse(refusal.body, max_bytes=_MOST, max_depth=_DEPTH)
    except JsonRefused:
        request, is_minimal = dump(f"[{len(refusal.body)} bytes that are not JSON]"), False
    else:
        redactor = _Redactor()
        hidden = redactor.redact_request(whole)
        why = redactor.redact_text(why)
        broken = _broken_rules(whole, dialect) & _broken_rules(hidden, dialect)
        is_minimal = bool(broken)
        if broken:
            rule = fault.rule if fault is not None and fault.rule in broken else min(broken)
            hidden = _minimise(hidden, lambda body: rule in _broken_rules(body, dialect))
        request = dump(hidden)
    return RedactedRequest(
        refusal.session,
        refusal.binding.backend,
        dialect.name,
        refusal.by,
        fault.rule if fault is not None else None,
        fault.fault_class if fault is not None else "unclassified",
        why,
        request,
        is_minimal,
    )


def _broken_rules(body: JsonValue, dialect: Dialect) -> set[str]:
    return {fault.rule for fault in check(dump(body), dialect) if fault.rule is not None}


class _Redactor(Struct):
    """Redacts a request. Redacted texts are remembered, so that error messages that quote them can be redacted too."""

    ids: dict[str, str] = {}
    texts: set[str] = field(default_factory=set[str])

    def redact_request(self, body: JsonValue) -> JsonValue:
        """Return a complete request body without its content."""
        if not isinstance(body, dict) or not isinstance(messages := body.get(_MESSAGES), list):
            return self.redact(body)
        hidden = self.redact({**body, _MESSAGES: None})
        assert isinstance(hidden, dict)
        return {**hidden, _MESSAGES: self.redact(messages)}

    def redact(self, value: JsonValue, key: str = "", *, is_content: bool = False) -> JsonValue:
        """Return a JSON value without its content. If `is_content` is True, everything is content, keys included."""
        match value:
            case dict():
                within = is_content or key in _CONTENT
                return {
                    f"key_{number}" if within else name: self.redact(item, name, is_content=within)
                    for number, (name, item) in enumerate(value.items())
                }
            case list():
                return [self.redact(item, key, is_content=is_content) for item in value]
            case str():
                return self._redact_string(value, key, is_content=is_content)
            case bool() | None:
                return value
            case _:
                return 0 if is_content else value

    def redact_text(self, message: str) -> str:
        """Return an error message in which all redacted content is replaced."""
        for text in sorted(self.texts, key=len, reverse=True):
            message = message.replace(text, f"[{len(text)} characters]")
        for known, number in self.ids.items():
            message = message.replace(known, number)
        return message

    def _redact_string(self, text: str, key: str, *, is_content: bool) -> str:
        if not is_content and key in _KEPT and len(text) <= 128:
            return text
        if not is_content and key in _IDS and text:
            return self.ids.setdefault(text, f"id_{len(self.ids) + 1}")
        if len(text) > _SHORT:
            self.texts.add(text)
        if key == "arguments" and not is_content and _is_json_object(text):
            return "{}"
        return f"[{len(text)} characters]" if text else ""


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(parse(text.encode(errors="replace"), max_bytes=_MOST, max_depth=_DEPTH), dict)
    except JsonRefused:
        return False


def _minimise(body: JsonValue, is_wrong: Callable[[JsonValue], bool]) -> JsonValue:
    """Remove parts of a body as long as `is_wrong` returns True for the remaining body."""
    left = TRIES
    found = True
    while found:
        found = False
        for smaller in _smaller_values(body):
            left -= 1
            if left < 0:
                return body
            if is_wrong(smaller):
                body, found = smaller, True
                break
    return body


def _smaller_values(value: JsonValue) -> Iterator[JsonValue]:
    """Yield copies of a value, each without one part of it. Copies that lack large parts come first."""
    if isinstance(value, list):
        size = len(value)
        while size > 0:
            for start in range(0, len(value), size):
                yield value[:start] + value[start + size :]
            size //= 2
        for place, item in enumerate(value):
            for smaller in _smaller_values(item):
                yield [*value[:place], smaller, *value[place + 1 :]]
    elif isinstance(value, Mapping):
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name, item in value.items():
            for smaller in _smaller_values(item):
                yield {**value, name: smaller}
