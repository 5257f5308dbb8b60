"""What OpenAI Chat Completions demands."""

from actors.core.rulebook.rule import MODEL, PROVIDER_MODELS, TOKENS, Rule

RULES = (
    Rule("OAC-01", "rendering", "seen",
         "An assistant message with tool calls is followed at once by one tool message for each call.",
         "An assistant message with 'tool_calls' «must be followed by tool messages responding to each» "
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
         "«Invalid 'messages': empty array». Expected an array with minimum length 1, but got an empty "
         "array instead."),
    Rule("OAC-05", "projection", "seen",
         "Content is a string or a list of parts.",
         "«Invalid type for 'messages»[0].content': expected one of a string or array of objects, but got "
         "an integer instead."),
    Rule("OAC-06", "projection", "seen",
         "A role is one of those that exist.",
         "Invalid value: 'bogus'. «Supported values are: 'system', 'assistant', 'user'», 'function', "
         "'tool', and 'developer'."),
    Rule("OAC-07", "projection", "seen",
         "Every message has a role.",
         "«Missing required parameter: 'messages[⟦0⟧].role'»."),
    Rule("OAC-08", "projection", "seen",
         "A content part is of a type its message may hold; a tool result holds text only.",
         "Invalid 'messages[3]'. Content blocks are «expected to be either text or image_url type»."),
    Rule("OAC-09", "projection", "seen",
         "At most 128 tools are declared.",
         "«Invalid 'tools': array too long». Expected an array with maximum length 128, but got an array "
         "with length 150 instead."),
    Rule("OAC-10", "projection", "seen",
         "A tool name matches the dialect's pattern (64 characters), declared or in history.",
         "Invalid 'tools[0].«function.name': string too long». Expected a string with maximum length 64, …"),
    Rule("OAC-11", "projection", "seen",
         "A tool's parameters are a JSON Schema of an object. Judged: that they are an object of type "
         "`object`, with no choice at the root.",
         "Invalid schema for function 'read': …"),
    Rule("OAC-12", "projection", "seen",
         "The request has no unknown key at its top level.",
         "«Unknown parameter: '»zzz_unknown'."),
    Rule("OAC-13", "projection", "seen",
         "The roles system and developer are sent only to models that have them.",
         "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
         MODEL),
    Rule("OAC-14", "projection", "seen",
         "No string is longer than 1,048,576 characters.",
         "«Invalid 'messages[⟦3⟧].⟦content⟧': string too long». …1048576…"),
    Rule("OAC-15", "overflow", "seen",
         "The request fits the model's context.",
         "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000"
         " tokens. …",
         TOKENS),
    Rule("OAC-16", "config", "seen",
         "The model exists and the account may use it.",
         "The model `x` does not exist or you do not have access to it.",
         PROVIDER_MODELS),
    Rule("OAC-17", "projection", "seen",
         "`prompt_cache_key` has at most 64 characters."),
    Rule("OAC-18", "config", "second hand",
         "A reasoning model is given no sampling settings.",
         "Unsupported value: 'temperature' does not support …",
         MODEL),
    Rule("OAC-19", "projection", "seen",
         "A model is named.",
         "you must provide a model parameter"),
)  # fmt: skip
