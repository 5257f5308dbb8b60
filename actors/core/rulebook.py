"""What providers demand of a request, as data: one `Rule` for each demand that is known.

Ids are stable and cited by code, tests, diagnostics and docs/reference/rulebook.md, which is generated
from here. `OAC-*` are OpenAI Chat Completions, `ANT-*` Anthropic Messages, and `ALL-*` what every dialect
demands and its family's own list does not name. The judge (`actors.core.check`) enforces the rules marked
as judged; the others depend on what no request body shows: a key, a model's limits, a header.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.errors import CanonicalFault, Fault, ProjectionFault, RenderingFault

FaultClass: TypeAlias = Literal["rendering", "projection", "canonical", "overflow", "config"]

FAULTS: dict[FaultClass, type[Fault]] = {
    "rendering": RenderingFault,
    "projection": ProjectionFault,
    "canonical": CanonicalFault,
}
"""The error of each fault class. An overflow or a configuration error is no fault of a transcript."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One demand.

    Args:
        id: Stable id, such as `ANT-07`.
        fault_class: Where the cause lies when it is broken.
        evidence: How it is known: `seen` in a real answer, `documented`, `second hand` from other software,
            or `derived` from the other rules.
        demand: What must hold, in one line.
        refusal: What the provider answers, in its own words, where they are known.
        unseen: Why the judge cannot see it; empty for a rule that is judged.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    refusal: str = ""
    unseen: str = ""

    @property
    def judged(self) -> bool:
        """Whether a request body shows if the rule is kept."""
        return not self.unseen


_MODEL = "depends on the model"
_SECRET = "needs the provider's key"  # noqa: S105  a reason, not a password
_TOKENS = "needs the provider's token count"

_ALL = (
    Rule("ALL-01", "projection", "derived",
         "A request is one strict JSON object: no duplicate key, NaN or trailing data."),
    Rule("ALL-02", "projection", "documented",
         "A required field is present, and a field has the type and values it may have."),
    Rule("ALL-03", "projection", "derived",
         "A tool call id is not empty and matches the dialect's pattern in full."),
    Rule("ALL-04", "projection", "derived",
         "A tool call id is used for one call only, within the dialect's scope."),
    Rule("ALL-05", "rendering", "derived",
         "A transcript ends with a role of the dialect's `last_roles`: never a prefill."),
    Rule("ALL-06", "projection", "seen",
         "Arguments are an object: as JSON text in a string, or as JSON, by dialect."),
    Rule("ALL-07", "projection", "second hand",
         "An object inside `messages` or `tools` has no key outside its allow-list."),
    Rule("ALL-08", "rendering", "documented",
         "A block stands in a message whose role may hold it: calls with the assistant, results with "
         "their carrier."),
    Rule("ALL-09", "rendering", "derived",
         "A transcript begins with a role of the dialect's `first_roles`."),
    Rule("ALL-10", "projection", "documented",
         "Media stand only where the dialect's carrier can hold them."),
    Rule("ALL-11", "projection", "documented",
         "No list of parts, text part or assistant message is empty; an assistant message without tool "
         "calls has content."),
    Rule("ALL-12", "canonical", "derived",
         "Text holds no lone surrogate."),
    Rule("ALL-13", "projection", "derived",
         "Declared tool names differ from each other."),
    Rule("ALL-14", "projection", "second hand",
         "A tool choice is given only with tools, and the tool it names is one of them."),
)  # fmt: skip

