"""List the rules of Anthropic Messages, with the error messages of the provider.

Paths have the provider's form: `messages.3.content.0.tool_use.id` names the message, the block, and the block's type
where the API distinguishes types. Refusals have no `param`, and few have an error code (`details`).
"""

from actors.strict.rules.base import COPIES, DOC, RECALLED, ServerRule, rules_by_id

ID = r"^[a-zA-Z0-9_-]+$"
SERVER_ID = r"^srvtoolu_[a-zA-Z0-9_]+$"
MCP_ID = r"^mcptoolu_[a-zA-Z0-9_]+$"
TOOL_NAME = r"^[a-zA-Z0-9_-]{1,128}$"

_PAIRING = (
    ServerRule(
        "ANT-01",
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    ServerRule(
        "ANT-02",
        "messages.{at}.content.{block}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
    ),
    ServerRule(
        "ANT-03",
        "messages.{at}: Did not find {count} `tool_result` block(s) at the beginning of this message. "
        "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
    ),
    ServerRule(
        "ANT-04",
        "Messages containing `tool_use` blocks must be followed by a user message with `tool_result` blocks",
    ),
    ServerRule("ANT-05", "messages.{at}.content.{block}: `tool_use` ids must be unique"),
    ServerRule(
        "ANT-06",
        "messages.{at}.content.{block}: each tool_use must have a single result. Found multiple "
        "`tool_result` blocks with id: {id}",
    ),
    ServerRule("ANT-07", "{path}: String should match pattern '" + ID + "'"),
    ServerRule("ANT-07-server", "{path}: String should match pattern '" + SERVER_ID + "'"),
    ServerRule("ANT-07-mcp", "{path}: String should match pattern '" + MCP_ID + "'", source=RECALLED),
    ServerRule("ANT-08", "{path}: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"),
    ServerRule("ANT-08-length", "{path}: String should have at most 128 characters"),
    ServerRule("ANT-09", "tools: Tool names must be unique."),
    ServerRule(
        "ANT-10",
        "messages.{at}: only `tool_result` blocks may be sent while a server tool call is pending.",
        source=DOC,
    ),
    ServerRule(
        "ANT-11",
        "messages.{at}.content.{block}: unexpected `tool_use_id` found in `{type}` blocks: {id}. Each "
        "`{type}` block must have a corresponding `{call}` block before it.",
    ),
    ServerRule(
        "ANT-12",
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        source=COPIES,
        strict_only=True,
    ),
)

_CONTENT = (
    ServerRule("ANT-20", "{where}: text content blocks must be non-empty"),
    ServerRule("ANT-21", "{where}: text content blocks must contain non-whitespace text"),
    ServerRule(
        "ANT-22",
        "messages.{at}: all messages must have non-empty content except for the optional final assistant "
        "message",
    ),
    ServerRule("ANT-23", "messages: final assistant content cannot end with trailing whitespace"),
    ServerRule("ANT-24", 'messages: first message must use the "user" role'),
    ServerRule("ANT-25", "messages: at least one message is required"),
    ServerRule(
        "ANT-26",
        'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles '
        "in a row",
        strict_only=True,
    ),
    ServerRule(
        "ANT-27",
        "This model does not support assistant message prefill. The conversation must end with a user "
        "message.",
    ),
    ServerRule("ANT-28", "{path}: Extra inputs are not permitted"),
    ServerRule("ANT-29", "{path}: List should have at least 1 item after validation, not 0", source=RECALLED),
    ServerRule("ANT-30", "{path}: image exceeds 5 MB maximum: {size} bytes > 5242880 bytes"),
    ServerRule("ANT-31", "The request body is not valid JSON: {why}"),
    ServerRule("ANT-32", "A maximum of 4 blocks with cache_control may be provided. Found {count}."),
    ServerRule("ANT-33", "{path}: cache_control cannot be set for empty text blocks"),
    ServerRule("ANT-34", "{path}.cache_control: Extra inputs are not permitted", source=DOC),
    ServerRule(
        "ANT-34-ttl",
        "{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block.",
        source=DOC,
    ),
    ServerRule(
        "ANT-35",
        "max_tokens: {asked} > {limit}, which is the maximum allowed number of output tokens for {model}",
    ),
    ServerRule("ANT-36", "prompt is too long: {tokens} tokens > {limit} maximum"),
    ServerRule(
        "ANT-37",
        "input length and `max_tokens` exceed context limit: {tokens} + {asked} > {limit}, decrease input "
        "length or `max_tokens` and try again",
    ),
    ServerRule("ANT-38", "model: {model}", status=404, type="not_found_error"),
)

_THINKING = (
    ServerRule(
        "ANT-39",
        "messages.{at}.content.0: If an assistant message contains any thinking blocks, the first block "
        "must be `thinking` or `redacted_thinking`. Found `{found}`.",
        strict_only=True,
    ),
    ServerRule(
        "ANT-40",
        "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. "
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
        "(preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
    ),
    ServerRule(
        "ANT-41",
        "messages.{at}.content.{block}: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original response.",
    ),
    ServerRule("ANT-42", "messages.{at}.content.{block}: Invalid `signature` in `thinking` block"),
    ServerRule(
        "ANT-43",
        "messages.{at}.content.{block}.thinking.thinking: each thinking block must contain thinking",
    ),
    ServerRule(
        "ANT-44",
        "messages.{at}.content.{block}: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation. Remove the block, or set "
        '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". {what}',
        source=DOC,
    ),
    ServerRule(
        "ANT-45",
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
    ),
    ServerRule("ANT-46", "adaptive thinking is not supported on this model"),
    ServerRule("ANT-47", '"thinking.type.disabled" is not supported for this model.'),
    ServerRule(
        "ANT-47-between", '"thinking.type.between_tools" is not supported for this model.', source=RECALLED
    ),
    ServerRule("ANT-48", 'tool_choice: type "tool" and "any" are not supported for this model.'),
    ServerRule(
        "ANT-48-thinking",
        "Thinking may not be enabled when tool_choice forces tool use.",
        source=DOC,
    ),
    ServerRule(
        "ANT-49",
        "This model does not support effort level '{effort}'. Supported levels: {levels}.",
    ),
    ServerRule("ANT-50", "{path}.block_binding: Extra inputs are not permitted"),
    ServerRule("ANT-51", "{path}.content: all content must be type `text` if `is_error` is true"),
    ServerRule("ANT-49-none", "This model does not support the effort parameter."),
    ServerRule(
        "ANT-49-between",
        "thinking.type.between_tools is not supported with effort level '{effort}'.",
        source=RECALLED,
    ),
    ServerRule(
        "ANT-S31",
        "output_config.format: structured outputs are not supported on this model.",
        source=RECALLED,
    ),
    ServerRule("ANT-52", "messages.{at}: The final block in an assistant message cannot be `thinking`."),
    ServerRule("DSK-06", "The `content[].thinking` in the thinking mode must be passed back to the API."),
    ServerRule("ANT-53", "{path}: content cannot be empty if `is_error` is true"),
    ServerRule(
        "ANT-55",
        "messages: List should have at most {most} items after validation, not {count}",
        source=RECALLED,
    ),
    ServerRule("ANT-54", "too many images and documents: {images} + {documents} > {most}"),
)

_SHAPE = (
    ServerRule("ANT-S01", "{path}: Field required", source=RECALLED),
    ServerRule("ANT-S02", "{path}: Input should be a valid {kind}", source=RECALLED),
    ServerRule("ANT-S03", "{path}: Input should be {values}", source=RECALLED),
    ServerRule(
        "ANT-S04",
        "{path}: Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}",
        source=RECALLED,
    ),
    ServerRule("ANT-S05", "{path}: `{type}` blocks can only be in `{role}` messages", source=RECALLED),
    ServerRule("ANT-S06", "role 'system' is not supported on this model", source=COPIES),
    ServerRule(
        "ANT-S07",
        "messages.{at}: a `system` message must follow a user message and precede an assistant message or "
        "end the conversation.",
        source=DOC,
    ),
    ServerRule("ANT-S08", "{path}: Input should be greater than or equal to {limit}", source=RECALLED),
    ServerRule("ANT-S09", "`max_tokens` must be greater than `thinking.budget_tokens`.", source=RECALLED),
    ServerRule("ANT-S10", "`temperature` may only be set to 1 when thinking is enabled.", source=RECALLED),
    ServerRule("ANT-S11", "`tool_choice` may only be specified while providing `tools`.", source=RECALLED),
    ServerRule("ANT-S14", "{path}: Input should be less than or equal to {limit}", source=RECALLED),
    ServerRule("ANT-S12", "Tool '{name}' not found in provided tools", source=RECALLED),
    ServerRule(
        "ANT-S15", "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    ),
    ServerRule("ANT-S16", "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."),
    ServerRule("ANT-S17", "stop_sequences: each stop sequence must contain non-whitespace"),
    ServerRule("ANT-S18", "output_config.format.schema: {why}"),
    ServerRule("ANT-S19", "output_config.format.schema: recursive schemas are not supported", source=DOC),
    ServerRule(
        "ANT-S20",
        "Schemas contains too many {what} ({count}), which would make grammar compilation inefficient. Reduce the "
        "number of {what} in your tool schemas (limit: {limit}).",
    ),
    ServerRule(
        "ANT-S21",
        "No usable Thread state was found for `previous_message_id`. Replay the full conversation with `thread: "
        '{{"type": "create"}}` to start a new Thread.',
        source=DOC,
        status=404,
        type="not_found_error",
        code="thread_not_found",
    ),
    ServerRule(
        "ANT-S22",
        "The response that `previous_message_id` names has already been continued, and each response can be "
        "continued only once. Continue from the Thread's most recent response `id`.",
        source=DOC,
        code="thread_already_continued",
    ),
    ServerRule(
        "ANT-S23",
        "A field that must stay the same across a Thread's turns differs from the value stored with the Thread: "
        '{fields}. Send the stored values, or replay the full conversation with `thread: {{"type": "create"}}` to '
        "change them.",
        source=DOC,
        code="thread_fingerprint_mismatch",
    ),
    ServerRule("ANT-56", "`{key}` is deprecated for this model."),
    ServerRule(
        "ANT-58", "{path}: At least one of the image dimensions exceed max allowed size: {most} pixels"
    ),
    ServerRule(
        "ANT-59",
        "{path}: At least one of the image dimensions exceed max allowed size for many-image requests: {most} pixels",
    ),
    ServerRule("ANT-61", "{path}: Image does not match the provided media type {label}"),
    ServerRule("ANT-57", "{path}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"),
    ServerRule(
        "ANT-S30",
        "{path}: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
        "(https://json-schema.org/draft/2020-12). Learn more about tool use at "
        "https://docs.claude.com/en/docs/tool-use.",
    ),
    ServerRule("ANT-S13", "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"),
)

RULES = rules_by_id(*_PAIRING, *_CONTENT, *_THINKING, *_SHAPE)
