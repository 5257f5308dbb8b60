"""Suggest how to fix a failed ask, for error messages and for the command line.

In:  the result of an ask, and the configuration.
Out: the suggestion in one line, or an empty string. Other functions of this module return a message or an error that
     contains the suggestion.

The suggestion depends on the failure:

- a rejected key: the variable that contains the key
- an unknown model: the nearest known name
- a rejected parameter: its name, and whether another value may work
- a wrong base URL: the URL of the request, and the probable correction
- a rejected conversation: the turn to rewind to
"""

import re
from typing import TYPE_CHECKING

from actors.adapters.failure import ACTIONS
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.identity import Binding
from actors.core.values.progress import Attempt, Cause
from actors.errors import AskFailed, ConfigError, nearest

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from actors.config import Config

_NOT_FOUND = (404, 405, 501)
_REDIRECTS = range(300, 400)
_UNREADABLE = ("without its end marker", "not JSON", "no message")
_BAD_KEY = re.compile(r"api[ _-]?key|authenticat|unauthori[sz]ed|invalid token", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model_not_found|\bmodels?\b.{0,200}\b(?:not (?:exist|found|available)|n't exist|unknown|invalid|no longer)|"
    r"\b(?:unknown|invalid|no such) model",
    re.IGNORECASE,
)
_LIMIT_KINDS = ("limit", "time")
"""Kinds of causes that are limits, not failures: the ask has used up its rounds, tokens or time."""
_TEMPORARY = frozenset(("overloaded", "circuit_open", "time"))
"""Kinds of failures within this process that disappear with time, so that the ask can be retried later."""
_UNUSABLE = frozenset(("transcript", "media", "overflow"))
"""Kinds of failures that the conversation causes. If an ask ends with one, all automatic fixes have failed."""
_NAMES = {"thinking": "thinking (reasoning)", "cache_life": "cache"}
"""The names that settings have in the configuration, for settings with a different internal name."""
_NO_SETTINGS = frozenset(("stream_options", "include"))
"""Request parameters that no setting controls."""


def ask_failed_error(result: AskResult, config: "Config") -> AskFailed:
    """Return the error to raise for a failed ask, with a suggested fix."""
    cause = _cause(result)
    return AskFailed(
        no_answer_message(result, config),
        result,
        kind=cause.kind if cause else "",
        status=cause.status if cause else None,
        can_retry=cause is not None and _can_retry(cause.kind),
        advice=advice(result, config),
    )


def no_answer_message(result: AskResult, config: "Config") -> str:
    """Return a one-line message that explains why an ask has no answer, and suggests a fix."""
    cause, found = _cause(result), advice(result, config)
    if cause is not None and cause.kind in _LIMIT_KINDS:
        failed = _pending_retry(result)
        before = f"; its request had failed: {failed.error}{found and f'; {found}'}" if failed else ""
        return f"stopped: {result.error}{before}"
    return f"{result.binding} gave no answer: {result.error}{found and f'; {found}'}"


def advice(result: AskResult, config: "Config") -> str:
    """Return a one-line suggestion to fix a failed ask, or an empty string. The line contains no credentials."""
    attempt = _pending_retry(result) or (result.attempts[-1] if result.attempts else None)
    if attempt is None or attempt.cause is None or attempt.cause.kind in _LIMIT_KINDS:
        return ""
    known = (_key_advice, _model_advice, _parameter_advice, _address_advice)
    found = next((found for find in known if (found := find(attempt, attempt.cause, config))), "")
    return found or _conversation_advice(result, attempt.cause)


def _cause(result: AskResult) -> Cause | None:
    return result.attempts[-1].cause if result.attempts else None


def _pending_retry(result: AskResult) -> Attempt | None:
    """If the ask timed out while a failed request was waiting to be retried, return that request; otherwise None."""
    cause = _cause(result)
    if cause is None or cause.kind != "time" or result.finish_reason is not None or len(result.attempts) < 2:
        return None
    *_, failed, last = result.attempts
    return failed if failed.status == "retried" and last.wait else None


def _can_retry(kind: str) -> bool:
    return kind in _TEMPORARY or any(kind == each and act == "retry" for each, act in ACTIONS.items())


def _key_advice(attempt: Attempt, cause: Cause, config: "Config") -> str:
    """If the provider rejected the key, suggest checking it, and state where it is configured."""
    if cause.status == 403:
        return f"check that {config.credential_source(attempt.binding)} may use {attempt.binding.model}"
    if cause.status != 401 and not (cause.kind == "config" and _BAD_KEY.search(attempt.error)):
        return ""
    return f"check that {attempt.binding.backend} accepts {config.credential_source(attempt.binding)}"


def _model_advice(attempt: Attempt, cause: Cause, config: "Config") -> str:
    """Suggest the nearest known model name if the provider does not know the model."""
    model, why = attempt.binding.model, attempt.error
    is_named = bool(model) and re.search(rf"(?<![\w-]){re.escape(model)}(?![\w-])", why) is not None
    says_so = _NO_MODEL.search(why) is not None
    if not (
        (cause.status == 404 and (is_named or says_so))
        or (cause.status in (400, 422) and is_named and says_so)
    ):
        return ""
    if near := _near_model(attempt.binding, config):
        return f"did you mean {near!r}?"
    return (
        f"check that {attempt.binding.backend} has a model named {model!r}, and that this account may use it"
    )


def _near_model(binding: Binding, config: "Config") -> str | None:
    """Return the known model with the nearest name, or None if the model is known or no name is close."""
    from actors.core.dialects.narrow import base_name
    from actors.core.models.table import ROWS

    makers = _makers(binding, config)
    known = {name: name for row in ROWS if row.maker in makers for name in row.sample}
    prefix, slash, name = binding.model.rpartition("/")
    near = nearest(base_name(name), known)
    return None if near is None or near == base_name(name) else f"{prefix}{slash}{near}"


def _makers(binding: Binding, config: "Config") -> tuple[str, ...]:
    """Return the companies whose models are offered by hosts with the binding's dialect."""
    try:
        return config.dialect(binding.dialect).makers
    except ConfigError:  # the dialect was removed from the configuration file
        return ()


def _parameter_advice(attempt: Attempt, cause: Cause, config: "Config") -> str:
    """Suggest omitting or changing a parameter that the provider rejected, if the parameter has a setting."""
    if cause.status not in (400, 422) or cause.kind not in ("parameter", "transcript", "config"):
        return ""
    from actors.adapters.refusals import refused_parameter

    found = refused_parameter(attempt.error, "")
    names = [name for name in found.settings if name not in _NO_SETTINGS] if found else []
    # thinking blocks are a more likely cause of a rejected transcript than the thinking setting
    if found is None or not names or (names == ["thinking"] and cause.kind == "transcript"):
        return ""
    said = " and ".join(_NAMES.get(name, name) for name in names)
    return f"set {said} to another value, or omit it" if found.is_value else f"omit {said}"


def _address_advice(attempt: Attempt, cause: Cause, config: "Config") -> str:
    """If the address may be wrong, show the request's URL and suggest a different base URL."""
    try:
        url = request_url(attempt.binding, config)
    except ConfigError:  # the dialect was removed from the configuration file
        return ""
    fix = _address_fix(attempt, cause, url)
    return fix if not fix or url in attempt.error else f"tried POST {url}; {fix}"


def _conversation_advice(result: AskResult, cause: Cause) -> str:
    """If the provider rejects the conversation, suggest a turn to rewind to. Without a rewind, later requests would be
    rejected as well.
    """
    before = result.turn_before
    if cause.kind not in _UNUSABLE or before is None:
        return ""
    return f"session.rewind(to={before}) removes the messages since turn {before}"


def request_url(binding: Binding, config: "Config") -> str:
    """Return the complete URL to which a binding's requests are sent."""
    from actors.adapters.adapter import adapter
    from actors.adapters.request import Settings
    from actors.core.data.persistent import Segments

    request = adapter(config.dialect(binding.dialect)).request(Segments(), Settings(model=binding.model))
    return binding.endpoint.rstrip("/") + request.path


def _address_fix(attempt: Attempt, cause: Cause, url: str) -> str:
    """Return a probable correction of the base URL, or an empty string if the failure does not concern the address."""
    binding, why, status = attempt.binding, attempt.error, cause.status
    if status in _NOT_FOUND or (status is None and any(sign in why for sign in _UNREADABLE)):
        return _path_fix(binding, url)
    if status in _REDIRECTS:
        return "the server redirects, and redirects are not followed: use the address to which it redirects"
    if status is not None:
        return ""
    host = _split_url(binding.endpoint).netloc
    if "WRONG_VERSION_NUMBER" in why or "record layer failure" in why:
        return f"the server speaks plain HTTP: try http://{host}"
    if "name" in why.lower() and ("not known" in why or "resolution" in why or "resolve" in why):
        return f"the host was not found: check the spelling of {host}"
    return f"check that the server is running at {host}" if "connect" in why.lower() else ""


def _path_fix(binding: Binding, url: str) -> str:
    """Suggest a different path for the base URL."""
    base, path = binding.endpoint.rstrip("/"), _split_url(url).path
    request = path.removeprefix(_split_url(base).path)
    if base.endswith(request):
        return f"the base URL must not end in {request}: try {base.removesuffix(request)}"
    if request.startswith("/v1/") and base.endswith("/v1"):
        return f"the base URL must not end in /v1: try {base.removesuffix('/v1')}"
    if not request.startswith("/v1") and not _split_url(base).path:
        return f"most servers of this kind need a base URL that ends in /v1: try {base}/v1"
    return f"check that this is the base URL of a server with the dialect {binding.dialect}"


def _split_url(url: str) -> "SplitResult":
    from urllib.parse import urlsplit  # imported lazily, because it is only needed after a failure

    return urlsplit(url)