_OPENAI_CHAT = (
    Rule("OAC-01", "rendering", "seen",
         "An assistant message with tool calls is followed at once by one tool message for each call.",
         "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
         "'tool_call_id'. The following tool_call_ids did not have response messages: call_…"),
    Rule("OAC-02", "rendering", "seen",
         "A tool message answers a call that is still open directly before it.",
         "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
         "'tool_calls'."),
    Rule("OAC-03", "projection", "seen",
         "A tool call id is no longer than the limit.",
         "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length "
         "40, but got a string with length 43 instead."),
    Rule("OAC-04", "rendering", "seen",
         "There is at least one message.",
         "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty "
         "array instead."),
    Rule("OAC-05", "projection", "seen",
         "Content is a string or a list of parts.",
         "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got "
         "an integer instead."),
    Rule("OAC-06", "projection", "seen",
         "A role is one of those that exist.",
         "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', "
         "'tool', and 'developer'."),
    Rule("OAC-07", "projection", "seen",
         "Every message has a role.",
         "Missing required parameter: 'messages[0].role'."),
    Rule("OAC-08", "projection", "seen",
         "A content part is of a type its message may hold; a tool result holds text only.",
         "Invalid 'messages[3]'. Content blocks are expected to be either text or image_url type."),
    Rule("OAC-09", "projection", "seen",
         "At most 128 tools are declared.",
         "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array "
         "with length 150 instead."),
    Rule("OAC-10", "projection", "seen",
         "A tool name matches the dialect's pattern (64 characters), declared or in history.",
         "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, …"),
    Rule("OAC-11", "projection", "seen",
         "A tool's parameters are a JSON Schema of an object. Judged: that they are an object of type "
         "`object`.",
         "Invalid schema for function 'read': …"),
    Rule("OAC-12", "projection", "seen",
         "The request has no unknown key at its top level.",
         "Unknown parameter: 'zzz_unknown'."),
    Rule("OAC-13", "projection", "seen",
         "The roles system and developer are sent only to models that have them.",
         "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
         _MODEL),
    Rule("OAC-14", "projection", "seen",
         "No string is longer than 1,048,576 characters.",
         "Invalid 'messages[3].content': string too long. …1048576…"),
    Rule("OAC-15", "overflow", "seen",
         "The request fits the model's context.",
         "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000"
         " tokens. …",
         _TOKENS),
    Rule("OAC-16", "config", "seen",
         "The model exists and the account may use it.",
         "The model `x` does not exist or you do not have access to it.",
         "only the provider knows its models"),
    Rule("OAC-17", "projection", "seen",
         "`prompt_cache_key` has at most 64 characters."),
    Rule("OAC-18", "config", "second hand",
         "A reasoning model is given no sampling settings.",
         "Unsupported value: 'temperature' does not support …",
         _MODEL),
    Rule("OAC-19", "projection", "seen",
         "A model is named.",
         "you must provide a model parameter"),
)  # fmt: skip

