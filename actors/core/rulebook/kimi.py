"""What Moonshot's Kimi demands."""

from actors.core.rulebook.rule import TOKENS, Rule

RULES = (
    Rule("KIM-01", "rendering", "seen",
         "An assistant message with tool calls is followed at once by one tool message for each call.",
         "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
         "'tool_call_id'. The following tool_call_ids did not have response messages: Agent:0"),
    Rule("KIM-02", "rendering", "seen",
         "A tool message answers a call that is still open directly before it.",
         "Invalid request: «tool_call_id⟦  ⟧is not found»"),
    Rule("KIM-03", "projection", "seen",
         "An assistant message with tool calls has reasoning: its own, or words in its place.",
         "thinking is enabled but «reasoning_content is missing in assistant tool call message» at index 2"),
    Rule("KIM-04", "rendering", "seen",
         "An assistant message is not empty; reasoning alone does not count.",
         "Invalid request: the message at position 72 «with role 'assistant' must not be empty»"),
    Rule("KIM-05", "projection", "seen",
         "No text part is empty.",
         "«text content is empty»"),
    Rule("KIM-06", "projection", "seen",
         "A tool name begins with a letter and has letters, digits, `_` and `-`, declared or in history.",
         "Invalid request: «function name is invalid, must start with a letter» and can contain letters, "
         "numbers, underscores, and dashes"),
    Rule("KIM-07", "projection", "seen",
         "A tool's parameters are of Moonshot's kind of JSON Schema: every schema inside is an object with a "
         "type, which does not stand beside a choice; a reference begins with `#/$defs/` and stands alone; "
         "what is required is described.",
         "tools.function.parameters is «not a valid moonshot flavored json schema», details: <At path "
         "'properties.X': …>"),
    Rule("KIM-08", "projection", "seen",
         "A tool is of type `function`.",
         "«unknown tool type: ⟦custom⟧, currently only function» and plugin are supported"),
    Rule("KIM-09", "config", "seen",
         "No sampling settings are given.",
         "invalid temperature: only 1 is allowed for this model",
         "depends on the model"),
    Rule("KIM-10", "projection", "seen",
         "No tool is forced.",
         "tool_choice 'specified' is incompatible with thinking enabled"),
    Rule("KIM-11", "rendering", "seen",
         "There is at least one message.",
         "Invalid request: «messages must not be empty»"),
    Rule("KIM-12", "overflow", "seen",
         "The request fits the model's context.",
         "Invalid request: Your request exceeded model token limit: 8192",
         TOKENS),
)  # fmt: skip
