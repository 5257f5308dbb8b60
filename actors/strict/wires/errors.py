"""Encode the error bodies of the Chat Completions vendors, including failures that no rule caused."""

from collections.abc import Callable, Mapping

from actors.strict.rules.base import Json, ServerRefusal, dump
from actors.strict.wire import OPENAI_FAILURES

Failures = Mapping[int, tuple[str, str | None, str]]


def body(vendor: str, refusal: ServerRefusal) -> Json:
    """Return the error body of a vendor, as JSON. The default is OpenAI's form."""
    return _BODIES.get(vendor, _openai)(refusal)


def _openai(refusal: ServerRefusal) -> Json:
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
    return {"error": error}


def _mistral(refusal: ServerRefusal) -> Json:
    if refusal.status == 422:
        place = refusal.detail or {"loc": ["body"], "input": None}
        return {
            "detail": [
                {"type": refusal.type, "loc": place["loc"], "msg": refusal.message, "input": place["input"]}
            ]
        }
    error = {"object": "error", "message": refusal.message, "type": refusal.type, "param": None}
    return {**error, "code": refusal.code, "raw_status_code": refusal.status}


def _kimi(refusal: ServerRefusal) -> Json:
    return {"error": {"message": refusal.message, "type": refusal.type}}


def _deepseek(refusal: ServerRefusal) -> Json:
    error = {"message": refusal.message, "type": refusal.type, "param": None, "code": refusal.code}
    return {"error": error}


def _anthropic(refusal: ServerRefusal) -> Json:
    return {"type": "error", "error": {"type": refusal.type, "message": refusal.message}}


def _openrouter(refusal: ServerRefusal) -> Json:
    detail = refusal.detail
    if detail is None:
        return {"error": {"code": refusal.status, "message": refusal.message}, "user_id": "user_1"}
    raw = dump(body(detail["vendor"], refusal)).decode()
    metadata = {"provider_name": detail.get("provider_name", ""), "raw": raw}
    error = {"code": refusal.status, "message": "Provider returned error", "metadata": metadata}
    return {"error": error, "user_id": "user_1"}


def _xai(refusal: ServerRefusal) -> Json:
    return {"code": refusal.code, "error": refusal.message}


def _glm(refusal: ServerRefusal) -> Json:
    return {"error": {"code": refusal.code, "message": refusal.message}}


def _groq(refusal: ServerRefusal) -> Json:
    said: Json = _openai(refusal)
    said["error"].update(refusal.detail or {})
    return said


def _vllm(refusal: ServerRefusal) -> Json:
    error = {"object": "error", "message": refusal.message, "type": refusal.type, "param": None}
    return {**error, "code": refusal.status}


def _llama_cpp(refusal: ServerRefusal) -> Json:
    error: dict[str, Json] = {"code": refusal.status, "message": refusal.message, "type": refusal.type}
    return {"error": error | dict(refusal.detail or dict[str, Json]())}


_BODIES: Mapping[str, Callable[[ServerRefusal], Json]] = {
    "anthropic": _anthropic,
    "mistral": _mistral,
    "kimi": _kimi,
    "deepseek": _deepseek,
    "openrouter": _openrouter,
    "xai": _xai,
    "glm": _glm,
    "groq": _groq,
    "vllm": _vllm,
    "open_models": _vllm,
    "llama_cpp": _llama_cpp,
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
"""By vendor and status: type, code and message. Other vendors use OpenAI's errors."""