_ANTHROPIC = (
    Rule("ANT-01", "rendering", "seen",
         "Every tool_use is answered in the very next message.",
         "messages.6: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_…. "
         "Each `tool_use` block must have a corresponding `tool_result` block in the next message."),
    Rule("ANT-02", "rendering", "seen",
         "A tool_result answers a tool_use of the message before.",
         "messages.48.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_…. Each "
         "`tool_result` block must have a corresponding `tool_use` block in the previous message."),
    Rule("ANT-03", "rendering", "seen",
         "Results stand at the head of their message, before any text or media.",
         "messages.27: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
         "following `tool_use` blocks must begin with a matching number of `tool_result` blocks."),
    Rule("ANT-04", "rendering", "seen",
         "After a message with tool_use comes a user message.",
         "Messages containing `tool_use` blocks must be followed by a user message with `tool_result` "
         "blocks"),
    Rule("ANT-05", "projection", "seen",
         "A tool_use id occurs once in the whole request.",
         "messages.1.content.1: `tool_use` ids must be unique"),
    Rule("ANT-06", "rendering", "seen",
         "A tool_use has one result.",
         "messages.4.content.5: each tool_use must have a single result. Found multiple `tool_result` "
         "blocks with id: toolu_…"),
    Rule("ANT-07", "projection", "seen",
         "A tool_use id matches the dialect's pattern: letters, digits, `_` and `-`.",
         "messages.23.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    Rule("ANT-08", "projection", "seen",
         "A tool name matches the dialect's pattern (128 characters), declared or in history.",
         "tools.28.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
    Rule("ANT-09", "projection", "seen",
         "Tool names differ from each other.",
         "tools: Tool names must be unique."),
    Rule("ANT-10", "rendering", "documented",
         "While a server tool call is pending, a user message holds only tool_result."),
    Rule("ANT-11", "rendering", "seen",
         "A server tool result follows its server_tool_use.",
         "unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_… Each "
         "`advisor_tool_result` block must have a corresponding `server_tool_use` block before it."),
    Rule("ANT-12", "rendering", "second hand",
         "The results of one turn stand in one user message."),
    Rule("ANT-20", "projection", "seen",
         "No text block is empty.",
         "messages: text content blocks must be non-empty"),
    Rule("ANT-21", "projection", "seen",
         "No text block is only whitespace.",
         "messages: text content blocks must contain non-whitespace text"),
    Rule("ANT-22", "projection", "seen",
         "No message is empty.",
         "messages.5: all messages must have non-empty content except for the optional final assistant "
         "message"),
    Rule("ANT-23", "projection", "seen",
         "A final assistant message does not end in whitespace.",
         "messages: final assistant content cannot end with trailing whitespace"),
    Rule("ANT-24", "rendering", "seen",
         "The first message is the user's.",
         'messages: first message must use the "user" role'),
    Rule("ANT-25", "rendering", "seen",
         "There is at least one message.",
         "messages: at least one message is required"),
    Rule("ANT-26", "rendering", "seen",
         "Roles alternate.",
         'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles '
         "in a row"),
    Rule("ANT-27", "rendering", "seen",
         "The last message is the user's.",
         "This model does not support assistant message prefill. The conversation must end with a user "
         "message."),
    Rule("ANT-28", "projection", "seen",
         "No object has a key outside its allow-list.",
         "<path>: Extra inputs are not permitted"),
    Rule("ANT-29", "projection", "second hand",
         "A tool_result's content is not an empty list; an empty string is fine."),
    Rule("ANT-30", "canonical", "seen",
         "An image has at most 5 MB.",
         "…image exceeds 5 MB maximum…"),
    Rule("ANT-31", "canonical", "seen",
         "Text holds no lone surrogate.",
         "The request body is not valid JSON: no low surrogate in string: …"),
    Rule("ANT-32", "projection", "seen",
         "At most 4 blocks carry cache_control.",
         "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    Rule("ANT-33", "projection", "seen",
         "An empty text block carries no cache_control.",
         "cache_control cannot be set for empty text blocks"),
    Rule("ANT-34", "projection", "documented",
         "Thinking carries no cache_control, and no 1h mark comes after a 5m mark."),
    Rule("ANT-35", "config", "seen",
         "`max_tokens` is within the model's limit.",
         "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for …",
         _MODEL),
    Rule("ANT-36", "overflow", "seen",
         "The prompt fits the model's context.",
         "prompt is too long: 213462 tokens > 200000 maximum",
         _TOKENS),
    Rule("ANT-37", "overflow", "seen",
         "On older models the prompt and `max_tokens` fit the context together.",
         "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input "
         "length or `max_tokens` and try again",
         _TOKENS),
    Rule("ANT-38", "config", "seen",
         "The model exists.",
         "model: x",
         "only the provider knows its models"),
    Rule("ANT-39", "rendering", "seen",
         "A message with thinking begins with thinking.",
         "messages.1.content.0: If an assistant message contains any thinking blocks, the first block "
         "must be `thinking` or `redacted_thinking`. Found `text`."),
    Rule("ANT-40", "projection", "seen",
         "With manual thinking on, the message that opened the current tool loop begins with thinking.",
         "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. "
         "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
         "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). …"),
    Rule("ANT-41", "projection", "seen",
         "Thinking of the latest assistant message is as the provider made it.",
         "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
         "These blocks must remain as they were in the original response.",
         _SECRET),
    Rule("ANT-42", "projection", "seen",
         "A thinking signature is the provider's own, unchanged.",
         "messages.1.content.0: Invalid `signature` in `thinking` block",
         _SECRET),
    Rule("ANT-43", "projection", "seen",
         "A thinking block has a signature; its text may be empty only then.",
         "messages.3.content.0.thinking.thinking: each thinking block must contain thinking"),
    Rule("ANT-44", "projection", "documented",
         "What stands before a bound thinking block is unchanged since it was made.",
         "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
         "different conversation. Remove the block, or set "
         '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
         _SECRET),
    Rule("ANT-45", "config", "seen",
         "Newer models are not asked for manual thinking.",
         '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
         '"output_config.effort" to control thinking behavior.',
         _MODEL),
    Rule("ANT-46", "config", "seen",
         "Older models are not asked for adaptive thinking.",
         "adaptive thinking is not supported on this model",
         _MODEL),
    Rule("ANT-47", "config", "seen",
         "Models that always think are not asked to stop.",
         '"thinking.type.disabled" is not supported…',
         _MODEL),
    Rule("ANT-48", "projection", "seen",
         "With manual thinking on, no tool is forced. (Some models refuse it always.)",
         'tool_choice: type "tool" and "any" are not supported for this model.'),
    Rule("ANT-49", "config", "seen",
         "The effort level is one the model has.",
         "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
         _MODEL),
    Rule("ANT-50", "config", "seen",
         "`block_binding` is sent only with its beta header.",
         "…block_binding: Extra inputs are not permitted",
         "a header, not in the body"),
)  # fmt: skip

RULES: dict[str, Rule] = {rule.id: rule for rule in (*_ALL, *_OPENAI_CHAT, *_ANTHROPIC)}
"""Every rule by its id, in the order of the rulebook."""

PREFIXES: dict[str, tuple[str, ...]] = {"openai_chat": ("ALL-", "OAC-"), "anthropic": ("ALL-", "ANT-")}
"""The rules of each wire family, by the beginning of their ids."""


def rules_of(family: str) -> list[Rule]:
    """Return the rules of a wire family, in the order of the rulebook. Raises KeyError for an unknown one."""
    return [rule for rule in RULES.values() if rule.id.startswith(PREFIXES[family])]
