"""Check a request's settings against the known facts about its model (`actors.strict.rules.models`).

Each wire format has its own fields and error messages, but the facts are the same. For an unknown model, every setting
that the host supports is accepted.
"""

from collections.abc import Mapping
from dataclasses import replace

from actors.strict.rules.base import (
    DOC,
    RECALLED,
    AnthropicProfile,
    CompatibleProfile,
    Json,
    ServerRule,
    is_object,
    rules_by_id,
)
from actors.strict.rules.models import ServedModel, served_model

RULES = rules_by_id(
    ServerRule(
        "OAC-20",
        "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function "
        "tools, use /v1/responses or set reasoning_effort to 'none'.",
    ),
    ServerRule(
        "OAC-21",
        "This model is only supported in v1/responses and not in v1/chat/completions.",
        status=404,
    ),
    ServerRule(
        "OAC-22",
        "Unsupported parameter: '{path}' is not supported with this model.",
        code="unsupported_parameter",
    ),
    ServerRule(
        "OAC-23",
        "Unsupported value: '{path}' does not support '{value}' with this model. Supported values are: {values}.",
        code="unsupported_value",
    ),
    ServerRule(
        "OAC-24",
        "Unsupported value: '{path}' does not support {value} with this model. Only the default (1) value is "
        "supported.",
        code="unsupported_value",
    ),
    ServerRule("GEM-S30", "Thinking level is not supported for this model.", type="INVALID_ARGUMENT"),
    ServerRule(
        "GEM-S31",
        "Thinking level {value} is not supported for this model.",
        RECALLED,
        type="INVALID_ARGUMENT",
    ),
    ServerRule(
        "GEM-S32",
        "Thinking budget is not supported for this model. Use thinking level instead.",
        RECALLED,
        type="INVALID_ARGUMENT",
    ),
    ServerRule(
        "GEM-S33",
        "Budget 0 is invalid. This model only works in thinking mode.",
        type="INVALID_ARGUMENT",
    ),
    ServerRule("KIM-14", "invalid thinking: {model} does not accept the thinking parameter", RECALLED),
    ServerRule("KIM-15", "invalid reasoning_effort: only {values} are allowed for this model", RECALLED),
    ServerRule("GLM-04", "API 调用参数有误: {path}", DOC, code="1210"),
    ServerRule("MMX-04", "invalid params, {path} (2013)", RECALLED, type="bad_request_error"),
)

_SAMPLING = ("temperature", "top_p")


def check_chat(request: Mapping[str, Json]) -> None:
    """Check the settings of a request to OpenAI's Chat Completions API.

    Raises:
        RuleBroken: The model does not accept a setting, or is not available on Chat Completions.
    """
    model = str(request.get("model"))
    if (row := served_model(model)) is None or row.maker != "openai":
        return
    effort, has_tools = request.get("reasoning_effort"), _has_functions(request)
    if row.tools == "never" and "-" in model and _is_responses_only(row):
        raise RULES["OAC-21"].refuse("model")
    if has_tools and _refuses_tools(row, effort):
        raise RULES["OAC-20"].refuse("reasoning_effort", model=model)
    _check_effort(row, effort, "reasoning_effort")
    _check_openai(row, request, effort)


def _is_responses_only(row: ServedModel) -> bool:
    """Return True if Chat Completions does not serve this model."""
    return any("codex" in name or "-pro" in name for name in row.names) and "gpt-6" not in row.names


def _has_functions(request: Mapping[str, Json]) -> bool:
    return bool(request.get("tools") or request.get("functions"))


def _refuses_tools(row: ServedModel, effort: Json) -> bool:
    """Return True if Chat Completions refuses function tools for this model at this effort level."""
    match row.tools:
        case "no_effort":
            return effort not in (None, "none")
        case "effort_none":
            return bool(effort != "none")
        case "never":
            return True
        case _:
            return False


def check_responses(request: Mapping[str, Json]) -> None:
    """Check the settings of a request to OpenAI's Responses API.

    Raises:
        RuleBroken: The model does not accept a setting.
    """
    if (row := served_model(str(request.get("model")))) is None or row.maker != "openai":
        return
    reasoning = request.get("reasoning")
    effort = reasoning.get("effort") if is_object(reasoning) else None
    _check_effort(row, effort, "reasoning.effort")
    _check_openai(row, request, effort)


def _check_effort(row: ServedModel, effort: Json, path: str) -> None:
    if effort is None or row.efforts is None or effort in row.efforts:
        return
    if not row.efforts:
        raise RULES["OAC-22"].refuse(path, path=path)
    values = ", ".join(f"'{level}'" for level in row.efforts)
    raise RULES["OAC-23"].refuse(path, path=path, value=effort, values=values)


