"""Reduce a refused request to a minimal reproduction without its content.

In:  a request body that a provider or the judge refused, and the dialect.
Out: a body of the same structure. Texts, arguments and data are replaced by their lengths, ids by numbers.

If the judge finds the same rule broken in the redacted body, everything that is not needed to break the rule is
removed. If it finds nothing, because only the provider knows the rule, the structure stays complete.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from actors.core.check import check
from actors.core.data.jsonio import JsonRefused, JsonValue, dump, parse
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.diagnostics import Refusal

TRIES = 1000
"""Maximum number of candidate bodies to judge."""
_MOST = 1 << 28
_DEPTH = 96
_SHORT = 3  # characters up to which a text reveals nothing

_KEPT = frozenset(("role", "type", "name", "model", "status", "mode", "effort", "media_type", "format"))
"""Fields whose values belong to the protocol or name a tool."""
_IDS = frozenset(
    ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "item_id", "previous_response_id")
)
_CONTENT = frozenset(("args", "arguments", "input", "response", "json", "metadata"))
_MESSAGES = "input"
"""At the top level of an OpenAI Responses request, the message list; in nested objects, the arguments of a call."""


class RedactedRequest(Struct, frozen=True):
    """A refused request without its content.

    Args:
        session, backend, dialect: The session and the target of the request.
        by: `judge` before sending, or `provider`.
        rule, fault_class: Those of the first fault; None and `unclassified` if the message is unknown.
        why: The message of the judge or the provider; quotations of the request are redacted.
        request: The body, as JSON.
        is_minimal: True if the judge finds the rule broken in the body and no part can be removed.
    """

    session: str
    backend: str
    dialect: str
    by: str
    rule: str | None
    fault_class: str
    why: str
    request: bytes
    is_minimal: bool


def reproduce(refusal: Refusal, dialect: Dialect) -> RedactedRequest:
    """Return the minimal redacted form of a refused request. Never raises."""
    fault = next(iter(refusal.report.faults), None)
    why = refusal.why
    try:
        whole = parse(refusal.body, max_bytes=_MOST, max_depth=_DEPTH)
    except JsonRefused:
        request, is_minimal = dump(f"[{len(refusal.body)} bytes that are not JSON]"), False
    else:
        redactor = _Redactor()
        hidden = redactor.redact_request(whole)
        why = redactor.redact_text(why)
        broken = _rules(whole, dialect) & _rules(hidden, dialect)
        is_minimal = bool(broken)
        if broken:
            rule = fault.rule if fault is not None and fault.rule in broken else min(broken)
            hidden = _minimise(hidden, lambda body: rule in _rules(body, dialect))
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


def _rules(body: JsonValue, dialect: Dialect) -> set[str]:
    return {fault.rule for fault in check(dump(body), dialect) if fault.rule is not None}


class _Redactor(Struct):
    """Redacts content, and remembers it to redact quotations of it in error messages."""

    ids: dict[str, str] = {}
    texts: set[str] = field(default_factory=set[str])

    def redact_request(self, body: JsonValue) -> JsonValue:
        """Return a complete request without content."""
        if not isinstance(body, dict) or not isinstance(messages := body.get(_MESSAGES), list):
            return self.redact(body)
        hidden = self.redact({**body, _MESSAGES: None})
        assert isinstance(hidden, dict)
        return {**hidden, _MESSAGES: self.redact(messages)}

    def redact(self, value: JsonValue, key: str = "", *, inside: bool = False) -> JsonValue:
        """Return a value without content. `inside` says that all of it is content, keys included."""
        match value:
            case dict():
                within = inside or key in _CONTENT
                return {
                    f"key_{number}" if within else name: self.redact(item, name, inside=within)
                    for number, (name, item) in enumerate(value.items())
                }
            case list():
                return [self.redact(item, key, inside=inside) for item in value]
            case str():
                return self._text(value, key, inside=inside)
            case bool() | None:
                return value
            case _:
                return 0 if inside else value

    def redact_text(self, words: str) -> str:
        """Return a text with all redacted content replaced."""
        for text in sorted(self.texts, key=len, reverse=True):
            words = words.replace(text, f"[{len(text)} characters]")
        for known, number in self.ids.items():
            words = words.replace(known, number)
        return words

    def _text(self, text: str, key: str, *, inside: bool) -> str:
        if not inside and key in _KEPT and len(text) <= 128:
            return text
        if not inside and key in _IDS and text:
            return self.ids.setdefault(text, f"id_{len(self.ids) + 1}")
        if len(text) > _SHORT:
            self.texts.add(text)
        if key == "arguments" and not inside and _is_object(text):
            return "{}"
        return f"[{len(text)} characters]" if text else ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse(text.encode(errors="replace"), max_bytes=_MOST, max_depth=_DEPTH), dict)
    except JsonRefused:
        return False


def _minimise(body: JsonValue, is_wrong: Callable[[JsonValue], bool]) -> JsonValue:
    """Remove parts of a body as long as `is_wrong` stays true."""
    left = TRIES
    found = True
    while found:
        found = False
        for smaller in _smaller(body):
            left -= 1
            if left < 0:
                return body
            if is_wrong(smaller):
                body, found = smaller, True
                break
    return body


def _smaller(value: JsonValue) -> Iterator[JsonValue]:
    """Yield the value without one of its parts, large parts first."""
    if isinstance(value, list):
        size = len(value)
        while size > 0:
            for start in range(0, len(value), size):
                yield value[:start] + value[start + size :]
            size //= 2
        for place, item in enumerate(value):
            for smaller in _smaller(item):
                yield [*value[:place], smaller, *value[place + 1 :]]
    elif isinstance(value, Mapping):
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name, item in value.items():
            for smaller in _smaller(item):
                yield {**value, name: smaller}
