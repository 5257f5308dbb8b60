"""Convert a request for thinking to a form that the model accepts.

In:  the requested settings, and a dialect that is narrowed to the model.
Out: settings whose `thinking`, `thinking_tokens` and `effort` can be encoded unchanged, and the losses.

    requested    sent
    off          disabled, between_tools, effort none, the lowest effort (a loss), or nothing
    adaptive     adaptive, a budget, the model's own effort, or nothing (a loss if the model cannot think)
    manual       a budget, adaptive (the budget is a loss), an effort, or nothing
    an effort    that level, the nearest level of the model (a loss), or nothing (a loss)
"""

from collections.abc import Sequence

from msgspec.structs import replace

from actors.adapters.request import Settings
from actors.core.dialects.dialect import Dialect
from actors.core.models.facts import EFFORTS, ModelFacts

_BETWEEN_TOOLS = ("low", "medium", "high")  # efforts that can be combined with `between_tools`


def fit_thinking(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    """Return settings that request thinking in a form that the model accepts. Add the lost settings to `losses`."""
    if dialect.reasoning.switch == "none":
        return _drop_thinking(settings, losses)
    if settings.display is not None and settings.thinking == "default" and _thinks_by_default(dialect):
        settings = replace(settings, thinking="adaptive")  # `display` requires an explicit mode
    settings = _fit_effort(settings, dialect, losses)
    match settings.thinking:
        case "off":
            return _fit_disabled_thinking(settings, dialect, losses)
        case "adaptive" | "manual":
            return _fit_enabled_thinking(settings, dialect, losses)
        case _:
            return settings


def _thinks_by_default(dialect: Dialect) -> bool:
    """Return True if a Claude model thinks by default, in the adaptive mode."""
    return (
        dialect.reasoning.switch == "anthropic"
        and dialect.model.thinks_by_default
        and "adaptive" in dialect.model.thinking
    )


def can_set_display(settings: Settings, dialect: Dialect) -> bool:
    """Return True if a request can set how thinking is displayed. `settings` must come from `fit_thinking`."""
    return dialect.reasoning.switch != "anthropic" or settings.thinking in ("adaptive", "manual")


def can_switch_off(dialect: Dialect) -> bool:
    """Return True if a request can prevent the model from thinking, as far as is known."""
    facts = dialect.model
    if _has_only_efforts(dialect) or dialect.reasoning.switch == "reasoning":
        return facts.efforts is None or "none" in facts.efforts or "disabled" in facts.thinking
    if dialect.reasoning.switch in ("gemini", "none"):
        return False  # these hosts have no switch for thinking, so their models always think
    return "disabled" in facts.thinking


def will_think(settings: Settings, dialect: Dialect) -> bool:
    """Return True if the model will think. `settings` must come from `fit_thinking`."""
    match settings.thinking:
        case "off":
            return not can_switch_off(dialect)
        case "adaptive" | "manual":
            return True
        case _:
            pass
    by_effort = _has_only_efforts(dialect) and settings.effort is not None
    return settings.effort != "none" if by_effort else dialect.model.thinks_by_default


def _has_only_efforts(dialect: Dialect) -> bool:
    """Return True if the effort is the host's only setting for thinking."""
    return dialect.reasoning.switch == "effort" or dialect.family == "responses"


def _drop_thinking(settings: Settings, losses: dict[str, None]) -> Settings:
    """Return settings without thinking, for a host that has no thinking settings. Add the lost settings to `losses`."""
    defaults = {"thinking": "default", "thinking_tokens": None, "effort": None}
    losses |= {name: None for name, default in defaults.items() if getattr(settings, name) != default}
    return replace(settings, **defaults)


def _fit_effort(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    """Return settings whose effort is None or a level of the model. A changed effort is reported as a loss."""
    effort, efforts = settings.effort, dialect.model.efforts
    if effort is None or _is_gateway(dialect):
        return settings
    has_no_levels = efforts is None and dialect.reasoning.switch in ("type", "gemini_budget")
    if efforts == () or has_no_levels:
        losses["effort"] = None
        return replace(settings, effort=None)
    if efforts is None or effort in efforts:
        return settings
    losses["effort"] = None
    return replace(settings, effort=_nearest_effort(effort, efforts))


def _is_gateway(dialect: Dialect) -> bool:
    """Return True if the host is a gateway that translates efforts and budgets for its upstream's model."""
    return dialect.family == "openai_chat" and dialect.reasoning.switch == "reasoning"


def _nearest_effort(effort: str, efforts: Sequence[str]) -> str | None:
    """Return the level in `efforts` nearest to `effort`, or None if `effort` is unknown. If two levels are equally
    near, return the lower one.
    """
    if effort not in EFFORTS:
        return None
    at = EFFORTS.index(effort)
    return min(efforts, key=lambda each: (abs(EFFORTS.index(each) - at), EFFORTS.index(each)))


def _fit_disabled_thinking(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    facts = dialect.model
    if can_switch_off(dialect):
        return settings
    if "between_tools" in facts.thinking:
        if settings.effort is not None and settings.effort not in _BETWEEN_TOOLS:
            losses["effort"] = None
            return replace(settings, effort=_nearest_effort(settings.effort, _BETWEEN_TOOLS))
        return settings
    if not _can_think(facts):
        return replace(settings, thinking="default")
    losses["thinking"] = None
    lowest = facts.efforts[0] if facts.efforts else None
    if facts.efforts is None and dialect.reasoning.switch == "gemini":
        lowest = "low"
    return replace(settings, thinking="default", effort=lowest)


def _can_think(facts: ModelFacts) -> bool:
    return facts.thinks_by_default or bool(facts.thinking) or bool(facts.efforts)


def _fit_enabled_thinking(settings: Settings, dialect: Dialect, losses: dict[str, None]) -> Settings:
    facts, switch = dialect.model, dialect.reasoning.switch
    tokens = {} if settings.thinking_tokens is None else {"thinking_tokens": None}
    if not _can_think(facts):
        losses |= {"thinking": None} | tokens
        return replace(settings, thinking="default", thinking_tokens=None)
    if _has_only_efforts(dialect):
        losses |= tokens
        return _fit_by_effort(settings, facts, losses)
    if switch == "type":
        losses |= tokens
        asks = {"adaptive", "enabled"} & set(facts.thinking)
        return replace(settings, thinking="adaptive" if asks else "default", thinking_tokens=None)
    if settings.thinking == "manual" and "enabled" not in facts.thinking:  # the model has no budgets (ANT-45)
        losses |= tokens
        return replace(settings, thinking="adaptive", thinking_tokens=None)
    # ANT-46: a model without an adaptive mode supports only budgets.
    if switch == "anthropic" and settings.thinking == "adaptive" and "adaptive" not in facts.thinking:
        if settings.budgeted:
            return replace(settings, thinking="manual")
        losses["thinking"] = None
        return replace(settings, thinking="default")
    # The API rejects a level together with a budget, so the budget wins.
    if switch == "gemini" and tokens and settings.effort is not None:
        losses["effort"] = None
        return replace(settings, effort=None)
    return settings


def _fit_by_effort(settings: Settings, facts: ModelFacts, losses: dict[str, None]) -> Settings:
    """Return settings for a host that has effort levels but no thinking switch.

    If the model does not think by default, an effort is set. If the model's levels are unknown, no effort can be
    chosen, so thinking is reported as a loss.
    """
    effort = settings.effort
    if effort is None and facts.efforts is None and not facts.thinks_by_default:
        losses["thinking"] = None
    if effort in (None, "none") and facts.efforts and not facts.thinks_by_default:
        levels = [each for each in facts.efforts if each != "none"]
        effort = "medium" if "medium" in levels else levels[0]
    return replace(settings, thinking="adaptive", thinking_tokens=None, effort=effort)


_MANUAL_TOKENS = 1024
"""Smallest manual budget; also the number of tokens that are reserved for the answer after thinking."""


def _thinking_budget(settings: Settings) -> int:
    return max(settings.thinking_tokens or _MANUAL_TOKENS, _MANUAL_TOKENS)


def claude_thinking(settings: Settings, dialect: Dialect) -> dict[str, str | int | None]:
    """Return the field `thinking` for a request to Claude. `settings` must come from `fit_thinking`."""
    match settings.thinking:
        case "manual":
            return {
                "type": "enabled",
                "budget_tokens": _thinking_budget(settings),
                "display": settings.display,
            }
        case "adaptive":
            return {"type": "adaptive", "display": settings.display}
        case "off":
            return {"type": "disabled" if can_switch_off(dialect) else "between_tools"}
        case _:
            return {"type": None}


def answer_token_limit(settings: Settings, default: int) -> int:
    """Return the token limit of an answer. It must exceed a manual thinking budget, because the limit includes the
    budget.
    """
    most = settings.max_tokens or default
    if settings.thinking != "manual":
        return most
    return max(most, _thinking_budget(settings) + (_MANUAL_TOKENS if settings.max_tokens else default))
