"""The rules of Google's generateContent as a table, and the profiles and settings of a host.

The table contains the messages of the Gemini API and of Vertex AI where they differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from actors.strict.rules.base import COPIES, DOC, RECALLED, SEEN, ServerRule, table

NAME = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"
SENTINELS = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""Documented placeholders for the signatures of other models' calls."""


@dataclass(frozen=True, slots=True)
class GeminiProfile:
    """The features of a Gemini model.

    Args:
        signatures: Whether the first call of a step needs a signature, as since generation 3.
        context_tokens: The context window in tokens, estimated at four bytes of body each. None means unlimited.
        json_beside_tools: Whether a request may have both JSON output and tools, as since generation 3.
        call_ids: Whether Vertex AI accepts ids of calls and responses, as since generation 3. The Gemini API always
            does.
    """

    signatures: bool = True
    context_tokens: int | None = None
    json_beside_tools: bool = True
    call_ids: bool = True


@dataclass(frozen=True, slots=True)
class GeminiSettings:
    """The settings of a generateContent host.

    Args:
        profile: The profile of every model when `models` is None.
        models: The existing models, by name.
        vertex: Whether the host is Vertex AI, where some models refuse call ids.
        model: The model in the request's path, to which signatures are bound.
        account: The label of the account, to which signatures are bound.
        secret: The key of the stand-in signatures. Hosts with different secrets reject each other's signatures.
        signatures: `trust` accepts any base64 signature, to validate bodies without a server.
    """

    profile: GeminiProfile = GeminiProfile()
    models: Mapping[str, GeminiProfile] | None = None
    vertex: bool = False
    model: str = ""
    account: str = "account-1"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


def _rule(
    rule: str,
    text: str,
    source: str = SEEN,
    *,
    status: int = 400,
    type: str = "INVALID_ARGUMENT",  # noqa: A002  the field's name
    strict_only: bool = False,
) -> ServerRule:
    return ServerRule(rule, text, source, status=status, type=type, strict_only=strict_only)


RULES = table(
    _rule(
        "GEM-01",
        "Please ensure that the number of function response parts is equal to the number of function call "
        "parts of the function call turn.",
    ),
    _rule(
        "GEM-02",
        "Please ensure that function call turn comes immediately after a user turn or after a function "
        "response turn.",
    ),
    _rule(
        "GEM-03",
        "Please ensure that function response turn comes immediately after a function call turn.",
    ),
    _rule(
        "GEM-04",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
        "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
        "data, function call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    ),
    _rule("GEM-05", "Corrupted thought signature."),
    _rule("GEM-05-vertex", "Unable to submit request because Thought signature is not valid.."),
    _rule("GEM-06", "Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed for \"{value}\""),
    _rule("GEM-07", "* GenerateContentRequest.contents: contents is not specified\n"),
    _rule(
        "GEM-08",
        "Role '{role}' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, "
        "DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER.",
    ),
    _rule("GEM-08-vertex", "Please use a valid role: user, model."),
    _rule("GEM-09", "{lines}"),
    _rule("GEM-10", "{lines}"),
    _rule(
        "GEM-11",
        "Unable to submit request because it must include at least one parts field, which "
        "describes the prompt input.",
        RECALLED,
    ),
    _rule(
        "GEM-12",
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
    _rule(
        "GEM-13",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
        "ModelService.ListModels to see the list of available models and their supported methods.",
        status=404,
        type="NOT_FOUND",
    ),
    _rule("GEM-S01", "Invalid JSON payload received. {why}"),
    _rule("GEM-S02", "Invalid value at '{path}' ({kind}), {value}"),
    _rule("GEM-S03", "* GenerateContentRequest.{path}: [FIELD_INVALID] Name cannot be empty.\n", RECALLED),
    _rule(
        "GEM-S04",
        "* GenerateContentRequest.{path}: Invalid function name. Must start with a letter or an underscore. "
        "Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a "
        "maximum length of 128.\n",
        DOC,
    ),
    _rule("GEM-S05", "Duplicate function declaration found: {name}", RECALLED),
    _rule(
        "GEM-S06", "Please ensure that multiturn requests alternate between user and model.", strict_only=True
    ),
    _rule(
        "GEM-S07", "Please ensure that multiturn requests end with a user turn or a function response turn."
    ),
    _rule(
        "GEM-S08",
        "* GenerateContentRequest.{path}: the name or id of the response is not that of its call\n",
        COPIES,
        strict_only=True,
    ),
    _rule("GEM-S09", "Function calling config is set without function_declarations.", RECALLED),
    _rule(
        "GEM-S21",
        "* GenerateContentRequest.tool_config.function_calling_config.allowed_function_names: {why}\n",
        RECALLED,
    ),
    _rule(
        "GEM-S10", "Unable to submit request because `{path}` schema didn't specify the schema type field."
    ),
    _rule(
        "GEM-S11",
        "You can only set only one of thinking budget and thinking level.",
        RECALLED,
    ),
    _rule("GEM-S13", "* GenerateContentRequest.{path}: {why}\n"),
    _rule(
        "GEM-S14",
        "* GenerateContentRequest.{path}: should be non-empty for OBJECT type\n",
        strict_only=True,
    ),
    _rule(
        "GEM-S15",
        "* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, "
        "`application/json`, `application/xml`, `application/yaml` and `text/x.enum`.\n",
    ),
    _rule(
        "GEM-S16",
        "Unable to submit request because it has a {name} value of {value} but the supported range is from {low} "
        "to {high}. Update the value and try again.",
    ),
    _rule("GEM-S17", "* GenerateContentRequest.generation_config.response_schema: {why}\n", DOC),
    _rule(
        "GEM-S18",
        "* GenerateContentRequest.generation_config.stop_sequences: at most {most} are supported\n",
        DOC,
    ),
    _rule("GEM-S19", "schema at {path} can only contain properties starting with '$' when $ref is present"),
    _rule("GEM-S20", "Function calling with a response mime type: 'application/json' is unsupported"),
    _rule(
        "GEM-S12",
        "* GenerateContentRequest.{path}: one of the fields of `data` must be initialized, and only one\n",
        RECALLED,
    ),
)
