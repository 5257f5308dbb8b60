"""Recognise the optional parameter that a provider rejects, by the wording of its error.

In:  the message of a rejection, and the field in which the provider names a part of the request (`param`, `loc`).
Out: the settings that the parameter encodes, and whether the parameter is unsupported or its value is rejected.

Hosts copy each other's wordings, and each host names parameters as in its own wire format, so one table of names and
one list of wordings serve all hosts. Names are compared without regard to case, underscores and indices:
`reasoning_effort`, `topP` and `generationConfig.thinkingConfig.thinkingLevel` are found by their last keys. A path
inside the messages or the tools is not a parameter, except for the path of a cache mark. Errors about a tool's schema
have their own wordings.
"""

import re
from collections.abc import Iterator, Mapping

from actors.adapters.failure import RefusedParameter
from actors.core.settings.table import SETTINGS

_EXTRA_NAMES: Mapping[tuple[str, ...], str] = {
    ("effort",): "effort reasoningeffort reasoning.effort outputconfig.effort thinkinglevel",
    ("thinking",): "thinking thinkingconfig thinkingbudget budgettokens includethoughts enablethinking"
    " reasoning.enabled reasoning.maxtokens additionalmodelrequestfields",
    ("effort", "thinking"): "reasoning",
    ("effort", "output"): "outputconfig",
    ("max_tokens",): "maxcompletiontokens",
    ("metadata", "user"): "metadata",
    ("seed",): "randomseed",
    ("stop",): "stopsequence",
    ("tool_choice",): "toolchoice toolconfig functioncallingconfig allowedfunctionnames",
    ("output",): "responseformat text text.format outputconfig.format outputconfig.textformat textformat"
    " responseschema responsejsonschema responsemimetype",
    ("cache",): "promptcachekey cachecontrol cachepoint promptcaching",
    ("cache_life",): "promptcacheretention promptcacheoptions cachecontrol.ttl",
    ("stream",): "stream",
    ("stream_options",): "streamoptions includeusage",
    ("include",): "include",
    ("upstream",): "provider",
}
"""Names of parameters by the settings that they encode, in addition to the wire names in the settings table."""


def _table_names() -> Mapping[str, tuple[str, ...]]:
    """Return the settings in the table, by the names of their request fields. `user` is excluded, because errors
    mention it as a role.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, setting in SETTINGS.items():
        paths = [*setting.wire.values(), *(path for each in setting.constants.values() for path in each)]
        found |= {_last_keys(path): (name,) for path in paths if path != "user"}
    return found


def _last_keys(path: str) -> str:
    """Return the last key of a path, or its last two keys if the last key alone is ambiguous."""
    parts = path.replace("_", "").lower().split(".")
    return ".".join(parts[-2 if parts[-1] in ("type", "summary") else -1 :])


PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **_table_names(),
    **{name: settings for settings, names in _EXTRA_NAMES.items() for name in names.split()},
}
"""The settings that each parameter encodes, by the parameter's wire name in lower case without underscores."""

_INSIDE = frozenset(("messages", "contents", "input", "tools", "system", "systeminstruction"))
"""First keys of paths that lead to content and not to a parameter."""
_CACHE = frozenset(("cachecontrol", "cachepoint"))
_PREFIXES = frozenset(
    ("body", "request", "generatecontentrequest", "generationconfig", "inferenceconfig", "toolconfig")
)

_PATHS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<name>tool_choice) forces",
        r"unknown name \W*(?P<name>\w+)\W+at '(?P<at>[\w.\[\]]*)'",  # Google's message
        r"#/?(?P<at>[\w/]*): extraneous key \[(?P<name>\w+)\]",  # Bedrock's message
        r"extraneous key \[(?P<name>\w+)\]",
        r"loc\W+body\W+(?P<name>\w+)",  # pydantic's message, quoted by vLLM
        r"(?:unsupported|unknown|unrecognized|unexpected|invalid) (?:request )?(?:parameter|param|argument|value|field|"
        r"keyword argument)s?(?: supplied)?:? *[\"'`]?(?P<name>[a-z_][\w.\[\]]*)",
        r"^(?P<name>[a-z_][\w.\[\]]*): ",  # Anthropic's message
        r"errors: (?P<name>[a-z_][\w.\[\]]*): ",  # Anthropic's message, forwarded by Bedrock
        r"\b(?:parameter|param|field|argument)s?(?: not supported on this model)?:? [\"'`]?(?P<name>[a-z_][\w.]*)",
        r"\bthe (?P<name>[\w.]+) (?:parameter|param|field|argument|setting)\b",
        r"[\"'`](?P<name>[a-z_][\w.]*)[\"'`]",
        r"\b(?P<name>[a-z]+(?:_[a-z]+)+|(?-i:[a-z]+[A-Z]\w+))\b",
        r"\b(?P<name>temperature|top_p|effort|tool choice|thinking (?:budget|level|config)|prompt caching|"
        r"response (?:format|schema|mime type)|stop sequences?|thinking)\b",
    )
)
"""Patterns that find a parameter's name in a message, the most specific pattern first."""

