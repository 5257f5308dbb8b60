"""Encode error bodies as the Chat Completions vendors do, for broken rules and for other failures."""

from collections.abc import Callable, Mapping

from actors.strict.rules.base import Json, ServerRefusal, dump
from actors.strict.wire import OPENAI_FAILURES

Failures = Mapping[int, tuple[str, str | None, str]]


def error_body(vendor: str, refusal: ServerRefusal) -> Json:
    """Return the JSON of a vendor's error body. Vendors without their own format use OpenAI's."""
    return _BODIES.get(vendor, _openai_body)(refusal)


def _openai_body(refusal: ServerRefusal) -> Json:
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
    return {"error": error}


def _mistral_body(refusal: ServerRefusal) -> Json:
    if refusal.status == 422:
        place = refusal.detail or {"loc": ["body"], "input": None}
        return {
            "detail": [
                {"type": refusal.type, "loc": place["loc"], "msg": refusal.message, "input": place["input"]}
            ]
        }
    error = {"object": "error", "message": refusal.message, "type": refusal.type, "param": None}
    return {**error, "code": refusal.code, "raw_status_code": refusal.status}


def _kimi_body(refusal: ServerRefusal) -> Json:
    return {"error": {"message": refusal.message, "type": refusal.type}}


def _deepseek_body(refusal: ServerRefusal) -> Json:
    error = {"message": refusal.message, "type": refusal.type, "param": None, "code": refusal.code}
    return {"error": error}


def _anthropic_body(refusal: ServerRefusal) -> Json:
    return {"type": "error", "error": {"type": refusal.type, "message": refusal.message}}


def _openrouter_body(refusal: ServerRefusal) -> Json:
    detail = refusal.detail
    if detail is None:
        return {"error": {"code": refusal.status, "message": refusal.message}, "user_id": "user_1"}
    raw = dump(error_body(detail["vendor"], refusal)).decode()
    metadata = {"provider_name": detail.get("provider_name", ""), "raw": raw}
    error = {"code": refusal.status, "message": "Provider returned error", "metadata": metadata}
    return {"error": error, "user_id": "user_1"}


def _xai_body(refusal: ServerRefusal) -> Json:
    return {"code": refusal.code, "error": refusal.message}


def _glm_body(refusal: ServerRefusal) -> Json:
    return {"error": {"code": refusal.code, "message": refusal.message}}


def _groq_body(refusal: ServerRefusal) -> Json:
    said: Json = _openai_body(refusal)
    said["error"].update(refusal.detail or {})
    return said


def _vllm_body(refusal: ServerRefusal) -> Json:
    error = {"object": "error", "message": refusal.message, "type": refusal.type, "param": None}
    return {**error, "code": refusal.status}


def _llama_cpp_body(refusal: ServerRefusal) -> Json:
    error: dict[str, Json] = {"code": refusal.status, "message": refusal.message, "type": refusal.type}
    return {"error": error | dict(refusal.detail or dict[str, Json]())}


_BODIES: Mapping[str, Callable[[ServerRefusal], Json]] = {
    "anthropic": _anthropic_body,
    "mistral": _mistral_body,
    "kimi": _kimi_body,
    "deepseek": _deepseek_body,
    "openrouter": _openrouter_body,
    "xai": _xai_body,
    "glm": _glm_body,
    "groq": _groq_body,
    "vllm": _vllm_body,
    "open_models": _vllm_body,
    "llama_cpp": _llama_cpp_body,
}

FAILURES: Mapping[str, Failures] = {
    "mistral": {
        **OPENAI_FAILURES,
        401: ("invalid_request_error", None, "Unauthorized"),
        429: ("rate_limited", "1300", "Requests rate limit exceeded"),
        503: ("service_unavailable", "3505", "Service unavailable."),
    },
    "kimi": {
        **OPENAI_FAILURES,
        401: ("invalid_authentication_error", None, "Invalid Authentication"),
        429: (
            "rate_limit_reached_error",
            None,
            "Your account request reached max request: 3, please try again later",
        ),
        503: ("engine_overloaded_error", None, "The engine is currently overloaded, please try again later"),
    },
    "deepseek": {
        **OPENAI_FAILURES,
        401: ("authentication_error", "invalid_request_error", "Authentication Fails (no such user)"),
        402: ("unknown_error", "invalid_request_error", "Insufficient Balance"),
    },
    "openrouter": {
        **OPENAI_FAILURES,
        401: ("", None, "No auth credentials found"),
        402: ("", None, "Insufficient credits"),
        429: ("", None, "Provider returned error"),
        502: ("", None, "Provider returned error"),
    },
    "xai": {
        **OPENAI_FAILURES,
        401: ("", "unauthenticated:bad-credentials", "Incorrect API key provided."),
        429: ("", "Some resource has been exhausted", "Too many requests"),
    },
    "glm": {
        **OPENAI_FAILURES,
        401: ("", "1000", "身份验证失败"),
        429: ("", "1302", "您当前使用该API的并发数过高"),
    },
}
"""Type, code and message of each error, by vendor and status. Vendors that are not listed use OpenAI's errors."""
