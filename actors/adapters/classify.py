"""Classify a provider's error as a `Failure`, regardless of the error's format.

In:  status, headers and body of a rejected request, or an error found inside an answer.
Out: the kind of failure, and how to react to it.

Servers and gateways format their errors differently: nested under `error`, flat, as a bare string, as a list, or as a
gateway's error that contains the upstream's error as JSON text. `_innermost_error` finds the innermost error, and
`actors.adapters.error_patterns` lists the known wordings. Instead of an error, gateways, proxies and captive portals
may send an HTML page or a redirect.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from html import unescape
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.document import load_json
from actors.adapters.error_patterns import (
    AFTER_OVERFLOW,
    BEFORE_OVERFLOW,
    KIND_OF_STATUS,
    PARAMETER_RULES,
    SAMPLING_RULES,
    SCHEMA_RULES,
    STATUS_OF_TYPE,
    ErrorPattern,
)
from actors.adapters.failure import ACTIONS, Failure, Kind, RefusedParameter
from actors.adapters.refusals import refused_parameter, refused_schema
from actors.adapters.retry_after import retry_after, seconds_until_reset
from actors.adapters.wire import Fields, as_array, as_object, as_string, json_text
from actors.core.data.jsonio import is_array, sanitise
from actors.core.dialects.dialect import Dialect
from actors.core.rulebook import rule_id
from actors.core.settings.table import SAMPLING

MAX_TITLE = 120
"""Maximum length of a page's title, in characters; the rest is cut."""
_PAGE = re.compile(r"\s*(?:<!doctype|<html|<\?xml|<head|<body|<center|<h1)", re.IGNORECASE)
_TITLES = tuple(
    re.compile(rf"<{tag}\b[^>]{{0,200}}>([^<]{{1,1000}})<", re.IGNORECASE)
    for tag in ("title", "h1", "h2", "message", "p")
)
_REDIRECTS = (301, 302, 303, 307, 308)


def page_summary(text: str, status: int | None) -> str | None:
    """Return the status and the title of an HTML page in one line, or None if the text is not a page."""
    if not _PAGE.match(text):
        return None
    answer = f"HTTP {status}" if status else "The answer"
    titles = (found[1] for pattern in _TITLES if (found := pattern.search(text)))
    lines = (" ".join(unescape(title).split()) for title in titles)
    title = next((line for line in lines if line), "")
    title = title.removeprefix(str(status)).strip(" :-") or title
    return f"{answer}: {title[:MAX_TITLE]}" if title else f"{answer}: a page without a title"


def redirect_message(status: int, headers: Mapping[str, str]) -> str | None:
    """Return a message that gives the target of a redirect, or None if the response is not a redirect.

    The query of the target is omitted, since it may contain a key.
    """
    target = headers.get("location", "").strip().partition("?")[0].partition("#")[0]
    if status not in _REDIRECTS or not target:
        return None
    return f"HTTP {status} redirects to {target}, and redirects are not followed; set base_url to the API's address"


MAX_MESSAGE = 500
"""Maximum length of a provider's message, in characters; the rest is cut."""
_MAX_READ = 64 * 1024  # bytes of an error body that are examined
MAX_SEARCHED = 3000
"""Maximum number of characters of a message, a type or a code that are searched for known wordings. The search for some
wordings takes quadratic time, and a server may repeat a complete request in its message.
"""
_SEARCHED_END = 1000  # how many of these characters are taken from the end of the text
_MAX_HEADER = 64  # maximum characters of a header that a gateway repeats in its body
_MAX_GATEWAYS = 3  # maximum number of nested gateways whose errors are unwrapped

_ANY = re.compile("")
_SECRETS = (
    (re.compile(r"(bearer|basic)\s+[\w.~+/=*-]{6,}", re.IGNORECASE), r"\1 [removed]"),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|AIza|AKIA|eyJ)[-_]?[\w*.-]{6,}"), "[removed]"),
    (
        re.compile(
            r"((?:api[-_ ]?key|token|secret|password)(?: provided)?[\"']?\s*[:=]\s*)[\"']?[^\s\"',;]{4,}",
            re.IGNORECASE,
        ),
        r"\1[removed]",
    ),
    (re.compile(r"(\w+://)[^/\s@]+@"), r"\1"),
)


