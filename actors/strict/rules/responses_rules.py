"""List the rules of OpenAI Responses, and define the profiles and settings of a host.

A server stores the response to each request, unless the request has `store: false` (`responses_store`). Without a
server, nothing is stored, so a request cannot refer to earlier responses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from actors.strict.rules.base import COPIES, DOC, RECALLED, ServerRule, rules_by_id


@dataclass(frozen=True, slots=True)
class ResponsesProfile:
    """The features of a model on a host with the Responses API.

    Args:
        call_id_length: The maximum length of a `call_id`, in characters.
        adjacent: Whether outputs must directly follow their calls, as in DeepSeek's version of the API. The mode
            `strict` always requires this.
        encrypted: Whether the model supports encrypted reasoning.
        prefix_bound: Whether encrypted reasoning is refused if the prefix before it has changed. (In the mode `hosted`,
            the server silently ignores it instead, like the real host.)
        looks_up_items: Whether the host refuses every item with an id, because it looks the item up and does not find
            it. This was reported for hosts under `store: false`.
        names_items: Whether the items of an answer have ids. Relays omit them.
        sampling: False for reasoning models, which refuse `temperature` and similar settings.
        context_tokens: The size of the context window in tokens; None means unlimited. Four bytes of the body count as
            one token.
    """

    call_id_length: int = 64
    adjacent: bool = False
    encrypted: bool = True
    prefix_bound: bool = False
    looks_up_items: bool = False
    names_items: bool = True
    sampling: bool = True
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ResponsesSettings:
    """The settings of a host with the Responses API.

    Args:
        profile: The profile of every model if `models` is None.
        models: The models that exist, by name; None accepts any name.
        account: A label for the account; encrypted reasoning is bound to it.
        secret: The key for simulated encryption. Hosts with different secrets reject each other's reasoning.
        signatures: `trust` accepts any encrypted content, to validate bodies without a server.
    """

    profile: ResponsesProfile = ResponsesProfile()
    models: Mapping[str, ResponsesProfile] | None = None
    account: str = "account-1"
    secret: bytes = field(default=b"stand-in encryption secret", repr=False)
    signatures: Literal["verify", "trust"] = "verify"


_TOO_LONG = (
    "Invalid '{path}': string too long. Expected a string with maximum length {limit}, "
    "but got a string with length {length} instead."
)

RULES = rules_by_id(
    ServerRule("OAR-01", "No tool output found for {kind} call {id}."),
    ServerRule("OAR-02", "No tool call found for {kind} call output with call_id {id}."),
    ServerRule("OAR-03", "Item '{id}' of type 'reasoning' was provided without its required following item."),
    ServerRule(
        "OAR-04",
        "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{wanted}'.",
    ),
    ServerRule(
        "OAR-05",
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with "
        "`store` set to true, or remove this item from your input.",
        status=404,
    ),
    ServerRule(
        "OAR-06",
        "Invalid '{path}': '{id}'. Expected an ID that begins with '{prefix}'.",
        code="invalid_value",
    ),
    ServerRule(
        "OAR-07", "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
    ),
    ServerRule("OAR-08", _TOO_LONG, code="string_above_max_length"),
    ServerRule(
        "OAR-09",
        "The encrypted content for item {id} could not be verified. Reason: {why}",
        code="invalid_encrypted_content",
    ),
    ServerRule(
        "OAR-10",
        "Invalid type for '{path}': expected {expected}, but got {got} instead.",
        code="invalid_type",
    ),
    ServerRule("OAR-11", "Custom tool call output is missing for call id: {id}."),
    ServerRule("OAR-12", "The requested model '{model}' does not exist.", code="model_not_found"),
    ServerRule(
        "OAR-13",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    ServerRule("OAR-14", "No tool output found for tool call {id}.", code="invalid_request_error"),
    ServerRule("OAR-S01", "We could not parse the JSON body of your request. ({why})", source=RECALLED),
    ServerRule(
        "OAR-S02", "Missing required parameter: '{path}'.", source=DOC, code="missing_required_parameter"
    ),
    ServerRule("OAR-S03", "Unknown parameter: '{path}'.", source=DOC, code="unknown_parameter"),
    ServerRule(
        "OAR-S04",
        "Invalid value: '{value}'. Supported values are: {values}.",
        source=DOC,
        code="invalid_value",
    ),
    ServerRule(
        "OAR-S05",
        "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
        "'{pattern}'.",
        source=DOC,
        code="invalid_value",
    ),
    ServerRule(
        "OAR-S06",
        "Invalid '{path}': empty {what}. Expected {what} with minimum length 1, but got an empty {what} "
        "instead.",
        source=RECALLED,
        code="empty_array",
    ),
    ServerRule("OAR-S07", _TOO_LONG, source=DOC, code="string_above_max_length"),
    ServerRule("OAR-S08", "Invalid schema for function '{name}': {why}", code="invalid_function_parameters"),
    ServerRule("OAR-S09", "Tool choice '{name}' not found in 'tools' parameter.", source=RECALLED),
    ServerRule(
        "OAR-S10",
        "Unsupported parameter: '{path}' is not supported with this model.",
        source=RECALLED,
        code="unsupported_parameter",
    ),
    ServerRule("OAR-S11", "Encrypted content is not supported with this model.", source=RECALLED),
    ServerRule(
        "OAR-S12",
        "Previous response with id '{id}' not found.",
        source=RECALLED,
        code="previous_response_not_found",
    ),
    ServerRule("OAR-S13", "Invalid value for '{path}'.", source=RECALLED, code="invalid_value"),
    ServerRule("OAR-S14", "Invalid schema for response_format '{name}': {why}"),
    ServerRule(
        "OAR-S15",
        "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
        "'json_object'.",
    ),
    ServerRule("OAR-S16", "Response with id '{id}' not found.", source=RECALLED, status=404),
    ServerRule("OAR-S17", "Cannot cancel a synchronous response.", source=RECALLED),
    ServerRule("OAR-S18", "Item with id '{id}' not found.", source=RECALLED, status=404),
    ServerRule(
        "OAR-S24",
        "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing "
        "one of them.",
        source=RECALLED,
        code="mutually_exclusive_parameters",
    ),
    ServerRule("OAR-S25", "Conversation with id '{id}' not found.", source=RECALLED, status=404),
    ServerRule("OAR-S20", "invalid tool call arguments", source=COPIES, strict_only=True),
    ServerRule("OAR-S21", "Duplicate tool call id {id}", source=COPIES, strict_only=True),
    ServerRule("OAR-S22", "The last item of the input is the assistant's.", source=COPIES, strict_only=True),
)
