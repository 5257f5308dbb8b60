"""List the rules of AWS Bedrock Converse, and define the profiles and settings of a host.

Paths have the provider's form: `messages.2.content.0`. The header `x-amzn-errortype` contains a refusal's type, and the
body contains its message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from actors.strict.rules.base import DOC, RECALLED, AnthropicProfile, ServerRule, rules_by_id

ID = r"[a-zA-Z0-9_.:-]+"
TOOL_NAME = r"[a-zA-Z0-9_-]+"
_VALUE = "1 validation error detected: Value {value} at '{path}' failed to satisfy constraint: Member must "
_MALFORMED = "Malformed input request: #/{path}: "
_REFORMAT = ", please reformat your input and try again."


@dataclass(frozen=True, slots=True)
class BedrockProfile:
    """The features of a model on Bedrock.

    Args:
        upstream: For an Anthropic model, its profile at Anthropic, because Bedrock forwards Anthropic's refusals; None
            for models of other vendors.
        choices: The accepted kinds of tool choice.
        media: The accepted kinds of media blocks.
        attachments: The vendor's maximum number of images and documents in a request; None means unlimited.
        context_tokens: The size of the context window in tokens; None means unlimited. Four bytes of the body count as
            one token.
    """

    upstream: AnthropicProfile | None = field(default_factory=AnthropicProfile)
    choices: frozenset[str] = frozenset({"auto", "any", "tool"})
    media: frozenset[str] = frozenset({"image", "document"})
    attachments: int | None = 20
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BedrockSettings:
    """The settings of a Bedrock account.

    Args:
        profile: The profile of every model if `models` is None.
        models: The models that exist, by id; None accepts any id.
        model: The id of the requested model, from the request's path.
        organisation: The organisation to which reasoning signatures are bound.
        secret: The key with which simulated signatures are created.
        signatures: `trust` accepts any non-empty signature, to validate bodies without a server.
    """

    profile: BedrockProfile = field(default_factory=BedrockProfile)
    models: Mapping[str, BedrockProfile] | None = None
    model: str = "anthropic.claude"
    organisation: str = "organisation-1"
    secret: bytes = field(default=b"stand-in signing secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


def _bedrock_rule(
    rule_id: str,
    text: str,
    source: str = "",
    *,
    status: int = 400,
    type: str = "",  # noqa: A002
) -> ServerRule:
    kind = type or "ValidationException"
    return (
        ServerRule(rule_id, text, source, status, kind)
        if source
        else ServerRule(rule_id, text, status=status, type=kind)
    )


_PAIRING = (
    _bedrock_rule(
        "BED-01", "Expected toolResult blocks at messages.{at}.content for the following Ids: {ids}"
    ),
    _bedrock_rule(
        "BED-02",
        "The number of toolResult blocks at messages.{at}.content exceeds the number of toolUse blocks of "
        "previous turn.",
    ),
    _bedrock_rule(
        "BED-03", "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    ),
    _bedrock_rule(
        "BED-06",
        "A conversation must alternate between user and assistant roles. Make sure the conversation "
        "alternates between user and assistant roles and try again.",
    ),
    _bedrock_rule(
        "BED-07",
        "A conversation must start with a user message. Try again with a conversation that starts with a "
        "user message.",
    ),
)

_CONTENT = (
    _bedrock_rule(
        "BED-04",
        "The text field in the ContentBlock object at {path} is blank. Add text to the text field, and try "
        "again.",
    ),
    _bedrock_rule(
        "BED-05",
        "The content field in the Message object at messages.{at} is empty. Add a ContentBlock object to the "
        "content field and try again.",
    ),
    _bedrock_rule("BED-08", _VALUE + "satisfy regular expression pattern: {pattern}", RECALLED),
    _bedrock_rule("BED-08-length", _VALUE + "have length less than or equal to 64", RECALLED),
    _bedrock_rule("BED-09", "This model doesn't support the {kind} content block that you provided."),
    _bedrock_rule("BED-10", "The model returned the following errors: {text}"),
    _bedrock_rule("BED-11", _MALFORMED + "extraneous key [{key}] is not permitted" + _REFORMAT),
    _bedrock_rule("BED-12", "Input is too long for requested model."),
    _bedrock_rule("BED-13", "messages.{at}.content: a document block needs a text block beside it.", DOC),
    _bedrock_rule("BED-14", "The provided model identifier is invalid."),
    _bedrock_rule(
        "BED-15",
        "Messages can't contain duplicate document names. Rename the document and retry your request.",
    ),
    _bedrock_rule("BED-16", "You can't include more than {most} documents in a request."),
    _bedrock_rule(
        "BED-17",
        "The model returned the following errors: too many images and documents: {images} + {documents} > {most}",
    ),
    _bedrock_rule(
        "BED-18",
        "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
        "parentheses, and square brackets. The name can't contain more than one consecutive whitespace "
        "character. Check that the file name conforms to these restrictions and retry your request.",
    ),
)

_SHAPE = (
    _bedrock_rule("BED-S01", _VALUE + "not be null", RECALLED),
    _bedrock_rule("BED-S02", _MALFORMED + "expected type: {wanted}, found: {found}" + _REFORMAT, RECALLED),
    _bedrock_rule("BED-S03", _VALUE + "satisfy enum value set: [{values}]", RECALLED),
    _bedrock_rule("BED-S04", _VALUE + "have length greater than or equal to 1", RECALLED),
    _bedrock_rule(
        "BED-S05", "The request body is not valid JSON: {why}", RECALLED, type="SerializationException"
    ),
    _bedrock_rule("BED-S06", _MALFORMED + "{count} subschemas matched instead of one" + _REFORMAT, RECALLED),
    _bedrock_rule("BED-S07", "The {block} block at {path} cannot be in a message of role {role}.", RECALLED),
    _bedrock_rule("BED-S08", _VALUE + "be between {least} and {most}", RECALLED),
    _bedrock_rule("BED-S10", _VALUE + "have length less than or equal to 2500", DOC),
    _bedrock_rule("BED-S11", _VALUE + "have length less than or equal to 16", DOC),
    _bedrock_rule(
        "BED-S12",
        "This model doesn't support the toolConfig.toolChoice.{kind} field. Remove toolConfig.toolChoice.{kind} and "
        "try again.",
        RECALLED,
    ),
    _bedrock_rule("BED-S09", "The tool {name} of toolChoice is not among the tools of toolConfig.", RECALLED),
)

RULES = rules_by_id(*_PAIRING, *_CONTENT, *_SHAPE)