class _ErrorReport(Struct, frozen=True):
    """An error as the provider reported it.

    Args:
        text: The complete error as text, which is searched for details that have no known field.
        place: The part of the request to which the error refers.
        headers: The provider's headers, which some gateways (OpenRouter) repeat in the body. Names are in lower case.
    """

    message: str = ""
    type: str = ""
    code: str = ""
    status: int | None = None
    text: str = ""
    place: str = ""
    headers: Mapping[str, str] = MappingProxyType({})


def classify(
    status: int, headers: Mapping[str, str], body: bytes, dialect: Dialect, *, now: float | None = None
) -> Failure:
    """Classify the response to a rejected request. Never raises.

    Header names may be in upper or lower case. The body may be partial, and may be JSON, HTML or empty. The dialect
    provides the error messages that report a context overflow. `now` is in seconds since the epoch and is needed to
    interpret a `Retry-After` date.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    report = _innermost_error(_parse_body(body))
    # AWS sends the error type in this header: `aws#ThrottlingException:http://…` means `ThrottlingException`.
    named = lowered.get("x-amzn-errortype", "").partition(":")[0].rpartition("#")[2].strip()
    message = redirect_message(status, lowered) or report.message
    report = replace(report, message=message, type=report.type or named, status=status)
    lowered = {**report.headers, **lowered}  # a gateway's own headers override the provider's
    failure = _build_failure(report, dialect, lowered, now, is_empty=not body.strip())
    should_retry = lowered.get("x-should-retry", "").strip().lower()
    if should_retry == "false" and failure.action == "retry":
        return replace(failure, action="next_backend")
    # The header must not cause retries after our own bugs, oversized requests or unpaid accounts.
    if should_retry == "true" and failure.kind == "config":
        return replace(failure, action="retry")
    return failure


def classify_in_answer(payload: Fields, dialect: Dialect) -> Failure:
    """Classify an error inside a response with status 200, as if the response had the error's own status."""
    report = _innermost_error(payload)
    status = report.status or STATUS_OF_TYPE.get(report.type) or STATUS_OF_TYPE.get(report.code)
    return _build_failure(replace(report, status=status), dialect, {}, None, is_empty=False)


def _build_failure(
    report: _ErrorReport, dialect: Dialect, headers: Mapping[str, str], now: float | None, *, is_empty: bool
) -> Failure:
    status = report.status
    message = _excerpt(page_summary(report.message[:_MAX_READ], status) or report.message)
    report = replace(
        report,
        message=message,
        type=_excerpt(report.type),
        code=_excerpt(report.code),
        place=_excerpt(report.place),
        text=report.text[:_MAX_READ],
    )
    words = f"{report.type} {report.code} {message}"
    words += f" (at {report.place})" if report.place else ""
    row = next(
        row for row in _applicable_rows(dialect, status, is_empty=is_empty) if row.pattern.search(words)
    )
    parameter = _rejected_parameter(row, report)
    if parameter is not None and row.rule in SAMPLING_RULES and SAMPLING.isdisjoint(parameter.settings):
        # Providers send this rule's wording for other parameters as well, such as `max_tokens`.
        row = replace(row, rule=None)
    kind: Kind = row.kind if parameter is None else "parameter"
    return Failure(
        kind,
        ACTIONS[kind],
        _one_line(message)
        or (f"HTTP {status} without a message" if status else "an error without a message"),
        status=status,
        code=_one_line(report.code or report.type) or None,
        retry_after=_requested_wait(row.kind, headers, report.text, now),
        rule=row.rule and rule_id(dialect, row.rule, row.case),
        place=_one_line(report.place) or None,
        parameter=parameter,
    )


def _excerpt(text: str) -> str:
    """Return the start and the end of a text that is too long to be searched, and any other text unchanged."""
    if len(text) <= MAX_SEARCHED:
        return text
    return f"{text[: MAX_SEARCHED - _SEARCHED_END]} … {text[-_SEARCHED_END:]}"


def _requested_wait(kind: Kind, headers: Mapping[str, str], text: str, now: float | None) -> float | None:
    """Return how many seconds the provider asks its clients to wait, or None if it does not say."""
    told = retry_after(headers, text, now)
    return seconds_until_reset(headers, now) if told is None and kind in ("rate_limit", "quota") else told


def _rejected_parameter(row: ErrorPattern, report: _ErrorReport) -> RefusedParameter | None:
    """Return the optional parameter that the provider rejected, or None if the error concerns something else."""
    if row.kind not in ("transcript", "config") or report.status not in (400, 422):
        return None
    if (schema := refused_schema(report.message)) and row.rule in SCHEMA_RULES:
        return replace(schema, otherwise=row.kind)
    if row.rule is not None and row.rule not in PARAMETER_RULES:
        return None
    found = refused_parameter(report.message, report.place, f"{report.type} {report.code}")
    return found and replace(found, otherwise=row.kind)


