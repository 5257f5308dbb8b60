"""Classify the error of a provider as one `Failure`, whatever its shape.

In:  status, headers and body of a rejected request, or an error found inside an answer.
Out: the kind of failure, and the reaction to it.

Servers and gateways shape their errors differently: nested under `error`, flat, a bare string, a list, or the
upstream's error as JSON text inside the gateway's. `_report` finds the innermost one.
`actors.adapters.error_patterns` has the wordings. Gateways, proxies and captive portals answer with a page or a
redirect instead.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from html import unescape
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.document import load
from actors.adapters.error_patterns import (
    AFTER_OVERFLOW,
    BEFORE_OVERFLOW,
    CUT_OF_FINISH,
    KIND_OF_FINISH,
    KIND_OF_STATUS,
    PARAMETER_RULES,
    SAMPLING_RULES,
    SCHEMA_RULES,
    STATUS_OF_TYPE,
    WHOLE,
    Row,
    finish_word,
)
from actors.adapters.failure import ACTIONS, Failure, Kind, RefusedParameter
from actors.adapters.refused_parameters import refused_parameter, refused_schema
from actors.adapters.retry_after import retry_after, until_reset
from actors.adapters.wire import Fields, fields, items, json_text, string
from actors.core.data.jsonio import is_array, sanitise
from actors.core.dialects.dialect import Dialect
from actors.core.rulebook import rule_id
from actors.core.settings.table import SAMPLING
from actors.core.values.stream import Cut

MAX_TITLE = 120
"""Characters kept of a page's title."""
_PAGE = re.compile(r"\s*(?:<!doctype|<html|<\?xml|<head|<body|<center|<h1)", re.IGNORECASE)
_TITLES = tuple(
    re.compile(rf"<{tag}\b[^>]{{0,200}}>([^<]{{1,1000}})<", re.IGNORECASE)
    for tag in ("title", "h1", "h2", "message", "p")
)
_REDIRECTS = (301, 302, 303, 307, 308)


def page_title(text: str, status: int | None) -> str | None:
    """Return a one-line summary of an HTML page, with its status; None if the text is not a page."""
    if not _PAGE.match(text):
        return None
    answer = f"HTTP {status}" if status else "The answer"
    titles = (found[1] for pattern in _TITLES if (found := pattern.search(text)))
    lines = (" ".join(unescape(title).split()) for title in titles)
    title = next((line for line in lines if line), "")
    title = title.removeprefix(str(status)).strip(" :-") or title
    return f"{answer}: {title[:MAX_TITLE]}" if title else f"{answer}: a page without a title"


def redirect(status: int, headers: Mapping[str, str]) -> str | None:
    """Return a message with the target of a redirect, without its query, which may hold a key; None if it is no
    redirect."""
    target = headers.get("location", "").strip().partition("?")[0].partition("#")[0]
    if status not in _REDIRECTS or not target:
        return None
    return f"HTTP {status}: it redirects to {target}, and redirects are not followed; set base_url to where the API is"


MAX_MESSAGE = 500
"""Characters kept of a provider's message."""
_READ = 64 * 1024  # bytes of an error body that are examined
_HEADER = 64  # most characters of a header that a body repeats
_GATEWAYS = 3  # most nested gateways that are unwrapped

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


