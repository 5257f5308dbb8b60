"""List the rules that apply to every dialect. If a family has its own version of a rule, that version is cited."""

from actors.core.rulebook.rule import Rule

RULES = (
    Rule("ALL-01", "projection", "derived",
         "A request is one strict JSON object, without duplicate keys, NaN or trailing data."),
    Rule("ALL-02", "projection", "documented",
         "Every required field is present, and every field has an accepted type and value."),
    Rule("ALL-03", "projection", "derived",
         "A tool call id is not empty and matches the dialect's pattern completely."),
    Rule("ALL-04", "projection", "derived",
         "A tool call id is used for only one call, within the dialect's `ids.unique_scope`."),
    Rule("ALL-05", "rendering", "derived",
         "A transcript ends with a role in the dialect's `turns.last_roles`, never with a prefill."),
    Rule("ALL-06", "projection", "seen",
         "The arguments of a call are an object, sent as JSON or as a JSON string, as the dialect requires."),
    Rule("ALL-07", "projection", "second hand",
         "A request has no unknown key, nor has any object inside its messages or tools."),
    Rule("ALL-08", "rendering", "documented",
         "A block is in a message whose role permits the block: calls are in assistant messages, results in the "
         "dialect's `turns.result_carrier`."),
    Rule("ALL-09", "rendering", "derived",
         "A transcript begins with a role in the dialect's `turns.first_roles`."),
    Rule("ALL-10", "projection", "documented",
         "Media occur only in messages and results for which the dialect permits them."),
    Rule("ALL-11", "projection", "documented",
         "No list of parts, text part or assistant message is empty. An assistant message without tool calls has "
         "content."),
    Rule("ALL-12", "canonical", "derived",
         "Text contains no lone surrogate."),
    Rule("ALL-13", "projection", "derived",
         "The declared tool names are distinct."),
    Rule("ALL-14", "projection", "second hand",
         "A request with a tool choice declares tools, and the choice names a declared tool."),
    Rule("ALL-15", "projection", "documented",
         "A request has no more attachments than the dialect's `media.max_count` and `media.max_documents`."),
    Rule("ALL-16", "config", "derived",
         "The model accepts every setting of the request ([models](models.md))."),
)  # fmt: skip
