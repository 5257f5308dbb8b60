"""What servers that copy OpenAI Chat Completions demand beyond it."""

from actors.core.rulebook.rule import Rule

RULES = (
    Rule("CMP-01", "rendering", "seen",
         "Where a chat template judges, user and assistant alternate, calls and results apart.",
         "«Conversation roles must alternate user»/assistant/user/assistant/..."),
    Rule("CMP-02", "rendering", "seen",
         "Where a chat template takes one call a message, there is no second.",
         "This model «only supports single tool-calls at once»!"),
)  # fmt: skip