@lru_cache(maxsize=256)
def _applicable_rows(dialect: Dialect, status: int | None, *, is_empty: bool) -> tuple[ErrorPattern, ...]:
    """Return the known error wordings that may accompany a status, in the order in which they are compared.

    `is_empty` means that the body is empty. In this case, a 400 counts as a context overflow.
    """
    patterns, rule = dialect.request.overflow_patterns, dialect.request.overflow_rule
    overflows = [
        ErrorPattern("overflow", re.compile(pattern, re.IGNORECASE), rule=rule) for pattern in patterns
    ]
    without_words = [ErrorPattern("overflow", _ANY, (400,))] if is_empty else []
    rows = (*BEFORE_OVERFLOW, *overflows, *without_words, *AFTER_OVERFLOW)
    return *(row for row in rows if row.applies_to(status)), ErrorPattern(_kind_of_status(status), _ANY)


def _kind_of_status(status: int | None) -> Kind:
    if status is None or status >= 500 or status < 300:
        return "transient"
    return KIND_OF_STATUS.get(status, "config")


def _parse_body(body: bytes) -> object:
    text = body[:_MAX_READ].decode("utf-8", "replace")
    try:
        return load_json(text)
    except ValueError:
        return text


def _innermost_error(value: object, depth: int = _MAX_GATEWAYS) -> _ErrorReport:
    """Return the innermost error of a body. Fields that it lacks are taken from the errors around it."""
    if is_array(value) and value:
        value = value[0]
    if isinstance(value, str):
        return _ErrorReport(message=value, text=value)
    body = as_object(value)
    inner = body.get("error")
    error = {**body, "message": inner} if isinstance(inner, str) else as_object(inner) or body
    outer = _error_fields(error)
    upstream = as_object(error.get("metadata")).get(
        "raw"
    )  # the upstream's error, as JSON text or as an object
    if not upstream or depth == 0:
        return outer
    if isinstance(upstream, str):
        with suppress(ValueError):  # some gateways send plain text here instead of JSON
            upstream = load_json(upstream)
    told = _innermost_error(upstream, depth - 1)
    return _ErrorReport(
        message=told.message or outer.message,
        type=told.type or outer.type,
        code=told.code or outer.code,
        status=told.status or outer.status,
        text=f"{told.text}\n{outer.text}",
        place=told.place or outer.place,
        headers=outer.headers,
    )


def _error_fields(error: Fields) -> _ErrorReport:
    code, details = error.get("code"), as_object(error.get("details"))
    repeated = as_object(as_object(error.get("metadata")).get("headers"))
    message = as_string(error.get("message")) or as_string(error.get("detail"))
    if not message and (
        detail := as_array(error.get("detail") or as_object(error.get("message")).get("detail"))
    ):
        message = json_text(detail)  # `detail` is a list of rejected fields
    return _ErrorReport(
        message=message,
        type=as_string(error.get("type")) or as_string(error.get("status")),
        code=as_string(details.get("error_code"))
        or as_string(code)
        or _exhausted_quotas(error.get("details")),
        status=code if isinstance(code, int) and 300 <= code < 600 else None,
        text=json_text(error),
        place=as_string(error.get("param")) or _rejected_field(error),
        headers={name.lower(): str(value)[:_MAX_HEADER] for name, value in repeated.items()},
    )


def _rejected_field(error: Fields) -> str:
    """Return the location of the first rejected field, such as `body.temperature` (FastAPI, pydantic), or ""."""
    for item in as_array(error.get("detail") or as_object(error.get("message")).get("detail")):
        return ".".join(map(str, as_array(as_object(item).get("loc"))))
    return ""


def _exhausted_quotas(details: object) -> str:
    """Return the names of the exhausted quotas. Whether waiting helps depends on the name (GEM-15)."""
    violations = [
        item for detail in map(as_object, as_array(details)) for item in as_array(detail.get("violations"))
    ]
    return " ".join(filter(None, (as_string(as_object(item).get("quotaId")) for item in violations)))


def _one_line(text: str) -> str:
    """Return a provider's message on one line, shortened, with credentials removed."""
    text = sanitise(text[: 4 * MAX_MESSAGE])
    for secret, substitute in _SECRETS:
        text = secret.sub(substitute, text)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