_VALUE = re.compile(
    r"unsupported[ _]value|invalid[ _]value|supported (?:values|levels|types)|is invalid|one of|\bboth\b|"
    r"\bonly\b.{0,40}\b(?:allowed|supported|works)|only the default|\b(?:must|should) be|may only|input should|"
    r"incompatible|cannot (?:both )?be|greater than|less than|exceed|out of range|maximum|minimum|at most|"
    r"too (?:many|long|large|small)|[<>] ?\d|effort level|does not support [\"'\d]|this tool_choice|thinking\.type\.|"
    r"type \W?(?:tool|any|required|function)|'(?:specified|required)'|when (?:thinking|tool|using)|tools with|"
    r"with (?:thinking|tools|reasoning)|(?:adaptive|manual|extended) thinking is",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:\w+ )?support|n't support|deprecat|not permitted|unknown|unrecognized|unexpected|extraneous|"
    r"extra_forbidden|extra inputs|no longer|not (?:available|accepted|allowed)|cannot find field|does not accept|"
    r"did not allow|removed",
    re.IGNORECASE,
)


_SCHEMAS = (
    (
        "schema_keys",
        r"property keys? (?:should|must) match|invalid property (?:key|name)|"
        r"propert(?:y|ies)\b.{0,60}\bnames?\b.{0,40}(?:invalid|must|should)",
    ),
    (
        "schema_patterns",
        r"failed to parse grammar|failed to initialize samplers|pattern must start with|look-?(?:around|ahead|behind)|"
        r"(?:regex\w*|regular expression|\bpattern)\b.{0,80}(?:unsupported|invalid|not (?:\w+ )?(?:support|valid))|"
        r"(?:unsupported|invalid) (?:regex|regular expression|pattern)|json schema conversion failed",
    ),
)
"""Rewrites of a tool's schema, each with the wordings of errors that it avoids."""


def refused_schema(message: str) -> RefusedParameter | None:
    """Return the rewrite of tool schemas that avoids an error, or None if the error's wording is unknown."""
    for name, pattern in _SCHEMAS:
        if re.search(pattern, message, re.IGNORECASE):
            return RefusedParameter((name,), is_value=False)
    return None


def refused_parameter(message: str, place: str, code: str = "") -> RefusedParameter | None:
    """Return the parameter that an error message mentions, or None if it mentions no known parameter.

    Args:
        message: The provider's message.
        place: The part of the request that the provider names in a separate field, or "" if there is none.
        code: The provider's type and code of the error.
    """
    words = f"{code} {message}"
    is_value = _VALUE.search(words) is not None or _UNSUPPORTED.search(words) is None
    for parts in map(_path_keys, (place, *_named_paths(message))):
        if len(parts) > 1 and parts[0] in _INSIDE:
            return RefusedParameter(("cache",), is_value) if _CACHE.intersection(parts) else None
        if settings := _settings_of_path(parts):
            return RefusedParameter(settings, is_value)
    return None


def _named_paths(message: str) -> Iterator[str]:
    for pattern in _PATHS:
        for match in pattern.finditer(message):
            named = match.groupdict()
            yield f"{named.get('at') or ''}.{named['name']}"


def _path_keys(path: str) -> list[str]:
    """Return the keys of a path such as `body.generation_config.thinkingConfig[0]`, written as in `PARAMETERS`."""
    plain = re.sub(r"[_ -]", "", path.lower())
    parts = [part for part in re.split(r"[./\[\]#]+", plain) if part and not part.isdecimal()]
    while len(parts) > 1 and parts[0] in _PREFIXES:
        del parts[0]
    return parts


def _settings_of_path(keys: list[str]) -> tuple[str, ...]:
    """Return the settings that a path refers to, judged by its last keys or, failing that, by their parents. The result
    is empty if no setting matches.
    """
    for end in range(len(keys), 0, -1):
        for start in range(max(0, end - 2), end):
            if found := PARAMETERS.get(".".join(keys[start:end])):
                return found
    return ()