def _check_openai(row: ServedModel, request: Mapping[str, Json], effort: Json) -> None:
    """Check the sampling, stop and cache settings, which exist in both of OpenAI's APIs."""
    thinks = (effort or row.effort) != "none"
    excluded = row.sampling == "never" or (row.sampling == "without_thinking" and thinks)
    for key in _SAMPLING:
        value = request.get(key)
        if excluded and value not in (None, 1):
            raise RULES["OAC-24"].refuse(key, path=key, value=value)
    if not row.stops and request.get("stop") is not None:
        raise RULES["OAC-22"].refuse("stop", path="stop")
    if row.cache != "options" and request.get("prompt_cache_options") is not None:
        raise RULES["OAC-22"].refuse("prompt_cache_options", path="prompt_cache_options")
    if not row.cache and request.get("prompt_cache_retention") == "24h":
        raise RULES["OAC-22"].refuse("prompt_cache_retention", path="prompt_cache_retention")


def restrict_to_model(profile: AnthropicProfile, model: str) -> AnthropicProfile:
    """Return `profile` with the known facts about an Anthropic model; unchanged if the model is unknown."""
    row = served_model(model)
    if row is None or row.maker != "anthropic":
        return profile
    return replace(
        profile,
        thinking=profile.thinking & frozenset(row.thinking or ()),
        thinks_by_default=row.thinks_by_default,
        sampling=profile.sampling and row.sampling != "never",
        forced_tool_choice=profile.forced_tool_choice and row.forced != "never",
        is_known=True,
        efforts=profile.efforts & frozenset(row.efforts or ()),
        schemas=row.schema_output,
        prefill=profile.prefill or row.prefill,
        one_sampling=profile.one_sampling and not row.sampling_pair,
        mid_system=profile.mid_system and row.mid_system,
        cache_minimum=row.cache_minimum
        if row.cache_minimum > profile.cache_minimum
        else profile.cache_minimum,
    )


def with_thinking_default(profile: CompatibleProfile, model: str, maker: str) -> CompatibleProfile:
    """Return `profile` with the facts about a model: whether it thinks by default, and whether it can stop thinking.

    `profile` is unchanged if `maker` did not make the model, because the facts apply only on the maker's own host.
    """
    row = served_model(model)
    if row is None or row.maker != maker:
        return profile
    if row.thinks_by_default and "disabled" not in (row.thinking or ()):
        return replace(profile, thinking="always")
    return replace(profile, thinking="on" if row.thinks_by_default else "off")


def check_gemini(model: str, thinking: Mapping[str, Json]) -> None:
    """Check the `thinkingConfig` of a request to Gemini.

    Raises:
        RuleBroken: The model does not accept the thinking level or budget.
    """
    row = served_model(model)
    if row is None or row.maker != "google":
        return
    level, budget, path = thinking.get("thinkingLevel"), thinking.get("thinkingBudget"), "thinking_config"
    if level is not None and str(level).upper() == "THINKING_LEVEL_UNSPECIFIED":
        level = None
    if level is not None and not row.levels:
        raise RULES["GEM-S30"].refuse(path)
    if level is not None and str(level).lower() not in (row.efforts or ()):
        raise RULES["GEM-S31"].refuse(path, value=level)
    accepted = row.thinking or ()
    if budget is not None and "enabled" not in accepted:
        raise RULES["GEM-S32"].refuse(path)
    if budget == 0 and "disabled" not in accepted:
        raise RULES["GEM-S33"].refuse(path)


def check_kimi(request: Mapping[str, Json]) -> None:
    """Check the thinking settings of a request to Kimi's own host.

    Raises:
        RuleBroken: The model does not accept a setting.
    """
    model = str(request.get("model"))
    row = served_model(model)
    if row is None or row.maker != "kimi":
        return
    effort = request.get("reasoning_effort")
    if request.get("thinking") is not None and row.efforts:
        raise RULES["KIM-14"].refuse("thinking", model=model)
    if effort is not None and effort not in (row.efforts or ()):
        values = ", ".join(row.efforts or ("none",))
        raise RULES["KIM-15"].refuse("reasoning_effort", values=values)


def check_glm(request: Mapping[str, Json]) -> None:
    """Check the thinking settings of a request to GLM's own host.

    Raises:
        RuleBroken: The model does not accept a setting.
    """
    _check_thinking_settings(request, "glm", RULES["GLM-04"])


def check_minimax(request: Mapping[str, Json]) -> None:
    """Check the thinking settings of a request to MiniMax's own host.

    Raises:
        RuleBroken: The model does not accept a setting.
    """
    _check_thinking_settings(request, "minimax", RULES["MMX-04"])


def _check_thinking_settings(request: Mapping[str, Json], model_maker: str, rule: ServerRule) -> None:
    row = served_model(str(request.get("model")))
    if row is None or row.maker != model_maker:
        return
    config, effort = request.get("thinking"), request.get("reasoning_effort")
    kind = config.get("type") if is_object(config) else None
    if kind is not None and kind not in (row.thinking or ()):
        raise rule.refuse("thinking.type", path="thinking.type")
    if effort is not None and effort not in (row.efforts or ()):
        raise rule.refuse("reasoning_effort", path="reasoning_effort")
