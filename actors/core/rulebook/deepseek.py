"""What DeepSeek demands on its Chat Completions route."""

from actors.core.rulebook.rule import TOKENS, Rule

RULES = (
    Rule("DSK-01", "rendering", "seen",
         "A tool message answers an open call. An answer closes its call.",
         "«Messages with role 'tool' must be a response to a preceding message» with 'tool_calls'"),
    Rule("DSK-02", "rendering", "seen",
         "No other message, and no end, comes while a call is open.",
         "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
         "'tool_call_id'. («insufficient tool messages following tool_calls message»)"),
    Rule("DSK-03", "rendering", "seen",
         "While calls are open, a tool message names one of them.",
         "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
         "'tool_call_id'. The following tool_call_ids did not have response messages: <id>"),
    Rule("DSK-04", "projection", "seen",
         "A tool message has the id of its call.",
         "Failed to deserialize the JSON body into the target type: messages[i]: «missing field "
         "`tool_call_id`» …"),
    Rule("DSK-05", "projection", "seen",
         "An assistant message with tool calls has reasoning: its own, or words in its place.",
         "The «`reasoning_content` in the thinking mode must be passed back» to the API."),
    Rule("DSK-06", "projection", "seen",
         "The same on its Anthropic route, where reasoning is a block.",
         "The «`content[].thinking` in the thinking mode must be passed back» to the API.",
         "on another route"),
    Rule("DSK-07", "projection", "seen",
         "The same on its Responses route, where reasoning is an item.",
         "The «`reasoning_text` in the thinking mode must be passed back» to the API",
         "on another route"),
    Rule("DSK-08", "projection", "second hand",
         "No tool is forced while the model thinks."),
    Rule("DSK-09", "overflow", "seen",
         "The request fits the model's context.",
         "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens…",
         TOKENS),
)  # fmt: skip