class _Report(Struct, frozen=True):
    """An error in the provider's words. `text` is the complete error, for details without a known field.

    `place` is the part of the request that the error names. `headers` are those of the provider behind a gateway that
    repeats them in its body (OpenRouter), names in lower case.
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

    Header names may be in any case; the body may be partial, and JSON, HTML or empty. The dialect provides the
    patterns for a context overflow; `now` is seconds since the epoch, to interpret a `Retry-After` date.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    report = _report(_value(body))
    # The kind of an AWS error: `ThrottlingException` of `aws#ThrottlingException:http://…`.
    named = lowered.get("x-amzn-errortype", "").partition(":")[0].rpartition("#")[2].strip()
    message = redirect(status, lowered) or report.message
    report = replace(report, message=message, type=report.type or named, status=status)
    lowered = {**report.headers, **lowered}
    failure = _failure(report, dialect, lowered, now, bare=not body.strip())
    should_retry = lowered.get("x-should-retry", "").strip().lower()
    if should_retry == "false" and failure.action == "retry":
        return replace(failure, action="next_backend")
    # Never for our own bugs, oversized requests or unpaid bills.
    if should_retry == "true" and failure.kind == "config":
        return replace(failure, action="retry")
    return failure


def in_answer(payload: Fields, dialect: Dialect) -> Failure:
    """Classify an error inside a 200 response. It means the same as it would with its own status."""
    report = _report(payload)
    status = report.status or STATUS_OF_TYPE.get(report.type) or STATUS_OF_TYPE.get(report.code)
    return _failure(replace(report, status=status), dialect, {}, None, bare=False)


def finish_failure(reason: str) -> Failure | None:
    """Return the failure that a finish reason stands for; None for an ordinary reason."""
    kind = KIND_OF_FINISH.get(finish_word(reason))
    if kind is None:
        return None
    return Failure(kind, ACTIONS[kind], f"the provider stopped with {reason!r}", code=reason)


@lru_cache(maxsize=256)
def cut_of_finish(reason: str) -> Cut | None:
    """Return how an answer with this finish reason was cut; None if it is complete.

    An empty reason counts as complete; an unrecognised reason is `unknown`.
    """
    word = finish_word(reason)
    if not word or word in WHOLE:
        return None
    if (kind := KIND_OF_FINISH.get(word)) is not None:
        return _CUT_OF_KIND.get(kind, "fault")
    return CUT_OF_FINISH.get(word, "unknown")


_CUT_OF_KIND: Mapping[Kind, Cut] = {"overflow": "length", "refusal": "filter"}


def _failure(
    report: _Report, dialect: Dialect, headers: Mapping[str, str], now: float | None, *, bare: bool
) -> Failure:
    status = report.status
    message = page_title(report.message, status) or report.message
    words = f"{report.type} {report.code} {message}"
    words += f" (at {report.place})" if report.place else ""
    row = next(row for row in _rows(dialect, status, bare=bare) if row.pattern.search(words))
    parameter = _parameter(row, report)
    if parameter is not None and row.rule in SAMPLING_RULES and SAMPLING.isdisjoint(parameter.settings):
        row = replace(row, rule=None)  # its words are also used for other parameters, such as `max_tokens`
    kind: Kind = row.kind if parameter is None else "parameter"
    return Failure(
        kind,
        ACTIONS[kind],
        _one_line(message)
        or (f"HTTP {status} without a message" if status else "an error without a message"),
        status=status,
        code=_one_line(report.code or report.type) or None,
        retry_after=_wait(row.kind, headers, report.text, now),
        rule=row.rule and rule_id(dialect, row.rule, row.case),
        place=_one_line(report.place) or None,
        parameter=parameter,
    )


def _wait(kind: Kind, headers: Mapping[str, str], text: str, now: float | None) -> float | None:
    """Return the seconds that the provider asks its client to wait; None if it does not say."""
    told = retry_after(headers, text, now)
    return until_reset(headers, now) if told is None and kind in ("rate_limit", "quota") else told


def _parameter(row: Row, report: _Report) -> RefusedParameter | None:
    """Return the optional parameter that was rejected, unless the wording belongs to another rule."""
    if row.kind not in ("transcript", "config") or report.status not in (400, 422):
        return None
    if (schema := refused_schema(report.message)) and row.rule in SCHEMA_RULES:
        return replace(schema, otherwise=row.kind)
    if row.rule is not None and row.rule not in PARAMETER_RULES:
        return None
    found = refused_parameter(report.message, report.place, f"{report.type} {report.code}")
    return found and replace(found, otherwise=row.kind)


@lru_cache(maxsize=256)
def _rows(dialect: Dialect, status: int | None, *, bare: bool) -> tuple[Row, ...]:
    """Return the wordings that a status allows, in the order in which they are searched."""
    patterns, rule = dialect.request.overflow_patterns, dialect.request.overflow_rule
    overflows = [Row("overflow", re.compile(pattern, re.IGNORECASE), rule=rule) for pattern in patterns]
    without_words = [Row("overflow", _ANY, (400,))] if bare else []
    rows = (*BEFORE_OVERFLOW, *overflows, *without_words, *AFTER_OVERFLOW)
    return *(row for row in rows if row.may_have(status)), Row(_by_status(status), _ANY)


def _by_status(status: int | None) -> Kind:
    if status is None or status >= 500 or status < 300:
        return "transient"
    return KIND_OF_STATUS.get(status, "config")


def _value(body: bytes) -> object:
    text = body[:_READ].decode("utf-8", "replace")
    try:
        return load(text)
    except ValueError:
        return text


def _report(value: object, depth: int = _GATEWAYS) -> _Report:
    """Return the innermost error of a body."""
    if is_array(value) and value:
        value = value[0]
    if isinstance(value, str):
        return _Report(message=value, text=value)
    body = fields(value)
    inner = body.get("error")
    error = {**body, "message": inner} if isinstance(inner, str) else fields(inner) or body
    outer = _plain(error)
    upstream = fields(error.get("metadata")).get("raw")  # JSON text or an object
    if not upstream or depth == 0:
        return outer
    if isinstance(upstream, str):
        with suppress(ValueError):  # some gateways put plain words there
            upstream = load(upstream)
    told = _report(upstream, depth - 1)
    return _Report(
        message=told.message or outer.message,
        type=told.type or outer.type,
        code=told.code or outer.code,
        status=told.status or outer.status,
        text=f"{told.text}\n{outer.text}",
        place=told.place or outer.place,
        headers=outer.headers,
    )


def _plain(error: Fields) -> _Report:
    code, details = error.get("code"), fields(error.get("details"))
    repeated = fields(fields(error.get("metadata")).get("headers"))
    message = string(error.get("message")) or string(error.get("detail"))
    if not message and (detail := items(error.get("detail") or fields(error.get("message")).get("detail"))):
        message = json_text(detail)  # a list of rejected fields
    return _Report(
        message=message,
        type=string(error.get("type")) or string(error.get("status")),
        code=string(details.get("error_code")) or string(code) or _quotas(error.get("details")),
        status=code if isinstance(code, int) and 300 <= code < 600 else None,
        text=json_text(error),
        place=string(error.get("param")) or _location(error),
        headers={name.lower(): str(value)[:_HEADER] for name, value in repeated.items()},
    )


def _location(error: Fields) -> str:
    """Return the first location in a list of rejected fields: `body.temperature` (FastAPI, pydantic)."""
    for item in items(error.get("detail") or fields(error.get("message")).get("detail")):
        return ".".join(map(str, items(fields(item).get("loc"))))
    return ""


def _quotas(details: object) -> str:
    """Return the names of the exhausted quotas. The name decides whether waiting helps (GEM-15)."""
    violations = [item for detail in map(fields, items(details)) for item in items(detail.get("violations"))]
    return " ".join(filter(None, (string(fields(item).get("quotaId")) for item in violations)))


def _one_line(text: str) -> str:
    """Return a provider's message on one line, shortened, with credentials removed."""
    text = sanitise(text[: 4 * MAX_MESSAGE])
    for secret, substitute in _SECRETS:
        text = secret.sub(substitute, text)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
