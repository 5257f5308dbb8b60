"""List the rules of Google's generateContent, and define the profiles and settings of a host.

Where the Gemini API and Vertex AI have different error messages, the table contains both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from actors.strict.rules.base import COPIES, DOC, RECALLED, SEEN, ServerRule, rules_by_id

NAME = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"
SENTINELS = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""Documented placeholders that replace the signature of a call from another model."""


@dataclass(frozen=True, slots=True)
class GeminiProfile:
    """The features of a Gemini model.

    Args:
        signatures: Whether the first call of a model content needs a signature; True since generation 3.
        context_tokens: The size of the context window in tokens; None means unlimited. Four bytes of the body count as
            one token.
        json_beside_tools: Whether a request may have both JSON output and tools; True since generation 3.
        call_ids: Whether Vertex AI accepts ids of calls and responses; True since generation 3. The Gemini API always
            accepts them.
    """

    signatures: bool = True
    context_tokens: int | None = None
    json_beside_tools: bool = True
    call_ids: bool = True


@dataclass(frozen=True, slots=True)
class GeminiSettings:
    """The settings of a generateContent host.

    Args:
        profile: The profile of every model if `models` is None.
        models: The models that exist, by name; None accepts any name.
        vertex: Whether the host is Vertex AI, where some models refuse call ids.
        model: The model in the request's path; signatures are bound to it.
        account: A label for the account; signatures are bound to it.
        secret: The key for simulated signatures. Hosts with different secrets reject each other's signatures.
        signatures: `trust` accepts any base64 signature, to validate bodies without a server.
    """

    profile: GeminiProfile = GeminiProfile()
    models: Mapping[str, GeminiProfile] | None = None
    vertex: bool = False
    model: str = ""
    account: str = "account-1"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


def _gemini_rule(
    rule_id: str,
    text: str,
    source: str = SEEN,
    *,
    status: int = 400,
    type: str = "INVALID_ARGUMENT",  # noqa: A002  named like the field of `ServerRule`
    strict_only: bool = False,
) -> ServerRule:
    return ServerRule(rule_id, text, source, status=status, type=type, strict_only=strict_only)


RULES = rules_by_id(
    _gemini_rule(
        "GEM-01",
        "Please ensure that the number of function response parts is equal to the number of function call "
        "parts of the function call turn.",
    ),
    _gemini_rule(
        "GEM-02",
        "Please ensure that function call turn comes immediately after a user turn or after a function "
        "response turn.",
    ),
    _gemini_rule(
        "GEM-03",
        "Please ensure that function response turn comes immediately after a function call turn.",
    ),
    _gemini_rule(
        "GEM-04",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
        "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
        "data, function call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    ),
    _gemini_rule("GEM-05", "Corrupted thought signature."),
    _gemini_rule("GEM-05-vertex", "Unable to submit request because Thought signature is not valid.."),
    _gemini_rule("GEM-06", "Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed for \"{value}\""),
    _gemini_rule("GEM-07", "* GenerateContentRequest.contents: contents is not specified\n"),
    _gemini_rule(
        "GEM-08",
        "Role '{role}' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, "
        "DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER.",
    ),
    _gemini_rule("GEM-08-vertex", "Please use a valid role: user, model."),
    _gemini_rule("GEM-09", "{lines}"),
    _gemini_rule("GEM-10", "{lines}"),
    _gemini_rule(
        "GEM-11",
        "Unable to submit request because it must include at least one parts field, which "
        "describes the prompt input.",
        RECALLED,
    ),
    _gemini_rule(
        "GEM-12",
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
    _gemini_rule(
        "GEM-13",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
        "ModelService.ListModels to see the list of available models and their supported methods.",
        status=404,
        type="NOT_FOUND",
    ),
    _gemini_rule("GEM-S01", "Invalid JSON payload received. {why}"),
    _gemini_rule("GEM-S02", "Invalid value at '{path}' ({kind}), {value}"),
    _gemini_rule(
        "GEM-S03", "* GenerateContentRequest.{path}: [FIELD_INVALID] Name cannot be empty.\n", RECALLED
    ),
    _gemini_rule(
        "GEM-S04",
        "* GenerateContentRequest.{path}: Invalid function name. Must start with a letter or an underscore. "
        "Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a "
        "maximum length of 128.\n",
        DOC,
    ),
    _gemini_rule("GEM-S05", "Duplicate function declaration found: {name}", RECALLED),
    _gemini_rule(
        "GEM-S06", "Please ensure that multiturn requests alternate between user and model.", strict_only=True
    ),
    _gemini_rule(
        "GEM-S07", "Please ensure that multiturn requests end with a user turn or a function response turn."
    ),
    _gemini_rule(
        "GEM-S08",
        "* GenerateContentRequest.{path}: the name or id of the response is not that of its call\n",
        COPIES,
        strict_only=True,
    ),
    _gemini_rule("GEM-S09", "Function calling config is set without function_declarations.", RECALLED),
    _gemini_rule(
        "GEM-S21",
        "* GenerateContentRequest.tool_config.function_calling_config.allowed_function_names: {why}\n",
        RECALLED,
    ),
    _gemini_rule(
        "GEM-S10", "Unable to submit request because `{path}` schema didn't specify the schema type field."
    ),
    _gemini_rule(
        "GEM-S11",
        "You can only set only one of thinking budget and thinking level.",
        RECALLED,
    ),
    _gemini_rule("GEM-S13", "* GenerateContentRequest.{path}: {why}\n"),
    _gemini_rule(
        "GEM-S14",
        "* GenerateContentRequest.{path}: should be non-empty for OBJECT type\n",
        strict_only=True,
    ),
    _gemini_rule(
        "GEM-S15",
        "* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, "
        "`application/json`, `application/xml`, `application/yaml` and `text/x.enum`.\n",
    ),
    _gemini_rule(
        "GEM-S16",
        "Unable to submit request because it has a {name} value of {value} but the supported range is from {low} "
        "to {high}. Update the value and try again.",
    ),
    _gemini_rule("GEM-S17", "* GenerateContentRequest.generation_config.response_schema: {why}\n", DOC),
    _gemini_rule(
        "GEM-S18",
        "* GenerateContentRequest.generation_config.stop_sequences: at most {most} are supported\n",
        DOC,
    ),
    _gemini_rule(
        "GEM-S19", "schema at {path} can only contain properties starting with '$' when $ref is present"
    ),
    _gemini_rule("GEM-S20", "Function calling with a response mime type: 'application/json' is unsupported"),
    _gemini_rule(
        "GEM-S12",
        "* GenerateContentRequest.{path}: one of the fields of `data` must be initialized, and only one\n",
        RECALLED,
    ),
)
